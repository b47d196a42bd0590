"""Who plays the model of a project."""

import subprocess
import sys

import pytest

from orchestrator.settings import Model, Settings
from workers.models.choose import client_for, stands_in
from workers.models.client import OpenAIClient
from workers.models.model import ModelFault, Request
from workers.models.standin import StandIn

REAL = Settings(_env_file=None, models={"standard": Model(name="m")}, model_api_key="secret-key")
NONE = Settings(_env_file=None)


@pytest.mark.parametrize("settings", [REAL, NONE])
def test_a_rehearsal_is_played_by_the_stand_in(settings):
    assert isinstance(client_for(settings, rehearsal=True), StandIn)


def test_a_script_asks_for_the_stand_in_where_no_model_is_configured():
    assert stands_in(NONE, script={})
    assert isinstance(client_for(NONE, script={}), StandIn)


def test_with_a_model_a_script_waits_for_a_rehearsal():
    assert isinstance(client_for(REAL, script={}), OpenAIClient)


def test_the_settings_can_ask_for_every_project():
    assert isinstance(client_for(Settings(_env_file=None, stand_in=True)), StandIn)


def test_nothing_asked_means_the_real_model():
    assert isinstance(client_for(REAL), OpenAIClient)


def test_without_a_model_the_call_says_what_is_missing_instead_of_a_stand_in_nobody_asked_for():
    with pytest.raises(ModelFault) as caught:
        client_for(NONE).generate(Request(tier="standard"))
    assert caught.value.code == "model_unresolved"


def test_choosing_loads_neither_the_sdk_nor_the_template_engine():
    code = (
        "import sys; from orchestrator.settings import Settings; from workers.models.choose import client_for;"
        "client_for(Settings(_env_file=None)); client_for(Settings(_env_file=None), script={});"
        "print(sorted({'openai', 'httpx2', 'jinja2', 'genai_prices'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
