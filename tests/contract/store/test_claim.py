"""Claiming a run: one conditional update, and whoever has no row has nothing to do."""

from orchestrator.store import projects
from orchestrator.store import tables as t
from tests.contract.store.world import World, at, live, together


def test_exactly_one_of_twelve_concurrent_claimers_wins(world: World) -> None:
    for _ in range(10):
        plan = world.plan()
        run_id = plan.run("a")

        claims = together(*(lambda n=n, run_id=run_id: world.claim(run_id, f"worker-{n}") for n in range(12)))

        won = [claim for claim in claims if claim is not None]
        assert len(won) == 1
        assert world.run(run_id).worker_id == f"worker-{claims.index(won[0])}"
        assert plan.kinds("run.started") == [{"attempt": 1, "depth": 0}]


def test_the_places_of_a_project_hold_under_concurrent_claims(world: World) -> None:
    plan = world.plan({f"t{n}": [] for n in range(12)}, cap=3)
    ids = [plan.run(key) for key in plan.tasks]

    claims = together(*(lambda run_id=run_id: world.claim(run_id) for run_id in ids))

    assert sum(claim is not None for claim in claims) == 3
    assert sorted(run.status for run in live(world, plan)) == ["queued"] * 9 + ["running"] * 3


def test_a_place_is_free_again_when_a_run_ends(world: World) -> None:
    plan = world.plan({"a": [], "b": []}, cap=1)
    first = world.claimed(plan.run("a"))
    assert world.claim(plan.run("b")) is None

    woken = world.end(first)

    assert [wake.run_id for wake in woken] == [plan.run("b")], "the one that waited is woken by the one that left"
    assert world.claim(plan.run("b")) is not None


def test_nothing_of_an_ended_project_can_be_claimed(world: World) -> None:
    plan = world.plan()
    run_id = plan.run("a")
    world.database.write(lambda c: projects.cancel(c, plan.id, "enough"))
    world.set(t.runs, run_id, status="queued")

    assert world.claim(run_id) is None
    assert world.claim("a run that is not there") is None


def test_a_claim_counts_an_attempt_before_any_work_and_a_checkpoint_clears_it(world: World) -> None:
    plan = world.plan()
    run_id = plan.run("a")
    for attempt in (1, 2):
        claim = world.claimed(run_id)
        assert (claim.claims, claim.fence) == (attempt, attempt)
        world.set(t.runs, run_id, status="queued")

    claim = world.claimed(run_id)
    world.write(at(claim, number=None))
    assert world.run(run_id).claims == 3, "a small write is no progress"
    world.write(at(claim))

    assert world.run(run_id).claims == 0


def test_a_claim_moves_its_task_and_tells_it_once(world: World) -> None:
    plan = world.plan()

    world.claimed(plan.run("a"))

    assert plan.status("a") == "running"
    assert [line.kind for line in plan.trace][-2:] == ["task.status", "run.started"]
