"""A yes in the same moment as a cancel, or as the end of its time: one story, the same in every row."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from orchestrator.records import Park
from orchestrator.settings import Settings
from orchestrator.store import actions, invariants, projects, signals
from orchestrator.store import tables as t
from registry.errors import Refused
from tests.contract.store.world import YES, Plan, World, at, decision, together

ROUNDS = [10, pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(900)])]


def asked(world: World, *, carry_on: bool = False, **columns: object) -> tuple[Plan, str]:
    """A run that asks for a decision, parked on it or gone on."""
    plan, signal = world.plan(approvals="carryOn" if carry_on else "park"), decision()
    signal.call_id, signal.carry_on, signal.action = "c1", carry_on, {"skill": "email.send", "input": {}}
    claim = world.claimed(plan.run("a"))
    if carry_on:
        world.write(at(claim, signals=[signal]))
    else:
        world.park(at(claim, signals=[signal], park=Park("needs_input", "signals", [signal.id])))
    if columns:
        world.set(t.signals, signal.id, **columns)
    return plan, signal.id


def sound(world: World) -> None:
    with world.database.read() as connection:
        found = invariants.broken(connection)
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("rounds", ROUNDS)
def test_a_cancel_and_a_yes_in_the_same_moment(rounds: int, world: World) -> None:
    for _ in range(rounds):
        plan, signal_id = asked(world)

        _, said = together(
            lambda p=plan: world.database.write(lambda c: projects.cancel(c, p.id, "enough")),
            lambda s=signal_id: world.database.write(lambda c: signals.answer(c, s, YES, rejected=False, by="me")),
        )

        row = world.row(t.signals, signal_id)
        assert world.run(plan.run("a")).status == plan.row.status == "cancelled"
        assert world.claim(plan.run("a")) is None, "nothing of it is executed"
        if isinstance(said, Refused):
            assert (said.code, row.status) == ("run_ended", "expired")
        else:
            assert (row.status, row.execution) == ("answered", "none")
    sound(world)


@pytest.mark.parametrize("rounds", ROUNDS)
def test_a_cancel_and_the_beginning_of_an_approved_action(rounds: int, world: World) -> None:
    begun = 0
    for _ in range(rounds):
        plan, signal_id = asked(world, carry_on=True)
        world.database.write(lambda c, s=signal_id: signals.answer(c, s, YES, rejected=False, by="me"))

        _, action = together(
            lambda p=plan: world.database.write(lambda c: projects.cancel(c, p.id, "enough")),
            lambda p=plan: world.database.write(lambda c: actions.claim(c, p.id)),
        )

        row = world.row(t.signals, signal_id)
        assert row.execution == ("declined" if action is None else "started")
        assert world.database.write(lambda c, p=plan: actions.claim(c, p.id)) is None
        if action is not None:  # it came before the cancel: it is told to stop, and how it came out is recorded
            begun += 1
            with world.database.read() as connection:
                assert actions.cancelled(connection, plan.id)
            result = {"ok": False, "code": "cancelled", "error": "stopped"}
            world.database.write(lambda c, a=action, r=result: actions.settle(c, a, r, [], []))
    sound(world)


def test_nothing_of_a_cancelled_project_is_begun_however_its_yes_came_about(world: World) -> None:
    plan, signal_id = asked(world, carry_on=True)
    world.database.write(lambda c: projects.cancel(c, plan.id, "enough"))
    world.set(t.signals, signal_id, status="answered", rejected=False, answered_by="me", answered_at=1)

    assert world.database.write(lambda c: actions.claim(c, plan.id)) is None


@pytest.mark.parametrize("rounds", ROUNDS)
def test_the_end_of_its_time_and_a_yes_in_the_same_moment(rounds: int, world: World) -> None:
    for _ in range(rounds):
        plan, signal_id = asked(world, expires_at=1)

        _, said = together(
            lambda: world.database.write(lambda c: signals.expire_due(c, 10)),
            lambda s=signal_id: world.database.write(lambda c: signals.answer(c, s, YES, rejected=False, by="me")),
        )

        row = world.row(t.signals, signal_id)
        assert isinstance(said, Refused), "after its time a yes is none, whoever closes it"
        assert (row.status, row.answered_by, row.rejected) == ("expired", None, True)
        assert world.run(plan.run("a")).status == "queued"
    sound(world)


def test_runs_that_ask_in_the_same_moment_share_the_places_for_decisions(world: World) -> None:
    plan = world.plan({key: [] for key in "abcdef"})
    claims = [world.claimed(plan.run(key)) for key in "abcdef"]

    def ask(number: int) -> None:
        signal = decision()
        signal.most_open, signal.call_id = 4, f"c{number}"
        world.park(at(claims[number], signals=[signal], park=Park("needs_input", "signals", [signal.id])))

    assert together(*(lambda n=n: ask(n) for n in range(6))) == [None] * 6

    rows = world.all(select(t.signals))
    assert sorted(row.status for row in rows) == ["expired"] * 2 + ["open"] * 4
    runs = {row.id: world.run(row.run_id).status for row in rows}
    assert all(runs[row.id] == ("needs_input" if row.status == "open" else "queued") for row in rows)
    assert [told["reason"] for told in plan.kinds("signal.expired")] == ["quota"] * 2
    with world.database.read() as connection:
        assert not signals.was_refused(connection, plan.tasks["a"], plan.run("a"), "d"), "nobody said no"
    sound(world)


def test_what_a_skill_asked_on_the_side_wakes_no_run(world: World, store_settings: Settings) -> None:
    from orchestrator.ports.signals import DeskSignals
    from orchestrator.store import stuck
    from registry.errors import SkillError
    from registry.skills.context import Caller

    plan, _ = asked(world)
    run_id = plan.run("a")
    desk = DeskSignals(store_settings, world.database)
    caller = Caller("run", project_id=plan.id, task_id=plan.tasks["a"], run_id=run_id, agent_id="hand", call_id="c2")
    about: dict[str, Any] = {
        "title": "Which?",
        "body": "",
        "options": ["a", "b"],
        "priority": "normal",
        "expires_in_hours": 1,
    }
    raised = desk.raise_signal(caller, kind="question", **about)

    answered = {"optionIds": ["a"]}
    world.database.write(lambda c: signals.answer(c, raised.signal_id, answered, rejected=False, by="me"))

    assert world.run(run_id).status == "needs_input", "it waits for its own question"
    assert world.database.write(lambda c: stuck.wake(c, 10)) == []
    world.database.write(lambda c: projects.cancel(c, plan.id, "enough"))
    with pytest.raises(SkillError, match="ended meanwhile"):
        desk.raise_signal(replace(caller, call_id="c3"), kind="question", **about)
    sound(world)


def test_a_notice_is_dismissed_once_and_a_question_never(world: World) -> None:
    plan, signal_id = asked(world)
    with pytest.raises(Refused) as refused:
        world.database.write(lambda c: signals.dismiss(c, signal_id, by="me"))
    assert refused.value.code == "not_dismissible"

    notice = decision()
    notice.kind, notice.call_id = "notice", None
    world.database.write(lambda c: signals.insert_raised(c, plan.run("a"), [notice]))
    said = together(*[lambda: world.database.write(lambda c: signals.dismiss(c, notice.id, by="me"))] * 3)
    assert sum(isinstance(one, Refused) for one in said) == 2
    assert world.row(t.signals, notice.id).status == "dismissed"
    with pytest.raises(Refused) as late:
        world.database.write(lambda c: signals.answer(c, notice.id, {}, rejected=False, by="me"))
    assert late.value.code == "already_answered"
