"""Settings that cannot work are refused where they are read."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from orchestrator.settings import Limits, Model, Settings, unknown_variables, variables
from workers.commands.doctor import _settings


def test_a_lease_holds_for_two_renewals_at_least() -> None:
    with pytest.raises(ValidationError, match="a lease has to hold for two renewals"):
        Limits(lease_s=5, renew_s=10)
    assert Limits(lease_s=5, renew_s=2.5).lease_s == 5


@pytest.mark.parametrize(
    ("changed", "there"),
    [
        ({}, False),
        ({"models": {"standard": Model(name="m")}}, False),
        ({"models": {"standard": Model(name="m")}, "model_api_key": "k"}, True),
        ({"models": {"standard": Model(name="m", base_url="http://127.0.0.1:1")}}, True),
    ],
)
def test_a_model_counts_when_it_can_be_reached(changed, there) -> None:
    assert Settings(_env_file=None, **changed).has_model is there


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("postgres://ada:secret@db/officina", "postgresql+psycopg://ada:secret@db/officina"),
        ("postgresql://db/officina", "postgresql+psycopg://db/officina"),
        ("postgresql+psycopg://db/officina", "postgresql+psycopg://db/officina"),
        ("sqlite:////tmp/x.db", "sqlite:////tmp/x.db"),
        ("", ""),
    ],
)
def test_a_postgres_url_may_be_written_in_every_usual_way(written, meant) -> None:
    assert Settings(_env_file=None, database_url=written).database_url == meant


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("database_url", "nonsense:hush"),
        ("database_url", "mysql://ada:hush@db/officina"),
        ("broker_url", "http://:hush@queue"),
        ("redis_url", "amqp://:hush@queue"),
        ("model_base_url", "models.example/hush"),
        ("model_base_url", "file:///hush"),
        ("model_base_url", "http:///hush"),
        ("model_base_url", "http://[hush/v1"),
    ],
)
def test_a_url_of_an_unknown_kind_is_refused_and_not_repeated(name, value) -> None:
    with pytest.raises(ValidationError) as caught:
        Settings(_env_file=None, **{name: value})
    fault = caught.value.errors()[0]
    assert fault["loc"] == (name,) and "hush" not in fault["msg"] and "://" in fault["msg"]


def test_names_that_set_nothing_are_told() -> None:
    given = ["OFFICINA_HOME", "OFFICINA_LIMITS__LEASE_S", "OFFICINA_MODELS__FAST__NAME", "OFFICINA_DEBUG", "PATH"]
    assert unknown_variables(dict.fromkeys([*given, "OFFICINA_WORKER_SLOT"], "x")) == ["OFFICINA_WORKER_SLOT"]


def test_every_setting_that_doctor_shows_is_a_known_name() -> None:
    shown = set(dict(_settings(Settings(_env_file=None, models={"deep": Model(name="m")}))))
    assert shown - set(variables()) == set()


def test_settings_of_a_group_that_may_be_left_out_are_known() -> None:
    set_by_hand = {"OFFICINA_IMAGES__NAME": "x", "OFFICINA_EMBEDDINGS__KEY": "x", "OFFICINA_IMAGES__NAMED": "x"}

    assert unknown_variables(set_by_hand) == ["OFFICINA_IMAGES__NAMED"]


def test_a_variable_that_is_empty_says_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Compose passes on what an .env leaves open as an empty text, and a file of systemd does."""
    plain = Settings(_env_file=None)
    for name in variables():
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("OFFICINA_MODELS__STANDARD__NAME", "")
    (tmp_path / "left.env").write_text("OFFICINA_OWNER=\n")

    given = Settings(_env_file=tmp_path / "left.env")

    assert given == plain
    assert not given.has_model
