"""Traces: numbers from 1 without gaps, whoever writes at the same time, and nothing of what was not committed."""

from functools import partial

import pytest

from orchestrator.records import Event
from orchestrator.store import events
from orchestrator.store.committer import Committer
from tests.contract.store.world import LEASE_MS, World, at, together


def test_numbers_have_no_gaps_under_concurrency(world: World) -> None:
    plan = world.plan({f"t{n}": [] for n in range(8)})
    claims = [world.claimed(plan.run(key)) for key in plan.tasks]
    committer = Committer(world.database, lease_ms=LEASE_MS)

    def work(claim: object) -> None:
        for number in range(1, 11):
            lines = [Event("think", {"number": number, "line": line}, run_id=claim.run_id) for line in range(3)]  # type: ignore[attr-defined]
            committer.save(at(claim, number, events=lines))  # type: ignore[arg-type]

    assert together(*(partial(work, claim) for claim in claims)) == [None] * 8

    trace = plan.trace
    assert [line.seq for line in trace] == list(range(1, len(trace) + 1))
    for claim in claims:
        mine = [
            (line.data["number"], line.data["line"])
            for line in trace
            if line.run_id == claim.run_id and line.kind == "think"
        ]
        assert mine == [(number, line) for number in range(1, 11) for line in range(3)], "each run in its own order"


def test_a_transaction_that_fails_leaves_no_gap(world: World) -> None:
    plan = world.plan()
    before = len(plan.trace)

    def fail(c: object) -> None:
        events.append(c, plan.id, [Event("think", {})])  # type: ignore[arg-type]
        raise ValueError("not this time")

    with pytest.raises(ValueError, match="not this time"):
        world.database.write(fail)
    world.claimed(plan.run("a"))

    assert [line.seq for line in plan.trace][before:] == list(range(before + 1, len(plan.trace) + 1))


def test_a_follower_reads_on_from_where_it_was(world: World) -> None:
    plan = world.plan()
    world.database.write(lambda c: events.append(c, plan.id, [Event("think", {"n": n}) for n in range(5)]))
    with world.database.read() as c:
        last = events.last(c, plan.id)
        tail = events.after(c, plan.id, last - 3)
        page = events.after(c, plan.id, 0, limit=2)

    assert [line.data["n"] for line in tail] == [2, 3, 4]
    assert [line.seq for line in page] == [1, 2]


def test_no_secret_gets_into_a_trace(world: World) -> None:
    plan = world.plan()
    said = {
        "input": {
            "url": "https://me:hunter2@shop.example/?page=2&api_key=hunter2",
            "headers": {"Authorization": "Bearer hunter2", "Accept": "text/plain"},
        },
        "text": "the key is sk-hunter2hunter2",
    }
    world.database.write(lambda c: events.append(c, plan.id, [Event("tool.call", said)]))

    shown = plan.trace[-1].data

    assert "hunter2" not in str(shown)
    assert shown["input"]["headers"]["Accept"] == "text/plain"
    assert "page=2" in shown["input"]["url"]


def test_lines_of_several_traces_are_numbered_together_each_in_its_own(world: World) -> None:
    plans = [world.plan() for _ in range(3)]
    before = [len(plan.trace) for plan in plans]

    def write(number: int) -> None:
        # Each hands them in by another order: the counters are locked by their ids.
        some = plans[number % 3 :] + plans[: number % 3]
        lines = {plan.id: [Event("think", {"by": number})] if plan is not plans[0] else [] for plan in some}
        world.database.write(lambda c: events.append_all(c, lines))

    assert together(*(partial(write, number) for number in range(6))) == [None] * 6

    for plan, known, more in zip(plans, before, (0, 6, 6), strict=True):
        assert [line.seq for line in plan.trace] == list(range(1, known + more + 1))
        assert {line.data["by"] for line in plan.trace[known:]} == set(range(6 if more else 0))
