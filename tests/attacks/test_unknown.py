"""A worker dies in the middle of a call: what the model hears, and what a person says of it, reaches the model."""

from collections.abc import Iterator
from typing import Any

import pytest

from registry.errors import Refused
from tests.attacks.test_approvals import MAIL
from tests.attacks.theatre import NO, YES, Theatre
from tests.unit.engine.graphs import looper
from tests.unit.engine.stages import call

WRITE = call("files.write", path="a.md", content="x", mode="create")


@pytest.fixture
def stage() -> Iterator[Theatre]:
    """An agent whose file may have been written, and which now waits for something else."""
    agent = looper(skills=["files.write", "email.send"], permissions={"fs.write": "allow"})
    made = Theatre(agent, [[WRITE], [call("email.send", **MAIL)], "done"], deadly=("files.write",))
    made.deadly.clear()
    made.go()
    yield made
    made.close()


def notes(stage: Theatre) -> list[str]:
    """Notes in the last request to the model."""
    return [str(m["content"]) for m in stage.model.requests[-1].messages if m.get("kind") == "note"]


def test_the_model_is_told_that_nobody_knows_and_the_run_goes_on(stage: Theatre) -> None:
    assert stage.results == [("files.write", "unknown", "unknown")]
    assert "it may have happened. Do not repeat it without asking." in stage.heard[0]
    assert stage.status == "needs_input"
    assert len(stage.done) == 1, "it is not begun again"


@pytest.mark.parametrize(
    ("how", "result", "words"),
    [
        ("result", {"path": "a.md"}, 'found out that it happened; its result: {"path":"a.md"}'),
        ("skip", None, "leaves it as it is; do not repeat it."),
    ],
)
def test_what_a_person_found_out_reaches_the_model_once(how: Any, result: Any, words: str, stage: Theatre) -> None:
    stage.repair(how, result)
    stage.answer(NO)

    assert stage.status == "completed"
    (note,) = notes(stage)
    assert note.startswith("The outcome of files.write (call ") and note.endswith(words)
    with pytest.raises(Refused) as again:
        stage.repair("skip")
    assert again.value.code == "not_unknown"


def test_a_retry_runs_the_stored_call_outside_of_the_run_and_its_result_reaches_the_model(stage: Theatre) -> None:
    stage.repair("retry")
    assert stage.act() == 1
    stage.answer(NO)

    assert [one["path"] for _, one in stage.done] == ["a.md", "a.md"]
    (note,) = notes(stage)
    assert note.endswith('had it run again; its result: {"did":"files.write"}')


@pytest.mark.parametrize("how", ["result", "skip", "retry"])
def test_what_a_person_says_of_a_gated_call_is_its_answer(how: Any) -> None:
    stage = Theatre(looper(skills=["email.send"]), [[call("email.send", **MAIL)], "done"])
    stage.deadly.add("email.send")
    stage.answer(YES, go=False)
    stage.die()
    stage.deadly.clear()
    stage.go()
    assert stage.status == "needs_input"

    stage.repair(how, {"sent": True})
    stage.go()

    assert stage.status == "completed"
    assert len(stage.done) == (2 if how == "retry" else 1)
    assert stage.results[-1][1] == ("skipped" if how == "skip" else "ok")
    heard = {"result": '{"sent":true}', "retry": '{"did":"email.send"}', "skip": "skipped: a person looked at it"}
    assert stage.heard[0].startswith(heard[how])
    stage.close()


def test_the_sentence_of_a_run_under_way_is_heard_too(stage: Theatre) -> None:
    from orchestrator.records import RepairRecord
    from workers.inprocess.conductor import Conductor

    root = Conductor(stage.database, stage.services, "run", [])
    stage.answer(NO, go=False)
    with stage.database.read() as connection:
        from orchestrator.store import repairs

        assert repairs.untold(connection, ["run"]) == {}
    said = RepairRecord("c", "files.write", "skip", {"ok": True, "output": None})
    root._carrier._hold = _telling(root._carrier._hold, said)
    root.carry_on()

    assert any("files.write (call c)" in note for note in notes(stage))


def _telling(hold: Any, said: Any) -> Any:
    def held(session: Any) -> Any:
        session.hear([said])  # as the heartbeat of a worker does
        return hold(session)

    return held
