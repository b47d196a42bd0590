"""The stub model server: a program of its own that plays turns to any number of conversations."""

import json
import subprocess
import sys

import pytest

from orchestrator.settings import Model, Settings
from tests.stub_model import StubModel
from workers.models import client as client_module
from workers.models.client import OpenAIClient
from workers.models.model import Request

TURNS = [
    {"calls": [{"name": "files.read", "args": {"path": "a.md"}}], "fail": {"status": 503, "times": 2}},
    {"text": "Done.", "usage": False},
]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(client_module, "FIRST_WAIT_S", 0.01)


def ask(url, *messages):
    found = Settings(_env_file=None, models={"standard": Model(name="stub")}, model_base_url=url)
    rows = [{"role": "user", "content": "Hi."}, *messages]
    return OpenAIClient(found).generate(Request(tier="standard", messages=rows))


def test_a_conversation_gets_the_turn_after_what_it_already_holds():
    with StubModel(TURNS) as server:
        first = ask(server.url)
        second = ask(server.url, {"role": "assistant", "content": "x"})
        again = ask(server.url)
        assert server.requests == 5
    assert [call.name for call in first.calls] == [call.name for call in again.calls] == ["files.read"]
    assert (second.text, second.usage.estimated) == ("Done.", True)


def test_it_runs_as_a_program(tmp_path):
    file = tmp_path / "turns.json"
    file.write_text(json.dumps([{"text": "From the program."}]))
    command = [sys.executable, "-m", "tests.stub_model", "--port", "0", "--turns", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert ask(program.stdout.readline().strip()).text == "From the program."
        finally:
            program.terminate()
