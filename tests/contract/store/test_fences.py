"""The fence: a worker whose run was taken over, stopped and resumed, or cancelled, writes nothing at all."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import func, select

from orchestrator.records import CallRecord, Fanout, FileRecord, MessageRecord, Park
from orchestrator.store import projects, runs
from orchestrator.store import tables as t
from orchestrator.store.claims import Claim
from orchestrator.store.committer import Committer
from registry.errors import LeaseStale
from tests.contract.store.world import LEASE_MS, Plan, World, at, child, decision

TABLES = (t.events, t.messages, t.calls, t.checkpoints, t.signals, t.files)


def everything() -> dict[str, Any]:
    """One of each thing a checkpoint may hold."""
    return {
        "patch": {"set": {"k": 1}},
        "messages": [MessageRecord(1, "messages", {"role": "user", "content": "x"})],
        "calls": [CallRecord("c1", "act", 1, 0, "tool", {}, "started")],
        "signals": [decision()],
        "files": [FileRecord("a.txt", 1, "0")],
        "cost_micro": 7,
        "steps": 5,
    }


def save(world: World, claim: Claim) -> None:
    Committer(world.database, lease_ms=LEASE_MS).save(at(claim, **everything()))


def intent(world: World, claim: Claim) -> None:
    Committer(world.database, lease_ms=LEASE_MS).save(at(claim, number=None, **everything()))


def park(world: World, claim: Claim) -> None:
    world.park(at(claim, park=Park("needs_input", "signals"), **everything()))


def fan_out(world: World, claim: Claim) -> None:
    fanout = Fanout("n", 1, 1, sequential=False, children=[child(0)])
    world.park(at(claim, park=Park("waiting", "children"), fanout=fanout, **everything()))


def end(world: World, claim: Claim) -> None:
    world.end(claim, **everything())


WRITES = [save, intent, park, fan_out, end]


def taken_over(world: World, plan: Plan, claim: Claim) -> None:
    world.database.write(lambda c: runs.release(c, world.worker, refund=False))
    world.claimed(claim.run_id, "another")


def given_back(world: World, plan: Plan, claim: Claim) -> None:
    world.database.write(lambda c: runs.release_run(c, claim.run_id, claim.fence))


def cancelled(world: World, plan: Plan, claim: Claim) -> None:
    world.database.write(lambda c: projects.cancel(c, plan.id, "enough"))


@pytest.mark.parametrize("lose", [taken_over, given_back, cancelled])
@pytest.mark.parametrize("write", WRITES)
def test_a_write_under_an_old_fence_is_refused_and_leaves_no_trace(
    world: World, write: Callable[..., None], lose: Callable[..., None]
) -> None:
    plan = world.plan({"a": [], "b": ["a"]})
    claim = world.claimed(plan.run("a"))
    lose(world, plan, claim)
    before = rows(world, plan)

    with pytest.raises(LeaseStale):
        write(world, claim)

    assert rows(world, plan) == before


@pytest.mark.parametrize("write", WRITES)
def test_a_run_that_has_ended_takes_no_more_writes(world: World, write: Callable[..., None]) -> None:
    plan = world.plan()
    claim = world.claimed(plan.run("a"))
    world.end(claim)
    before = rows(world, plan)

    with pytest.raises(LeaseStale):
        write(world, claim)

    assert rows(world, plan) == before


def rows(world: World, plan: Plan) -> Any:
    """All that a write could have changed."""
    sizes = [world.all(select(func.count()).select_from(table))[0][0] for table in TABLES]
    every = select(t.runs).where(t.runs.c.project_id == plan.id).order_by(t.runs.c.id)
    tasks = select(t.tasks).where(t.tasks.c.project_id == plan.id).order_by(t.tasks.c.id)
    trace = world.row(t.traces, plan.id).seq
    return sizes, world.all(every), world.all(tasks), plan.row, trace


def test_two_lives_of_one_run_in_one_process_are_told_apart(world: World) -> None:
    """A worker that lost a run and claimed it again may hand in both lives' checkpoints in one moment."""
    plan = world.plan()
    old = world.claimed(plan.run("a"))
    world.database.write(lambda c: runs.release(c, world.worker, refund=False))
    new = world.claimed(plan.run("a"))

    from orchestrator.store import checkpoints

    batch = [at(old, steps=1), at(new, steps=2)]
    stale = world.database.write(lambda c: checkpoints.write(c, batch, lease_ms=LEASE_MS))

    assert stale == {(old.run_id, old.fence)}
    assert world.run(new.run_id).steps == 2
