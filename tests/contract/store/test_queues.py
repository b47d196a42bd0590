"""Queues in the rows: where a wake-up goes, who may claim what, and what happens where nobody serves a queue."""

from typing import Any

import pytest
from sqlalchemy import update

from orchestrator.store import claims, routing, runs, unserved, wakes, workers
from orchestrator.store import tables as t
from registry.ids import new_id
from registry.queues import QueueRule
from tests.contract.store.world import BODY, LEASE_MS, Plan, World

RULES = [QueueRule(queue="code", needs=("code.execute",))]
CODER = {"coder": {"id": "coder", "skills": ["code.execute"]}}
DEFAULT, CODE = frozenset({"default"}), frozenset({"code"})


@pytest.fixture
def ruled(world: World) -> World:
    world.database.engine.update_execution_options(**{routing.ROUTES: routing.Routes(RULES)})
    return world


def woken(world: World, plan: Plan) -> list[Any]:
    return world.database.write(lambda c: wakes.advance(c, plan.id))


def claim(world: World, run_id: str, queues: frozenset[str] | None) -> bool:
    found = world.database.write(lambda c: claims.claim_all(c, [run_id], world.worker, LEASE_MS, queues))
    return run_id in found


def serves(world: World, *queues: str, stopped: bool = False) -> None:
    about = {"id": new_id(), "host": "h", "pid": 1, "slots": 8, "queues": list(queues)}
    world.database.write(lambda c: workers.register(c, about))
    if stopped:
        world.database.write(lambda c: workers.leave(c, str(about["id"])))


def overdue(world: World) -> None:
    world.database.write(lambda c: c.execute(update(t.runs).values(due_at=1)))


def test_a_wake_up_goes_where_the_rules_say_and_the_row_keeps_it(ruled: World) -> None:
    plain, code = ruled.plan(), ruled.plan(agents=CODER)
    assert [wake.queue for plan in (plain, code) for wake in woken(ruled, plan)] == [None, "code"]
    assert [ruled.run(plan.run("a")).queue for plan in (plain, code)] == [None, "code"]


def test_rules_that_change_hold_from_the_next_wake_up_on(ruled: World) -> None:
    plan = ruled.plan(agents=CODER)
    woken(ruled, plan)
    ruled.database.engine.update_execution_options(**{routing.ROUTES: routing.Routes()})
    overdue(ruled)
    assert [wake.queue for wake in ruled.database.write(lambda c: runs.overdue_wakes(c, 10))] == [None]
    assert ruled.run(plan.run("a")).queue is None


def test_only_who_serves_a_queue_may_claim_from_it(ruled: World) -> None:
    plain, code = ruled.plan(), ruled.plan(agents=CODER)
    woken(ruled, plain), woken(ruled, code)
    assert not claim(ruled, code.run("a"), DEFAULT)
    assert not claim(ruled, plain.run("a"), CODE)
    assert claim(ruled, code.run("a"), CODE)
    assert claim(ruled, plain.run("a"), DEFAULT | CODE)


def test_a_run_that_was_taken_back_goes_to_its_queue_again(ruled: World) -> None:
    plan = ruled.plan(agents=CODER)
    woken(ruled, plan)
    assert claim(ruled, plan.run("a"), CODE)
    overdue(ruled)
    ruled.database.write(lambda c: runs.expire_leases(c, 10))
    assert [wake.queue for wake in ruled.database.write(lambda c: runs.unsent_wakes(c, 10))] == ["code"]


def test_siblings_of_other_queues_are_not_taken_along(ruled: World) -> None:
    plan = ruled.plan(agents=CODER | {"hand": BODY})
    woken(ruled, plan)
    parent = ruled.claimed(plan.run("a"))
    first, *others = ruled.fan_out(parent, 3)
    woken(ruled, plan)
    assert claim(ruled, first, DEFAULT), "a child goes by its own definition"
    siblings = ruled.database.write(lambda c: claims.claim_siblings(c, first, 5, ruled.worker, LEASE_MS, CODE))
    assert siblings == {}
    siblings = ruled.database.write(lambda c: claims.claim_siblings(c, first, 5, ruled.worker, LEASE_MS, DEFAULT))
    assert sorted(siblings) == sorted(others)


def test_into_a_queue_that_nobody_serves_nothing_is_sent_again_and_its_owner_is_told_once(ruled: World) -> None:
    serves(ruled, "default")
    plan = ruled.plan({"a": [], "b": []}, agents=CODER)
    woken(ruled, plan)
    overdue(ruled)
    with ruled.database.read() as connection:
        served = workers.served(connection)
        assert unserved.any_due(connection, served)
        assert unserved.depths(connection) == {"code": 2}

    assert ruled.database.write(lambda c: runs.overdue_wakes(c, 10, served)) == []
    (alert,) = ruled.database.write(lambda c: unserved.postpone(c, served, 10))
    assert ruled.row(t.signals, alert.signal_id).kind == "alert"
    assert plan.kinds("signal.raised")[0]["signalKind"] == "alert"
    with ruled.database.read() as connection:
        assert not unserved.any_due(connection, served), "it is looked at again a minute later"

    overdue(ruled)
    assert ruled.database.write(lambda c: unserved.postpone(c, served, 10)) == []
    serves(ruled, "code")
    with ruled.database.read() as connection:
        served = workers.served(connection)
    overdue(ruled)
    assert len(ruled.database.write(lambda c: runs.overdue_wakes(c, 10, served))) == 2


def test_a_worker_that_has_just_left_is_no_reason_for_an_alert(ruled: World) -> None:
    serves(ruled, "default")
    serves(ruled, "code", stopped=True)
    plan = ruled.plan(agents=CODER)
    woken(ruled, plan)
    overdue(ruled)
    with ruled.database.read() as connection:
        served = workers.served(connection)
    assert served == {"default"}
    assert ruled.database.write(lambda c: unserved.postpone(c, served, 10)) == []
    assert ruled.run(plan.run("a")).status == "queued"
