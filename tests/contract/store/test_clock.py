"""The clock: rows that should move and do not are found and moved, by the ordinary moves, once."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select

from orchestrator import queue
from orchestrator.clock import Clock
from orchestrator.records import Park, Wake
from orchestrator.settings import Settings
from orchestrator.store import leases, workers
from orchestrator.store import tables as t
from orchestrator.store.database import now_ms
from orchestrator.store.house_tables import leases as leases_table
from orchestrator.store.kept import agendas, memories
from tests.contract.store.world import LEASE_MS, YES, World, at, decision, together


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs whose wake-ups were sent: there is no broker here."""
    found: list[str] = []

    def send(_settings: Settings, wakes: Any) -> int:
        new: list[Wake] = list(wakes)
        found.extend(wake.run_id for wake in new)
        return len(new)

    monkeypatch.setattr(queue, "send", send)
    return found


@pytest.fixture
def clock(world: World, store_settings: Settings, sent: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """A clock that is elected and looks for everything at each tick, and a worker with idle slots."""
    monkeypatch.setattr("orchestrator.clock.STUCK_S", 0)
    about = {"id": "w", "host": "h", "pid": 1, "slots": 8}
    world.database.write(lambda c: workers.register(c, about))
    made = Clock(store_settings, world.database, "me")
    assert not made.tick().any
    yield made
    assert not made.tick().any, "what is repaired stays so"


def test_a_lease_that_ran_out_queues_the_run_for_another_worker(world: World, clock: Clock, sent: list[str]) -> None:
    plan = world.plan()
    run_id = plan.run("a")
    world.claimed(run_id)
    world.set(t.runs, run_id, due_at=0)

    assert clock.tick().leases == 1

    run = world.run(run_id)
    assert (run.status, run.worker_id, run.claims, sent) == ("queued", None, 1, [run_id])
    assert world.claimed(run_id, "another").claims == 2
    assert plan.kinds("run.resumed") == [{"by": "lease"}]


@pytest.mark.parametrize(
    ("waiting_on", "by"), [("timer", "timer"), ("backoff", "backoff"), ("gate", "timer"), ("children", "timer")]
)
def test_a_wait_whose_time_has_come_queues_the_run(
    world: World, clock: Clock, sent: list[str], waiting_on: Any, by: str
) -> None:
    plan = world.plan()
    claim = world.claimed(plan.run("a"))
    if waiting_on == "children":
        world.fan_out(claim, 1)
    else:
        world.park(at(claim, park=Park("waiting", waiting_on, due_in_ms=60_000)))
    assert clock.tick().timers == 0
    world.set(t.runs, claim.run_id, due_at=0)

    assert clock.tick().timers == 1

    assert (world.run(claim.run_id).status, world.run(claim.run_id).resumed_by) == ("queued", by)
    assert claim.run_id in sent


def test_a_signal_past_its_time_is_closed_and_its_run_goes_on(world: World, clock: Clock, sent: list[str]) -> None:
    plan = world.plan({"a": [], "b": []})
    raised = {}
    for key in plan.tasks:
        signal = decision()
        claim = world.claimed(plan.run(key))
        world.park(at(claim, signals=[signal], park=Park("needs_input", "signals", [signal.id])))
        world.set(t.signals, signal.id, expires_at=0)
        raised[signal.id] = claim.run_id

    assert clock.tick().signals == 2

    assert {world.row(t.signals, one).status for one in raised} == {"expired"}
    assert {world.run(one).status for one in raised.values()} == {"queued"}
    assert set(sent) == set(raised.values())
    assert len(plan.kinds("signal.expired")) == 2


def test_a_queued_run_that_nobody_claims_is_woken_again_less_and_less_often(
    world: World, clock: Clock, sent: list[str]
) -> None:
    plan = world.plan()
    run_id = plan.run("a")
    world.set(t.runs, run_id, due_at=0)
    waits = []
    for _ in range(8):
        clock.tick()
        run = world.run(run_id)
        now = world.all(select(now_ms()))[0][0]
        waits.append(round((run.due_at - now) / 1000))
        world.set(t.runs, run_id, due_at=0)

    assert sent == [run_id] * 8
    assert waits == [2, 4, 8, 16, 32, 60, 60, 60]
    world.claimed(run_id)


def test_wake_ups_are_not_repeated_while_no_slot_is_idle(world: World, clock: Clock, sent: list[str]) -> None:
    plan = world.plan()
    world.set(t.runs, plan.run("a"), due_at=0, wakes=1)
    world.set(t.workers, "w", slots=0)

    assert clock.tick().wakes == 0

    world.set(t.workers, "w", slots=1)
    assert clock.tick().wakes == 1
    assert sent == [plan.run("a")]


def test_a_run_that_waited_for_a_place_is_woken_when_there_is_one(world: World, clock: Clock, sent: list[str]) -> None:
    plan = world.plan({"a": [], "b": []}, cap=1)
    first, second = plan.run("a"), plan.run("b")
    world.claimed(first)
    world.set(t.runs, second, due_at=0)
    assert clock.tick().wakes == 0

    world.set(t.runs, first, status="cancelled", due_at=None)
    world.set(t.runs, second, due_at=0)
    clock.tick()

    assert sent == [second]


def test_a_parent_without_an_open_child_is_found(world: World, clock: Clock, sent: list[str]) -> None:
    plan = world.plan()
    parent = world.claimed(plan.run("a"))
    children = world.fan_out(parent, 2)
    assert clock.tick().stuck == 0
    for run_id in children:  # as if the transaction that counts down had never been
        world.set(t.runs, run_id, status="completed", due_at=None)

    assert clock.tick().stuck == 1

    assert (world.run(parent.run_id).status, world.run(parent.run_id).resumed_by) == ("queued", "children")


def test_an_answer_that_never_queued_its_run_is_found(world: World, clock: Clock) -> None:
    plan = world.plan()
    claim = world.claimed(plan.run("a"))
    signal = decision()
    world.park(at(claim, signals=[signal], park=Park("needs_input", "signals", [signal.id])))
    assert clock.tick().stuck == 0
    world.set(t.signals, signal.id, status="answered", answer=YES)

    assert clock.tick().stuck == 1

    assert (world.run(claim.run_id).status, world.run(claim.run_id).resumed_by) == ("queued", "answer")


def test_one_clock_ticks_at_a_time_and_another_when_it_falls_silent(world: World, store_settings: Settings) -> None:
    clocks = [Clock(store_settings, world.database, f"clock {n}") for n in range(6)]
    plan = world.plan()
    world.claimed(plan.run("a"))
    world.set(t.runs, plan.run("a"), due_at=0)

    done = together(*(clock.tick for clock in clocks))
    assert sorted(one.leases for one in done) == [0, 0, 0, 0, 0, 1]

    holder = world.row(leases_table, "clock").holder
    another = next(f"clock {n}" for n in range(6) if f"clock {n}" != holder)
    assert not world.database.write(lambda c: leases.elect(c, "clock", another, 1000))
    world.set(leases_table, "clock", until=0)
    assert world.database.write(lambda c: leases.elect(c, "clock", another, 1000))
    assert not world.database.write(lambda c: leases.elect(c, "clock", holder, 1000))


def test_a_clock_at_rest_only_looks(world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = world.plan()
    world.claimed(plan.run("a"), lease_ms=LEASE_MS)
    monkeypatch.setattr("orchestrator.clock.STUCK_S", 30)
    clock.tick()

    statements = [s.split()[0] for s in world.counted(clock.tick) if "BEGIN" not in s]

    assert set(statements) == {"SELECT"}
    assert len(statements) <= 3


def test_what_is_past_its_time_is_forgotten_some_at_a_time(
    world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.clock.BATCH", 2)
    memory = {"owner_id": "local", "namespace": "owner", "kind": "note", "tags": [], "importance": 0.5, "words": 0}
    rows = [memory | {"id": str(n), "content": str(n), "content_hash": str(n), "expires_at": 1} for n in range(5)]
    rows += [memory | {"id": "young", "content": "y", "content_hash": "y", "expires_at": 10**15}]
    world.database.write(lambda c: c.execute(memories.insert().values(created_at=1), rows))
    agenda = {"owner_id": "local", "overview": "x", "created_at": 1}
    old, new = {"id": "old", "space": "a", "updated_at": 1}, {"id": "new", "space": "b", "updated_at": 10**15}
    plans = [agenda | old, agenda | new]
    world.database.write(lambda c: c.execute(agendas.insert(), plans))

    clock._forget_at = 0.0
    for _ in range(3):
        clock.tick()
    assert [row.id for row in world.all(select(memories))] == ["young"]
    assert [row.id for row in world.all(select(agendas))] == ["new"]
