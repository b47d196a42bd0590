"""Several runs in one transaction: claimed, read and ended together, and still each for itself."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event

import pytest
from sqlalchemy import Connection, select, text

from orchestrator.records import Ending, Wake
from orchestrator.store import claims, joins, loading, wakes
from orchestrator.store import tables as t
from orchestrator.store.claims import Claim
from orchestrator.store.database import now_ms
from tests.contract.store.world import LEASE_MS, World, at, together
from tests.support import eventually


def claim_all(world: World, run_ids: list[str]) -> dict[str, Claim]:
    return world.database.write(lambda c: claims.claim_all(c, run_ids, world.worker, LEASE_MS))


def siblings(world: World, run_id: str, limit: int) -> dict[str, Claim]:
    return world.database.write(lambda c: claims.claim_siblings(c, run_id, limit, world.worker, LEASE_MS))


def end_all(world: World, claims: list[Claim]) -> dict[str, list[Wake] | None]:
    batch = [at(claim, ending=Ending("completed", result={"output": 1}), cost_micro=5) for claim in claims]
    return {c.run_id: ready for c, ready in world.database.write(lambda c: joins.end(c, batch))}


def test_runs_claimed_together_are_claimed_like_one(world: World) -> None:
    plan = world.plan({"a": [], "b": [], "c": ["a"]})
    both = [plan.run("a"), plan.run("b")]

    claims = claim_all(world, [*both, "no such run"])

    assert sorted(claims) == sorted(both)
    assert {(claim.fence, claim.claims) for claim in claims.values()} == {(1, 1)}
    assert [plan.status(key) for key in "abc"] == ["running", "running", "pending"]
    assert len(plan.kinds("run.started")) == 2
    assert claim_all(world, both) == {}


def test_a_marked_run_has_its_place_and_nobody_else_gets_it(world: World) -> None:
    plan = world.plan({"a": [], "b": [], "c": []}, cap=2)
    marked = [wake.run_id for wake in world.database.write(lambda c: wakes.advance(c, plan.id))]
    (late,) = {plan.run(key) for key in "abc"} - set(marked)

    assert world.claim(late) is None, "both places are given, though nobody works yet"
    assert sorted(claim_all(world, [*marked, late])) == sorted(marked)


def test_siblings_are_claimed_in_order_and_by_one_worker_each(world: World) -> None:
    plan = world.plan()
    made = world.fan_out(world.claimed(plan.run("a")), 12)
    world.claimed(made[0])

    assert sorted(siblings(world, made[0], 3)) == sorted(made[1:4])
    found = together(*(partial(siblings, world, made[0], 4) for _ in range(4)))

    taken = [run_id for claims in found for run_id in claims]
    assert len(taken) == len(set(taken))
    assert set(taken) | set(siblings(world, made[0], 12)) == set(made[4:])
    assert siblings(world, plan.run("a"), 5) == {}, "a root has none"


def test_children_that_have_not_begun_are_read_together_as_each_would_be_alone(world: World) -> None:
    plan = world.plan()
    made = world.fan_out(world.claimed(plan.run("a")), 3)
    claims = claim_all(world, made)

    with world.database.read() as c:
        found = loading.fresh(c, {run_id: claim.fence for run_id, claim in claims.items()})
        alone = {run_id: loading.load(c, run_id, claim.fence) for run_id, claim in claims.items()}

    assert found == alone
    world.write(at(claims[made[0]]))
    with world.database.read() as c:
        assert set(loading.fresh(c, dict.fromkeys([*made, plan.run("a")], 1))) == set(made[1:])


@pytest.mark.parametrize("size", [1, 3])
def test_children_that_end_together_bring_their_parent_what_they_would_one_by_one(world: World, size: int) -> None:
    plan = world.plan()
    parent = world.claimed(plan.run("a"))
    claims = list(claim_all(world, world.fan_out(parent, 6)).values())
    woken: list[str] = []

    for first in range(0, 6, size):
        ended = end_all(world, claims[first : first + size])
        woken += [wake.run_id for ready in ended.values() for wake in ready or []]

    assert woken == [parent.run_id], "once, by the last"
    row = world.run(parent.run_id)
    assert (row.status, row.open_children, row.cost_micro) == ("queued", 0, 30)
    assert [line.seq for line in plan.trace] == list(range(1, len(plan.trace) + 1))


def test_a_child_that_was_lost_ends_nothing_and_its_neighbours_do(world: World) -> None:
    plan = world.plan()
    parent = world.claimed(plan.run("a"))
    claims = list(claim_all(world, world.fan_out(parent, 3)).values())
    world.set(t.runs, claims[1].run_id, fence=9)

    ended = end_all(world, claims)

    assert [ended[claim.run_id] is None for claim in claims] == [False, True, False]
    assert world.run(claims[1].run_id).status == "running"
    assert world.run(parent.run_id).open_children == 1


def test_ends_of_many_cost_little_more_than_one(world: World) -> None:
    plan = world.plan()
    one = list(claim_all(world, world.fan_out(world.claimed(plan.run("a")), 30)).values())

    few = world.counted(lambda: end_all(world, one[:2]))
    many = world.counted(lambda: end_all(world, one[2:22]))

    assert len(many) == len(few)


def test_a_parent_whose_mark_found_its_project_busy_is_looked_at_soon(world: World) -> None:
    if world.database.sqlite:
        pytest.skip("SQLite has one writer at a time: nobody finds a project busy")
    plan = world.plan()
    root = plan.run("a")
    claims = [world.claimed(child) for child in world.fan_out(world.claimed(root), 2)]
    waits = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    counted, locked, commit, done = (Event() for _ in range(4))

    def first(connection: Connection) -> None:
        joins.end(connection, [at(claims[0], ending=Ending("completed"))])
        counted.set()
        assert commit.wait(10)

    def busy(connection: Connection) -> None:
        wakes.lock_places(connection, plan.id)
        locked.set()
        assert done.wait(10)

    with ThreadPoolExecutor(3) as pool:
        begun = pool.submit(world.database.write, first)
        assert counted.wait(10)
        second = pool.submit(end_all, world, claims[1:])
        eventually(lambda: world.all(waits)[0][0] > 0, 10)
        holder = pool.submit(world.database.write, busy)
        assert locked.wait(10)
        commit.set()
        assert second.result(10) == {claims[1].run_id: []}
        done.set()
        begun.result(10), holder.result(10)
    row = world.run(root)
    assert (row.status, row.wakes) == ("queued", 0)
    now = world.all(select(now_ms()))[0][0]
    assert row.due_at - now <= wakes.FIRST_RESEND_MS
