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
