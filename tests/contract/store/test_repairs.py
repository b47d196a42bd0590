"""Calls that may have happened: unknown to everybody until a person says what became of them, once."""

from typing import Any

import pytest
from sqlalchemy import select

from orchestrator.records import CallRecord, Park
from orchestrator.store import actions, invariants, projects, repairs, signals
from orchestrator.store import tables as t
from orchestrator.store.repairs import Repaired, Unknown
from registry.errors import Refused
from tests.contract.store.world import YES, Plan, World, at, decision, together

NAME = "files.write"


class Stage:
    """A run with calls that were begun and whose worker died."""

    def __init__(self, world: World) -> None:
        self.world, self.plan = world, world.plan()
        self.claim = world.claimed(self.plan.run("a"))
        self.run_id = self.claim.run_id

    def told(self, call_id: str = "c1") -> "Stage":
        """Its model has heard that nobody knows, and the run goes on."""
        result = {"id": call_id, "name": NAME, "result": "unknown", "isError": True, "code": "unknown"}
        self.world.write(at(self.claim, None, calls=[_call(call_id, "done", outcome="unknown", result=result)]))
        return self

    def asks(self) -> "Stage":
        """A yes was used for it, and the run asks whether to do it again."""
        first, self.question = decision(), decision()
        for one in (first, self.question):
            one.call_id, one.action = "c1", {"skill": NAME, "input": {}}
        self.world.park(at(self.claim, 1, signals=[first], park=Park("needs_input", "signals", [first.id])))
        self.answer(first.id)
        self.claim = self.world.claimed(self.run_id)
        mark = _call("c1", "started", signal_id=first.id)
        self.world.write(at(self.claim, None, calls=[mark], consume={first.id: "started"}))
        self.world.set(t.runs, self.run_id, status="queued", worker_id=None)
        self.claim = self.world.claimed(self.run_id)
        again = _call("c1", "asked", outcome="unknown", signal_id=self.question.id)
        park = Park("needs_input", "signals", [self.question.id])
        self.world.park(
            at(self.claim, 2, calls=[again], settle={first.id: "unknown"}, signals=[self.question], park=park)
        )
        return self

    def acted(self) -> "Stage":
        """A yes ran it outside of the run, and its worker fell silent in the middle."""
        asked = decision()
        asked.call_id, asked.action, asked.carry_on = "c1", {"skill": NAME, "input": {}}, True
        self.world.write(at(self.claim, None, signals=[asked]))
        self.answer(asked.id)
        self.first = self.begin()
        self.fall_silent(self.first)
        self.question = self.world.row(t.signals, self.open_ones[0])
        return self

    def begin(self) -> Any:
        return self.world.database.write(lambda c: actions.claim(c, self.plan.id))

    def fall_silent(self, action: Any) -> None:
        self.world.set(t.signals, action.id, acted_at=1)
        self.world.database.write(lambda c: actions.give_up(c, 10, 1_000))

    def answer(self, signal_id: str, payload: Any = YES) -> Any:
        rejected = payload != YES
        return self.world.database.write(lambda c: signals.answer(c, signal_id, payload, rejected=rejected, by="desk"))

    def repair(self, how: Any, result: Any = None, call_id: str | None = None) -> Repaired:
        return self.world.database.write(
            lambda c: repairs.repair(c, self.run_id, call_id, how, result, by="me", reason="I looked")
        )

    @property
    def unknown(self) -> list[Unknown]:
        with self.world.database.read() as connection:
            return repairs.unknown(connection, self.plan.id)

    @property
    def untold(self) -> list[Any]:
        with self.world.database.read() as connection:
            return repairs.untold(connection, [self.run_id]).get(self.run_id, [])

    @property
    def open_ones(self) -> list[str]:
        query = select(t.signals.c.id).where(t.signals.c.run_id == self.run_id, t.signals.c.status == "open")
        return [row.id for row in self.world.all(query)]

    @property
    def call(self) -> Any:
        return self.world.all(select(t.calls).where(t.calls.c.run_id == self.run_id))[0]

    def execution(self, signal_id: str) -> str:
        return str(self.world.row(t.signals, signal_id).execution)


