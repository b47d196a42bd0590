"""Parks and what ends them: whoever comes first, answer or park, timer or child, no wake-up is ever lost."""

import random
from functools import partial

import pytest
from sqlalchemy import select

from orchestrator.records import Fanout, Park
from orchestrator.store import runs, signals
from orchestrator.store import tables as t
from registry.errors import Refused
from tests.contract.store.world import YES, Plan, World, at, child, decision, together

ROUNDS = [pytest.param(25, id="short"), pytest.param(200, id="long", marks=pytest.mark.long)]


def answer(world: World, signal_id: str) -> object:
    return world.database.write(lambda c: signals.answer(c, signal_id, YES, rejected=False, by="someone"))


@pytest.mark.parametrize("rounds", ROUNDS)
def test_a_park_and_an_answer_in_the_same_moment_never_lose_the_wake_up(world: World, rounds: int) -> None:
    plan = world.plan({f"t{n}": [] for n in range(rounds)}, cap=rounds + 1)
    for key in plan.tasks:
        claim = world.claimed(plan.run(key))
        signal = decision()
        world.write(at(claim, number=None, signals=[signal], events=[]))
        parked = at(claim, park=Park("needs_input", "signals", [signal.id]), events=[])
        works = [partial(world.park, parked), partial(answer, world, signal.id)]
        if random.random() < 0.5:
            works.reverse()

        results = together(*works)

        assert not [r for r in results if isinstance(r, Exception)]
        run = world.run(claim.run_id)
        assert (run.status, run.waiting_on, run.resumed_by) == ("queued", None, "answer")
        assert plan.status(key) in ("needs_input", "queued")


def test_an_answer_before_the_park_queues_the_run_at_once(world: World) -> None:
    plan = world.plan()
    claim = world.claimed(plan.run("a"))
    first, second = decision(), decision()
    world.write(at(claim, number=None, signals=[first, second]))
    answer(world, first.id)
    assert world.run(claim.run_id).status == "running", "a run at work goes on with its work"

    woken = world.park(at(claim, park=Park("needs_input", "signals", [first.id, second.id])))

    assert [wake.run_id for wake in woken] == [claim.run_id]
    assert world.run(claim.run_id).status == "queued"


def test_a_parked_run_holds_nothing_and_gives_its_place_away(world: World) -> None:
    plan = world.plan({"a": [], "b": []}, cap=1)
    claim = world.claimed(plan.run("a"))
    signal = decision()

    woken = world.park(at(claim, signals=[signal], park=Park("needs_input", "signals", [signal.id])))

    assert [wake.run_id for wake in woken] == [plan.run("b")]
    run = world.run(claim.run_id)
    assert (run.status, run.worker_id, run.due_at, run.claims) == ("needs_input", None, None, 0)
    assert plan.status("a") == "needs_input"


@pytest.mark.parametrize("rounds", ROUNDS)
def test_the_two_last_children_in_the_same_moment_wake_their_parent_once(world: World, rounds: int) -> None:
    plan = world.plan({f"t{n}": [] for n in range(rounds)}, cap=3 * rounds)
    for key in plan.tasks:
        parent = world.claimed(plan.run(key))
        claims = [world.claimed(run_id) for run_id in world.fan_out(parent, 2)]

        results = together(*(partial(world.end_child, claim, events=[]) for claim in claims))

        woken = [wake.run_id for wakes in results for wake in wakes]
        assert woken.count(parent.run_id) == 1
        run = world.run(parent.run_id)
        assert (run.status, run.open_children, run.resumed_by, run.wakes) == ("queued", 0, "children", 1)


