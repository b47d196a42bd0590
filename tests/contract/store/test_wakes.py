"""Wake-ups: every free place goes to one run, and to another one each, whoever frees them at the same time."""

from sqlalchemy import select

from orchestrator.records import Park
from orchestrator.store import tables as t
from orchestrator.store import wakes
from tests.contract.store.world import World, at, together


def test_the_oldest_runs_are_woken_and_no_more_than_there_are_places(world: World) -> None:
    plan = world.plan({f"t{n}": [] for n in range(6)}, cap=3)

    first = world.database.write(lambda c: wakes.take(c, plan.id))

    assert [wake.run_id for wake in first] == [plan.run(f"t{n}") for n in range(3)]
    assert world.database.write(lambda c: wakes.take(c, plan.id)) == [], "what was sent has its place already"
    world.claimed(first[0].run_id)
    assert world.database.write(lambda c: wakes.take(c, plan.id)) == [], "and so has what runs"


def test_places_that_become_free_together_wake_different_runs(world: World) -> None:
    plan = world.plan({f"t{n:02}": [] for n in range(40)}, cap=8)
    claims = [world.claimed(wake.run_id) for wake in world.database.write(lambda c: wakes.take(c, plan.id))]
    waits = Park("waiting", "timer", due_in_ms=600_000)

    woken = together(*(lambda claim=claim: world.park(at(claim, park=waits)) for claim in claims))

    ids = [wake.run_id for wakes_of_one in woken for wake in wakes_of_one]
    assert len(ids) == len(set(ids)), "nobody is woken twice"
    later = world.database.write(lambda c: wakes.take(c, plan.id))
    assert len(ids) + len(later) == 8, "and no place is forgotten"
    assert {row.wakes for row in world.all(select(t.runs.c.wakes))} == {0, 1}


def test_a_project_may_be_made_with_its_first_runs_marked_as_they_would_be_after_it(world: World) -> None:
    tasks: dict[str, list[str]] = {f"t{n}": [] for n in range(6)} | {"last": ["t0"]}
    later, at_once = world.plan(tasks, cap=3), world.plan(tasks, cap=3, wake=True)

    after = world.database.write(lambda c: wakes.advance(c, later.id))

    assert not later.woken
    labels = [(wake.project, wake.task, wake.agent, wake.priority, wake.queue) for wake in at_once.woken]
    assert labels == [(wake.project, wake.task, wake.agent, wake.priority, wake.queue) for wake in after]
    assert [wake.run_id for wake in at_once.woken] == [at_once.run(f"t{n}") for n in range(3)]
    assert world.row(t.runs, at_once.run("t0")).wakes == 1
    assert world.row(t.runs, at_once.run("t3")).wakes == 0, "no more than it has places"
    assert world.database.write(lambda c: wakes.advance(c, at_once.id)) == []
    world.claimed(at_once.run("t0"))


def test_a_project_that_is_made_takes_no_more_of_the_queue_than_its_share(world: World) -> None:
    tasks: dict[str, list[str]] = {f"t{n:02}": [] for n in range(20)}

    made = [world.plan(tasks, wake=True, owner_parallel=25) for _ in range(4)]

    assert len(made[0].woken) == wakes.SHARE + made[0].row.priority
    assert sum(len(plan.woken) for plan in made) == 25, "what its owner has at work counts"