@pytest.fixture
def stage(world: World) -> Any:
    made = Stage(world)
    yield made
    with world.database.read() as connection:
        found = invariants.broken(connection)
    assert not found, "\n".join(map(str, found))


def _call(call_id: str, status: Any, **fields: Any) -> CallRecord:
    return CallRecord(call_id, "n", 1, 0, NAME, {}, status, "d", checkpoint=1, **fields)


def repaired(plan: Plan) -> list[tuple[str, str, str]]:
    return [(e["how"], e["by"], e["reason"]) for e in plan.kinds("run.repaired")]


def test_what_a_run_asks_about_is_done_by_a_persons_word(stage: Stage) -> None:
    (found,) = stage.asks().unknown
    assert (found.where, found.name, found.signal_id) == ("asked", NAME, stage.question.id)

    done = stage.repair("result", {"path": "a.md"})

    assert [wake.run_id for wake in done.wakes] == [stage.run_id]
    assert stage.world.run(stage.run_id).status == "queued"
    assert (stage.call.status, stage.call.outcome, stage.call.result["result"]) == ("done", "ok", {"path": "a.md"})
    assert stage.execution(stage.question.id) == "succeeded"
    assert [e["outcome"] for e in stage.plan.kinds("tool.result")] == ["ok"]
    assert repaired(stage.plan) == [("result", "me", "I looked")]
    assert stage.unknown == stage.untold == []


def test_what_a_run_asks_about_is_left_by_a_persons_word(stage: Stage) -> None:
    stage.asks().repair("skip")

    assert (stage.call.status, stage.call.outcome) == ("done", "skipped")
    assert stage.call.result["skipped"] is True and "do not repeat it" in stage.call.result["result"]
    assert stage.world.run(stage.run_id).status == "queued"
    assert stage.world.row(t.signals, stage.question.id).rejected


def test_what_a_run_asks_about_is_done_again_like_any_other_yes(stage: Stage) -> None:
    stage.asks().repair("retry")

    asked = stage.world.row(t.signals, stage.question.id)
    assert (asked.status, asked.answer["approved"], asked.execution) == ("answered", True, "none")
    assert stage.call.status == "asked", "its run does it"
    assert stage.unknown == [], "somebody has spoken"


@pytest.mark.parametrize(("how", "result", "outcome"), [("result", 5, "ok"), ("skip", None, "skipped")])
def test_a_model_that_went_on_reads_what_a_person_said(stage: Stage, how: str, result: Any, outcome: str) -> None:
    (found,) = stage.told().unknown
    assert found.where == "told"

    stage.repair(how, result)

    (note,) = stage.untold
    assert (note.call_id, note.name, note.how, note.result["output"]) == ("c1", NAME, how, result)
    assert stage.call.outcome == outcome
    assert stage.call.result["result"] == "unknown", "what the model was told stays as it was told"
    stage.world.write(at(stage.claim, told=["c1"]))
    assert stage.untold == []


def test_a_retry_of_what_a_run_left_behind_runs_outside_of_it_and_its_model_reads_of_it(stage: Stage) -> None:
    done = stage.told().repair("retry")
    assert done.act
    assert stage.untold == [], "nothing is known yet"

    action = stage.begin()
    assert (action.action["skill"], action.digest, action.answered_by) == (NAME, "d", "me")
    stage.world.database.write(lambda c: actions.settle(c, action, {"ok": True, "output": 7}, [], []))

    assert [(note.how, note.result["output"]) for note in stage.untold] == [("retry", 7)]
    assert stage.begin() is None


def test_a_retry_that_falls_silent_is_unknown_again_and_asks(stage: Stage) -> None:
    stage.told().repair("retry")

    stage.fall_silent(stage.begin())

    assert {found.call_id for found in stage.unknown} == {"c1"}
    assert len(stage.open_ones) == 1
    stage.repair("skip")
    assert stage.unknown == [] and stage.open_ones == []


