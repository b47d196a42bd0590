"""A conversation as lines: what of a thread's events is told, and how."""

from typing import Any

from orchestrator.records import Event
from orchestrator.terminal.talking import Talk


def lines(*events: tuple[str, dict[str, Any]], run_id: str = "r") -> tuple[Talk, list[str]]:
    talk = Talk("r", "Ada")
    return talk, [str(line) for kind, data in events for line in talk.lines(Event(kind, data, run_id=run_id))]


def said(text: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "message", {"role": "assistant", "text": text} | more


def test_words_calls_and_failures_are_told_and_success_is_not() -> None:
    talk, told = lines(
        ("message", {"role": "user", "text": "hi"}),
        said("", toolCalls=[{"id": "c", "name": "look"}]),
        ("tool.call", {"name": "look", "input": {"at": 1}}),
        ("tool.result", {"name": "look", "outcome": "ok", "output": "fine"}),
        ("tool.result", {"name": "send", "outcome": "denied", "output": "no"}),
        said("Done."),
        ("output", {"output": {}, "text": "Done."}),
        ("run.completed", {"costUsd": 0.5}),
    )

    assert told == ['  look {"at":1}', "  send: denied no", "Ada > Done."]
    assert (talk.ended, talk.text, talk.cost_usd) == ("completed", "Done.", 0.5)


def test_a_graph_that_ends_with_a_value_says_that() -> None:
    talk, told = lines(("output", {"output": 3, "text": "3"}), ("run.completed", {}))

    assert (told, talk.text) == (["Ada > 3"], "3")


def test_notes_and_what_other_runs_say_are_left_out() -> None:
    assert lines(said("handed over", kind="note"))[1] == []
    assert lines(said("a child's words"), run_id="child")[1] == []


def test_the_stand_in_is_named_once() -> None:
    _, told = lines(("think", {"standIn": True}), ("think", {"standIn": True}))

    assert told == ["(the stand-in, not a model, speaks)"]


def test_words_that_would_move_the_cursor_are_written_out() -> None:
    _, told = lines(said("a\x1b[2Jb\u202e"))

    assert "\x1b" not in told[0] and "\u202e" not in told[0]


def test_a_failure_says_its_code() -> None:
    talk, told = lines(("run.failed", {"code": "model_failed", "message": "away"}))

    assert told == ["failed: model_failed: away"]
    assert (talk.ended, talk.code) == ("failed", "model_failed")
