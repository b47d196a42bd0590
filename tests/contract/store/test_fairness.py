"""Fairness of the queue: nobody's thousands of tasks stand before anybody's one, and priority is a larger share."""

from collections import deque
from collections.abc import Sequence

import pytest
from sqlalchemy import func, select

from orchestrator.records import Park, Wake
from orchestrator.store import claims, runs, wakes
from orchestrator.store import tables as t
from tests.contract.store.world import LEASE_MS, Plan, World, at

MANY = 400


class Queue:
    """The broker, first come first served, and workers that claim from it one by one and end at once."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.messages: deque[str] = deque()
        self.claimed: list[str] = []

    def put(self, sent: Sequence[Wake]) -> None:
        self.messages += [wake.run_id for wake in sent]

    def begin(self, plan: Plan) -> None:
        self.put(self.world.database.write(lambda c: wakes.advance(c, plan.id)))

    def _refill(self, project_id: str | None) -> None:
        if project_id is not None:
            self.put(self.world.database.write(lambda c: wakes.refill(c, [project_id])))

    def work(self) -> str | None:
        """Claims the first that can be claimed and carries it to its end; gives its project."""
        while self.messages:
            claim = self.world.claim(self.messages.popleft())
            if claim is None:
                continue
            self._refill(claim.refills)
            self.claimed.append(str(self.world.run(claim.run_id).project_id))
            self.put(self.world.end(claim))
            return self.claimed[-1]
        return None


@pytest.fixture
def queue(world: World) -> Queue:
    return Queue(world)


def many(world: World, count: int = MANY, **about: object) -> Plan:
    return world.plan({f"t{n:05}": [] for n in range(count)}, cap=5_000, **about)


def test_a_project_of_one_task_waits_for_a_few_tasks_of_a_large_one(world: World, queue: Queue) -> None:
    large = many(world)
    queue.begin(large)
    for _ in range(20):
        queue.work()
    small = world.plan({"only": []})
    queue.begin(small)

    before = next(n for n in range(MANY) if queue.work() == small.id)

    assert before <= wakes.SHARE + 5, "what was in the queue already, and nothing more"
    assert len(queue.messages) <= wakes.SHARE + 5


def test_every_task_of_a_large_project_has_its_turn_without_the_clock(world: World, queue: Queue) -> None:
    large = many(world, 60)
    queue.begin(large)

    while queue.work():
        pass

    assert large.row.status == "completed"


def test_a_project_with_priority_has_a_larger_share(world: World, queue: Queue) -> None:
    plain, urgent = many(world, 100, priority=1), many(world, 100, priority=9)
    queue.begin(plain)
    queue.begin(urgent)

    for _ in range(80):
        queue.work()

    share = queue.claimed.count(urgent.id) / len(queue.claimed)
    assert share == pytest.approx(12 / 16, abs=0.05)


def test_many_projects_of_one_owner_are_no_longer_a_wait_than_one(world: World, queue: Queue) -> None:
    for _ in range(wakes.OWNER_SHARE + 20):
        queue.begin(world.plan({"a": [], "b": []}, owner_id="busy"))
    assert len(queue.messages) == wakes.OWNER_SHARE

    single = world.plan({"only": []}, owner_id="calm")
    queue.begin(single)
    before = next(n for n in range(MANY) if queue.work() == single.id)

    assert before <= wakes.OWNER_SHARE
    while queue.work():
        pass
    left = world.all(select(func.count()).select_from(t.projects).where(t.projects.c.status == "running"))
    assert left[0][0] == 0, "and those that waited had their turn after it, without the clock"


def test_an_owner_has_no_more_at_work_than_allowed(world: World) -> None:
    plans = [world.plan({"a": [], "b": [], "c": []}, owner_id="bounded", owner_parallel=4) for _ in range(3)]

    sent = [wake for plan in plans for wake in world.database.write(lambda c, plan=plan: wakes.advance(c, plan.id))]
    claims = [world.claimed(wake.run_id) for wake in sent]

    assert len(claims) == 4
    unsent = next(row.id for row in world.all(select(t.runs).where(t.runs.c.status == "queued")))
    assert world.claim(unsent) is None, "not even by a message that nobody meant to send"
    world.end(claims[0])
    assert len(world.database.write(lambda c: runs.unsent_wakes(c, 10))) == 1


def test_what_is_under_way_goes_on_before_what_has_not_begun(world: World) -> None:
    plan = many(world, 40)
    first, *_ = world.database.write(lambda c: wakes.advance(c, plan.id))
    claim = world.claimed(first.run_id)
    world.database.write(lambda c: wakes.refill(c, [plan.id]))
    world.park(at(claim, park=Park("waiting", "timer", due_in_ms=600_000)))

    woken = world.database.write(lambda c: runs.wake(c, claim.run_id))

    assert claim.run_id in [wake.run_id for wake in woken], "though the project's share of the queue is used up"


def test_children_come_with_their_parent(world: World) -> None:
    plan = world.plan({"a": []}, cap=32)
    claim = world.claimed(world.database.write(lambda c: wakes.advance(c, plan.id))[0].run_id)

    children = world.fan_out(claim, 30)

    sent = world.all(select(t.runs.c.id).where(t.runs.c.id.in_(children), t.runs.c.wakes > 0))
    assert len(sent) == 30, "who made them waits for all of them"


def test_the_statements_of_a_claim_do_not_grow_with_what_waits(world: World) -> None:
    counts = []
    for size in (20, 200):
        plan = many(world, size, owner_id=f"owner of {size}")
        first = world.database.write(lambda c, plan=plan: wakes.advance(c, plan.id))[0]

        def claim_and_refill(run_id: str = first.run_id, project_id: str = plan.id) -> None:
            found = world.database.write(lambda c: claims.claim_all(c, [run_id], world.worker, LEASE_MS))
            assert found[run_id].refills == project_id
            world.database.write(lambda c: wakes.refill(c, [project_id]))

        counts.append(len(world.counted(claim_and_refill)))
    assert counts[0] == counts[1] <= 20
