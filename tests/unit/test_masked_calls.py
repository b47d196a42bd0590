"""What a call lets out of the one invoke: no value that a connection opened, no words of a fault that hold a secret."""

import logging

import pytest

from orchestrator.logs import Masked
from orchestrator.settings import Settings
from registry import masking
from registry.base import Model
from registry.errors import Detail, SkillError
from registry.skills.context import Caller, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult
from registry.skills.skill import skill

SECRET = "value-of-a-connection-4711"


class Asked(Model):
    how: str


class Said(Model):
    words: list[str]
    token: str = "shaped like one"


@skill("shop.ask", title="Ask", timeout_s=5)
def ask(given: Asked, context: SkillContext) -> Said:
    """Answers with what it knows."""
    masking.remember(SECRET)
    if given.how == "refused":
        words = f"https://me:{SECRET}@example.com said no; Authorization: Bearer abcdefgh12345"
        raise SkillError("remote_error", words, details=[Detail("header", f"key {SECRET}")])
    if given.how == "broken":
        raise RuntimeError(f"{SECRET} and password=hunter2hunter2")
    return Said(words=[f"it repeated {SECRET}"])


def call(how: str) -> SkillResult:
    return SkillRegistry([ask]).invoke("shop.ask", {"how": how}, SkillContext(Caller("run")))


def test_a_value_of_a_connection_goes_no_further_than_its_skill() -> None:
    assert call("repeated").output == {"words": ["it repeated ***"], "token": "shaped like one"}


def test_the_words_of_a_fault_are_masked() -> None:
    result = call("refused")

    assert result.error == "https://***@example.com said no; Authorization: ***"
    assert result.details == [Detail("header", "key ***")]


def test_a_traceback_in_a_log_is_masked(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert call("broken").code == "tool_failed"

    shown = Masked().format(caplog.records[-1])
    assert "RuntimeError" in shown
    assert SECRET not in shown and "hunter2" not in shown


def test_secrets_of_the_environment_are_known_from_the_start() -> None:
    Settings(
        _env_file=None,  # type: ignore[call-arg]
        model_api_key="key-of-the-model-1",  # type: ignore[arg-type]
        secret_key="first-key-000,second-key-000",  # type: ignore[arg-type]
        database_url="postgresql://ann:pass%2Fword-of-db@db.example.com/x",
        redis_url="redis://:word-of-redis@cache.example.com/0",
    )

    for secret in ("key-of-the-model-1", "first-key-000", "second-key-000", "pass/word-of-db", "word-of-redis"):
        assert masking.mask_text(f"it said {secret}.") == "it said ***."
