"""Root runs that complete in one transaction: as if each had ended alone, for little more than one of them costs."""

from collections.abc import Sequence

import pytest

from orchestrator.records import Ending, Wake
from orchestrator.store import claims, completions, loading
from orchestrator.store import tables as t
from orchestrator.store.claims import Alike, Claim
from tests.contract.store.world import LEASE_MS, Plan, World, at


def claims_of(world: World, plan: Plan, keys: str) -> list[Claim]:
    ids = [plan.run(key) for key in keys]
    made = world.database.write(lambda c: claims.claim_all(c, ids, world.worker, LEASE_MS))
    return [made[run_id] for run_id in ids]


def complete(world: World, claims: Sequence[Claim]) -> list[list[Wake] | None]:
    batch = [at(claim, ending=Ending("completed", output=f"of {claim.run_id}"), cost_micro=5) for claim in claims]
    return world.database.write(lambda c: completions.end(c, batch))


def alike(world: World, plan: Plan, limit: int, marked: Sequence[str] = ()) -> list[str]:
    digest = world.run(plan.run("a")).definition_digest
    wanted = Alike(plan.id, digest, tuple(marked), limit)
    return sorted(world.database.write(lambda c: claims.claim_alike(c, [wanted], world.worker, LEASE_MS)))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_tasks_that_complete_together_free_their_dependents_once(world: World, size: int) -> None:
    plan = world.plan({"a": [], "b": [], "c": [], "d": ["a", "b", "c"], "e": ["a"], "f": ["d"]})
    claims = claims_of(world, plan, "abc")

    for first in range(0, 3, size):
        assert None not in complete(world, claims[first : first + size])

    assert [plan.status(key) for key in "abcdef"] == ["completed"] * 3 + ["queued", "queued", "pending"]
    assert world.row(t.tasks, plan.tasks["f"]).open_dependencies == 1
    assert (plan.row.cost_micro, plan.row.open_tasks, plan.row.completed_tasks) == (15, 3, 3)
    assert world.row(t.tasks, plan.tasks["b"]).output == f"of {claims[1].run_id}"
    assert [line.seq for line in plan.trace] == list(range(1, len(plan.trace) + 1))
    told = [line for line in plan.kinds("task.status") if line["status"] == "completed"]
    assert [line["costUsd"] for line in told] == [0.000005] * 3


def test_the_last_tasks_of_several_projects_end_them_all(world: World) -> None:
    plans = [world.plan({"a": [], "b": []}) for _ in range(2)]
    claims = [claim for plan in plans for claim in claims_of(world, plan, "ab")]

    complete(world, claims)

    assert [plan.row.status for plan in plans] == ["completed", "completed"]
    assert [[line["status"] for line in plan.kinds("project.status")][-1] for plan in plans] == ["completed"] * 2


def test_a_run_that_was_lost_completes_nothing_and_its_neighbours_do(world: World) -> None:
    plan = world.plan({"a": [], "b": [], "c": ["a", "b"]})
    claims = claims_of(world, plan, "ab")
    world.set(t.runs, claims[0].run_id, fence=9)

    ended = complete(world, claims)

    assert [ready is None for ready in ended] == [True, False]
    assert [plan.status(key) for key in "abc"] == ["running", "completed", "pending"]


def test_completing_many_costs_as_many_statements_as_completing_two(world: World) -> None:
    keys = [f"k{n}" for n in range(22)]
    plan = world.plan({"a": [], **{key: [] for key in keys}, **{f"after {key}": [key] for key in keys}})
    ids = [plan.run(key) for key in keys]
    made = world.database.write(lambda c: claims.claim_all(c, ids, world.worker, LEASE_MS))
    mine = [made[run_id] for run_id in ids]

    few = world.counted(lambda: complete(world, mine[:2]))
    many = world.counted(lambda: complete(world, mine[2:]))

    assert len(many) == len(few)


def test_root_runs_that_have_not_begun_are_read_together_as_each_would_be_alone(world: World) -> None:
    plan = world.plan({"a": [], "b": [], "c": ["a"]})
    other = world.plan()
    complete(world, claims_of(world, plan, "a"))
    claims = {claim.run_id: claim.fence for claim in (*claims_of(world, plan, "bc"), *claims_of(world, other, "a"))}

    with world.database.read() as c:
        found = loading.fresh(c, claims)
        alone = {run_id: loading.load(c, run_id, fence) for run_id, fence in claims.items()}

    assert found == alone
    assert "of " in str(found[plan.run("c")].input), "what its dependency left"


def test_what_may_follow_in_a_slot_is_as_many_as_there_are_places(world: World) -> None:
    plan = world.plan({key: [] for key in "abcdef"}, cap=4)
    claims_of(world, plan, "a")

    assert alike(world, plan, 2) == sorted([plan.run("b"), plan.run("c")])
    assert alike(world, plan, 5) == [plan.run("d")]
    assert alike(world, plan, 5) == [], "the project has no place free"


def test_only_runs_of_one_definition_follow_one_another(world: World) -> None:
    plan = world.plan({"a": [], "b": []})
    claims_of(world, plan, "a")
    wanted = Alike(plan.id, "another", (), 5)

    assert world.database.write(lambda c: claims.claim_alike(c, [wanted], world.worker, LEASE_MS)) == {}
    assert plan.status("b") == "queued"