def test_a_fan_out_whose_children_all_failed_to_start_does_not_wait_for_them(world: World) -> None:
    plan = world.plan()
    parent = world.claimed(plan.run("a"))
    missing = [child(position) for position in range(3)]
    for one in missing:
        one.status, one.result = "failed", {"output": None, "error": {"code": "spawn_target_missing", "message": ""}}
    fanout = Fanout("spread", 1, 1, sequential=False, children=missing)

    woken = world.park(at(parent, park=Park("waiting", "children"), fanout=fanout, steps=1))

    assert [wake.run_id for wake in woken] == [parent.run_id]
    assert world.run(parent.run_id).status == "queued"


def test_a_parent_that_parks_again_after_its_last_child_goes_on(world: World) -> None:
    """Its time came while a child was ending: it looked, saw the child open, and parks once more."""
    plan = world.plan()
    parent = world.claimed(plan.run("a"))
    (only,) = world.fan_out(parent, 1)
    last = world.claimed(only)
    world.set(t.runs, parent.run_id, status="queued")
    again = world.claimed(parent.run_id)
    world.end_child(last)

    world.park(at(again, number=2, park=Park("waiting", "children")))

    assert (world.run(parent.run_id).status, world.run(parent.run_id).resumed_by) == ("queued", "children")


def test_a_sequence_lets_the_next_child_begin_when_one_ends(world: World) -> None:
    plan = world.plan()
    ids = world.fan_out(world.claimed(plan.run("a")), 3, sequential=True)
    seen = []
    for _ in ids:
        waiting = [world.run(run_id).status for run_id in ids]
        seen.append(waiting)
        world.end_child(world.claimed(ids[waiting.index("queued")]))

    assert seen == [
        ["queued", "waiting", "waiting"],
        ["completed", "queued", "waiting"],
        ["completed", "completed", "queued"],
    ]
    assert world.run(plan.run("a")).status == "queued"


def test_what_a_child_cost_is_added_to_its_parent_whether_it_ended_or_was_stopped(world: World) -> None:
    plan = world.plan()
    parent = world.claimed(plan.run("a"))
    first, second = (world.claimed(run_id) for run_id in world.fan_out(parent, 2))
    world.end_child(first, cost_micro=100)
    grandchild = world.claimed(world.fan_out(second, 1)[0])
    world.write(at(grandchild, cost_micro=20))
    world.set(t.runs, parent.run_id, status="queued")
    again = world.claimed(parent.run_id)

    world.write(at(again, number=2, cancel=[second.run_id], cost_micro=3))
    world.end(again, number=3)

    assert [world.run(c.run_id).status for c in (second, grandchild)] == ["cancelled"] * 2
    assert world.run(parent.run_id).cost_micro == 123
    assert plan.row.cost_micro == 123


@pytest.mark.parametrize("rounds", ROUNDS)
def test_the_end_of_a_child_and_the_end_of_its_time_in_one_moment(world: World, rounds: int) -> None:
    plan = world.plan({f"t{n}": [] for n in range(rounds)}, cap=3 * rounds)
    for key in plan.tasks:
        parent = world.claimed(plan.run(key))
        made = [child(0)]
        fanout = Fanout("spread", 1, 1, sequential=False, children=made)
        world.park(at(parent, park=Park("waiting", "children", due_in_ms=0), fanout=fanout, steps=1, events=[]))
        claim = world.claimed(made[0].id)

        together(
            partial(world.end_child, claim, events=[]), partial(world.database.write, lambda c: runs.wake_due(c, 9))
        )

        run = world.run(parent.run_id)
        assert (run.status, run.open_children) == ("queued", 0)
        assert run.resumed_by in ("children", "timer")


def test_one_answer_among_fifty_counts_and_the_others_hear_which(world: World) -> None:
    plan = world.plan()
    signal_id = asked(world, plan)

    said = [{"approved": n % 2 == 0} for n in range(50)]
    results = together(
        *(
            partial(
                world.database.write,
                lambda c, n=n: signals.answer(c, signal_id, said[n], rejected=n % 2 == 1, by=f"person {n}"),
            )
            for n in range(50)
        )
    )

    lost = [r for r in results if isinstance(r, Refused)]
    assert len(lost) == 49
    assert {r.code for r in lost} == {"already_answered"}
    winner = next(n for n, r in enumerate(results) if not isinstance(r, Exception))
    row = world.row(t.signals, signal_id)
    assert (row.answer, row.answered_by) == (said[winner], f"person {winner}")
    assert f"from person {winner}" in lost[0].message
    assert len(plan.kinds("signal.answered")) == 1


