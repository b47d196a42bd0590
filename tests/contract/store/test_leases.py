"""Leases: a worker that lives keeps its runs, one that died loses them, and a run that kills workers is stopped."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select

from orchestrator.settings import Settings
from orchestrator.store import definitions, projects, runs
from orchestrator.store import tables as t
from orchestrator.store.database import now_ms
from registry.errors import LeaseStale
from registry.jsontext import digest
from tests.contract.store.world import BODY, LEASE_MS, World, at
from workers.engine import loop
from workers.runtime import Runtime


def test_one_renewal_extends_all_leases_of_a_worker_and_names_what_it_lost(world: World) -> None:
    plan = world.plan({"mine": [], "ended": [], "taken": [], "given": []})
    claims = {key: world.claimed(plan.run(key), lease_ms=1) for key in plan.tasks}
    world.end(claims["ended"])
    world.set(t.runs, claims["taken"].run_id, worker_id="another")
    world.database.write(lambda c: runs.release_run(c, claims["given"].run_id, claims["given"].fence))

    ids = [claim.run_id for claim in claims.values()]
    lost = world.database.write(lambda c: runs.renew(c, world.worker, ids, LEASE_MS))

    assert lost == {claims[key].run_id for key in ("ended", "taken", "given")}
    now = world.all(select(now_ms()))[0][0]
    assert world.run(claims["mine"].run_id).due_at > now + LEASE_MS - 5_000
    assert world.run(claims["taken"].run_id).due_at < now


def test_a_lease_of_another_that_is_not_renewed_is_seen_before_it_ends(world: World) -> None:
    plan = world.plan()
    claim = world.claimed(plan.run("a"), lease_ms=10_000)

    def seen(by: str, left_ms: int) -> bool:
        with world.database.read() as c:
            return runs.any_neglected(c, by, left_ms)

    assert seen("another", 10_000)
    assert not seen("another", 2_000), "it may still be renewed in time"
    assert not seen(world.worker, 10_000), "who holds it knows better"
    world.end(claim)
    assert not seen("another", 10_000)


def test_a_checkpoint_renews_the_lease_by_itself(world: World) -> None:
    plan = world.plan()
    claim = world.claimed(plan.run("a"), lease_ms=1)

    world.write(at(claim))

    assert not world.database.write(lambda c: runs.expire_leases(c, 10))


def test_what_a_worker_gives_back_in_order_was_no_attempt(world: World) -> None:
    plan = world.plan({"begun": [], "saved": []})
    begun, saved = world.claimed(plan.run("begun")), world.claimed(plan.run("saved"))
    world.write(at(saved))

    world.database.write(lambda c: runs.release(c, world.worker, refund=True))

    assert [world.run(c.run_id).claims for c in (begun, saved)] == [0, 0]
    again = world.claimed(saved.run_id)
    world.write(at(again, number=2))
    world.database.write(lambda c: runs.release_run(c, again.run_id, again.fence))
    assert world.run(saved.run_id).claims == 0, "never below nothing: that would be a free attempt"


@pytest.fixture
def runtime(store_settings: Settings, world: World) -> Iterator[Runtime]:
    made = Runtime(store_settings, 4)
    yield made
    made.stop(1)


def dead(world: World, run_id: str) -> None:
    """The worker of a run died, and the clock saw it."""
    world.set(t.runs, run_id, due_at=0)
    world.database.write(lambda c: runs.expire_leases(c, 10))


def test_the_fourth_claim_without_a_checkpoint_ends_a_run_as_poison(world: World, runtime: Runtime) -> None:
    plan = world.plan({"a": [], "b": ["a"]})
    run_id = plan.run("a")
    for _ in range(3):
        world.claimed(run_id)
        dead(world, run_id)

    assert runtime.carry(run_id).word == "poison"

    assert (world.run(run_id).status, world.run(run_id).error["code"]) == ("failed", "poison")
    assert (plan.status("a"), plan.status("b"), plan.row.status) == ("failed", "skipped", "failed")
    assert plan.kinds("run.failed")[0]["attempts"] == 3


def test_a_run_that_cannot_even_be_read_ends_as_poison_too(
    world: World, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = world.plan({"a": [], "b": []})
    parent = world.claimed(plan.run("b"))
    (child,) = world.fan_out(parent, 1)
    world.set(t.definitions, digest(BODY), body="no object")
    monkeypatch.setattr(definitions, "_known", OrderedDict())  # as in a process that has never read it
    for run_id in (plan.run("a"), child):
        for _ in range(3):
            with pytest.raises(ValueError, match="dictionary"):
                runtime.carry(run_id)
            dead(world, run_id)

        assert runtime.carry(run_id).word == "poison"
        assert world.run(run_id).status == "failed"

    assert plan.status("a") == "failed"
    assert world.run(child).result["error"]["code"] == "poison", "its parent is told why"
    assert world.run(parent.run_id).status == "queued"


def test_a_definition_this_release_cannot_read_fails_the_run_at_once(world: World, runtime: Runtime) -> None:
    plan = world.plan()
    parent = world.claimed(plan.run("a"))
    (child,) = world.fan_out(parent, 1)
    odd: dict[str, Any] = {"id": "odd", "graph": "no graph"}
    world.database.write(lambda c: definitions.keep(c, {"odd": odd}))
    world.set(t.runs, child, definition_digest="odd")

    assert runtime.carry(child).word == "failed"

    assert world.run(child).error["code"] == "agent_invalid"
    assert world.run(child).result["error"]["code"] == "agent_invalid"
    assert world.run(parent.run_id).status == "queued"


def test_a_run_lost_and_claimed_again_by_one_worker_is_held_by_its_second_life(
    world: World, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = world.plan()
    run_id = plan.run("a")
    lives: list[Any] = []
    held: list[bool] = []

    def drive(session: Any) -> None:
        lives.append(session)
        if len(lives) == 1:  # the first life is lost while it works, and its worker takes the run again
            dead(world, run_id)
            runtime.carry(run_id)
            assert session.stopped.is_set(), "the first life is told to stop"
            with pytest.raises(LeaseStale):
                session.save()
        else:
            held.append(runtime._held[run_id] is session)

    monkeypatch.setattr(loop, "drive", drive)
    runtime.carry(run_id)

    assert len(lives) == 2
    assert held == [True]
    assert runtime._held == {}


def test_a_cancel_reaches_a_run_that_is_held(world: World, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = world.plan()
    stopped: list[bool] = []

    def drive(session: Any) -> None:
        world.database.write(lambda c: projects.cancel(c, plan.id, "enough"))
        stopped.append(session.stopped.wait(10))

    monkeypatch.setattr(loop, "drive", drive)

    runtime.carry(plan.run("a"))

    assert stopped == [True]


def test_a_run_is_a_suspect_after_one_lease_though_it_had_passed_a_checkpoint(world: World) -> None:
    plan = world.plan({"a": []})
    claim = world.claimed(plan.run("a"))
    world.write(at(claim, number=1))
    dead(world, claim.run_id)

    again = world.claimed(claim.run_id)

    assert again.suspect
    world.write(at(again, number=2))
    assert (world.run(claim.run_id).claims, world.run(claim.run_id).crashes) == (0, 0), (
        "a checkpoint proves it innocent"
    )


def test_a_suspect_that_waits_for_its_process_is_not_blamed_for_the_death_of_its_worker(world: World) -> None:
    plan = world.plan({"a": []})
    run_id = plan.run("a")
    world.claimed(run_id)
    dead(world, run_id)
    for _ in range(20):  # its worker dies each time before it has begun
        claim = world.claimed(run_id)
        world.database.write(lambda c, fence=claim.fence: runs.hold_back(c, run_id, fence))
        assert claim.claims == 2
        dead(world, run_id)

    claim = world.claimed(run_id)
    world.database.write(lambda c: runs.hold_back(c, run_id, claim.fence))
    assert world.database.write(lambda c: runs.begin(c, run_id, claim.fence))
    assert not world.database.write(lambda c: runs.begin(c, run_id, claim.fence - 1)), "under its own fence only"
    dead(world, run_id)
    assert world.claimed(run_id).claims == 3


def test_only_processes_that_died_with_it_alone_are_counted_as_crashes(world: World) -> None:
    plan = world.plan({"a": []})
    run_id = plan.run("a")
    world.claimed(run_id)
    dead(world, run_id)
    claim = world.claimed(run_id)

    assert world.database.write(lambda c: runs.give_up(c, run_id, claim.fence, crashed=True))
    assert not world.database.write(lambda c: runs.give_up(c, run_id, claim.fence, crashed=True)), "once"

    again = world.claimed(run_id)
    assert (again.crashes, again.suspect) == (1, True)