def test_an_action_outside_of_its_run_is_recorded_as_it_came_out(stage: Stage) -> None:
    (found,) = stage.acted().unknown
    assert (found.where, found.signal_id) == ("action", stage.first.id)

    stage.repair("result", {"sent": True})

    assert stage.execution(stage.first.id) == "succeeded"
    assert stage.world.row(t.signals, stage.first.id).result == {"ok": True, "output": {"sent": True}}
    assert stage.open_ones == [] and stage.unknown == []


def test_an_action_outside_of_its_run_is_done_again_with_the_yes_of_its_question(stage: Stage) -> None:
    assert stage.acted().repair("retry").act

    assert stage.begin().id == stage.question.id
    stage.world.set(t.signals, stage.question.id, execution="succeeded")
    assert stage.unknown == []


def test_the_answer_of_its_question_is_a_word_about_it_too(stage: Stage) -> None:
    stage.acted()
    stage.answer(stage.question.id, {"approved": False})

    assert stage.unknown == []


def test_several_unknown_calls_want_to_be_named(stage: Stage) -> None:
    stage.told("c1").told("c2")

    with pytest.raises(Refused, match=r"c1 .*, c2 ") as several:
        stage.repair("skip")
    assert several.value.code == "ambiguous_call"
    stage.repair("skip", call_id="c2")
    assert [found.call_id for found in stage.unknown] == ["c1"]


def test_only_what_is_unknown_can_be_repaired_and_only_once(stage: Stage) -> None:
    with pytest.raises(Refused, match="nothing to repair") as nothing:
        stage.repair("skip")
    assert nothing.value.code == "not_unknown"
    stage.told().repair("result", 1)

    for how in ("result", "retry", "skip"):
        with pytest.raises(Refused) as again:
            stage.repair(how, 2)
        assert again.value.code == "not_unknown"
    assert len(stage.plan.kinds("run.repaired")) == 1


def test_nothing_of_a_cancelled_project_is_done_again(stage: Stage) -> None:
    stage.told()
    stage.world.database.write(lambda c: projects.cancel(c, stage.plan.id, "enough"))

    with pytest.raises(Refused) as over:
        stage.repair("retry")
    assert over.value.code == "run_ended"
    stage.repair("result", 1)
    assert stage.unknown == []


def test_of_people_who_speak_at_once_one_is_heard(stage: Stage) -> None:
    if stage.world.database.in_memory:
        pytest.skip("a store in memory belongs to one process: two people cannot speak to it at once")
    for number in range(10):
        call_id = f"c{number}"
        stage.told(call_id)
        said = together(
            lambda c=call_id: stage.repair("result", 1, c),
            lambda c=call_id: stage.repair("retry", None, c),
            lambda c=call_id: stage.repair("skip", None, c),
        )
        assert sum(isinstance(one, Repaired) for one in said) == 1, said
        assert {one.code for one in said if isinstance(one, Refused)} <= {"not_unknown"}


def test_a_repair_and_an_answer_at_once_are_one_word(stage: Stage) -> None:
    stage.asks()

    said = together(lambda: stage.repair("result", 1), lambda: stage.answer(stage.question.id))

    assert sum(isinstance(one, Exception) for one in said) == 1, said
    assert {one.code for one in said if isinstance(one, Refused)} <= {"not_unknown", "already_answered"}


def test_a_cancel_in_the_middle_of_a_call_leaves_it_unknown_everywhere(stage: Stage) -> None:
    asked = decision()
    asked.call_id, asked.action = "c1", {"skill": NAME, "input": {}}
    stage.world.park(at(stage.claim, 1, signals=[asked], park=Park("needs_input", "signals", [asked.id])))
    stage.answer(asked.id)
    stage.claim = stage.world.claimed(stage.run_id)
    mark = _call("c1", "started", signal_id=asked.id)
    stage.world.write(at(stage.claim, None, calls=[mark], consume={asked.id: "started"}))

    stage.world.database.write(lambda c: projects.cancel(c, stage.plan.id, "enough"))

    assert (stage.call.status, stage.call.outcome) == ("done", "unknown")
    assert stage.execution(asked.id) == "unknown"
    assert [e["outcome"] for e in stage.plan.kinds("tool.result")] == ["unknown"]
    assert [found.where for found in stage.unknown] == ["told"]