def test_a_grant_is_used_once(world: World) -> None:
    plan = world.plan()
    signal_id = asked(world, plan)
    answer(world, signal_id)
    claim = world.claimed(plan.run("a"))
    world.write(at(claim, number=None, consume={signal_id: "started"}))

    with pytest.raises(Refused) as refused:
        world.write(at(claim, number=2, consume={signal_id: "started"}))

    assert refused.value.code == "already_executed"
    assert world.row(t.signals, signal_id).execution == "started"
    world.write(at(claim, number=2, settle={signal_id: "succeeded"}))
    assert world.row(t.signals, signal_id).execution == "succeeded"


@pytest.mark.parametrize("rounds", [10])
def test_an_answer_and_the_end_of_its_time_in_one_moment(world: World, rounds: int) -> None:
    plan = world.plan({f"t{n}": [] for n in range(rounds)})
    for key in plan.tasks:
        signal_id = asked(world, plan, key)
        world.set(t.signals, signal_id, expires_at=0)

        said, closed = together(
            partial(answer, world, signal_id),
            partial(world.database.write, lambda c: signals.expire_due(c, 10)),
        )

        row = world.row(t.signals, signal_id)
        assert isinstance(said, Refused), "its time was over before either came"
        assert said.code == "already_answered"
        assert [one.signal_id for one in closed] == [signal_id]
        assert (row.status, row.answer) == ("expired", None)
        assert world.run(plan.run(key)).status == "queued", "the run hears that nobody answered"


def test_the_refusals_of_an_answer_tell_apart_why(world: World) -> None:
    plan = world.plan({"late": [], "gone": []})
    late, gone = asked(world, plan, "late"), asked(world, plan, "gone")
    world.set(t.signals, late, expires_at=0)
    world.database.write(lambda c: signals.expire_due(c, 10))
    world.set(t.runs, plan.run("gone"), status="queued")
    world.end(world.claimed(plan.run("gone")), "failed", number=2)

    def code(signal_id: str) -> str:
        with pytest.raises(Refused) as refused:
            answer(world, signal_id)
        return refused.value.code

    assert code("no such signal") == "unknown_signal"
    assert code(late) == "already_answered"
    assert code(gone) == "run_ended"


def test_a_question_closed_by_the_end_of_its_run_was_not_refused_by_anybody(world: World) -> None:
    plan = world.plan({"a": [], "b": []})
    open_at_the_end, timed_out = asked(world, plan, "a"), asked(world, plan, "b")
    world.set(t.runs, plan.run("a"), status="queued")
    world.end(world.claimed(plan.run("a")), "failed", number=2)
    world.set(t.signals, timed_out, expires_at=0)
    world.database.write(lambda c: signals.expire_due(c, 10))

    with world.database.read() as c:
        refused = {key: signals.was_refused(c, plan.tasks[key], plan.run(key), "d") for key in "ab"}

    assert refused == {"a": False, "b": True}, "silence until the end of its time is a no; the end of the run is not"
    assert world.row(t.signals, open_at_the_end).status == "expired"


def asked(world: World, plan: Plan, key: str = "a") -> str:
    """A run that waits for a decision; gives the signal."""
    claim = world.claimed(plan.run(key))
    signal = decision()
    world.park(at(claim, signals=[signal], park=Park("needs_input", "signals", [signal.id])))
    assert world.all(select(t.signals.c.status).where(t.signals.c.id == signal.id))[0].status == "open"
    return signal.id
