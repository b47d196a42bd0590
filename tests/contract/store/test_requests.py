"""Calls asked for over HTTP, as rows: made once, by the last who claimed them, and not repeated where that may harm."""

from typing import Any

from sqlalchemy import select

from orchestrator.store import requests as moves
from orchestrator.store.requests import requests
from registry.ids import new_id
from tests.contract.store.world import LEASE_MS, World

OK: dict[str, Any] = {"ok": True, "output": {"sent": True}, "durationMs": 3}


def asked(world: World, **columns: Any) -> str:
    row = {"id": new_id(), "owner_id": "ann", "skill": "files.write", "input": {"path": "a", "content": "b"}} | columns
    assert world.database.write(lambda c: moves.put(c, row, 100))
    return str(row["id"])


def claimed(world: World, id_: str) -> Any:
    row = world.database.write(lambda c: moves.claim(c, id_, LEASE_MS))
    assert row is not None
    return row


def look(world: World, id_: str) -> list[str]:
    """What is sent again, once the row's time has come."""
    world.set(requests, id_, due_at=0)
    return list(world.database.write(lambda c: moves.look_after(c, 100)))


def test_a_call_is_claimed_once_and_its_first_result_stands(world: World) -> None:
    id_ = asked(world)
    row = claimed(world, id_)

    assert world.database.write(lambda c: moves.claim(c, id_, LEASE_MS)) is None
    assert world.database.write(lambda c: moves.settle(c, row, OK))
    assert not world.database.write(lambda c: moves.settle(c, row, OK | {"output": {"sent": False}}))
    with world.database.read() as connection:
        found = moves.get(connection, "ann", id_)
        assert moves.get(connection, "bob", id_) is None
        assert moves.done(connection, [id_, "gone"]) == sorted([id_, "gone"])
    assert (found.status, found.result) == ("done", OK)


def test_an_owner_has_so_many_calls_open_and_no_more(world: World) -> None:
    row = {"owner_id": "ann", "skill": "web.fetch", "input": {}}
    put = [world.database.write(lambda c: moves.put(c, row | {"id": new_id()}, 2)) for _ in range(3)]

    assert put == [True, True, False]
    assert world.database.write(lambda c: moves.put(c, row | {"id": new_id(), "owner_id": "bob"}, 2))


def test_a_call_that_nobody_claimed_is_sent_again_and_in_the_end_given_up(world: World) -> None:
    id_ = asked(world)

    assert world.database.write(lambda c: moves.look_after(c, 100)) == {}
    assert look(world, id_) == [id_]
    world.set(requests, id_, created_at=0)
    assert look(world, id_) == []
    assert world.row(requests, id_).result["code"] == "timeout"


def test_a_call_that_had_not_begun_goes_on_elsewhere_when_its_worker_dies(world: World) -> None:
    id_ = asked(world)
    lost = claimed(world, id_)

    assert look(world, id_) == [id_]
    again = claimed(world, id_)
    assert not world.database.write(lambda c: moves.begin(c, lost))
    assert not world.database.write(lambda c: moves.settle(c, lost, OK))
    assert world.database.write(lambda c: moves.settle(c, again, OK))


def test_a_call_that_kills_its_workers_ends(world: World) -> None:
    id_ = asked(world)
    for _ in range(moves.ATTEMPTS):
        claimed(world, id_)
        sent = look(world, id_)

    assert sent == []
    assert world.row(requests, id_).result["code"] == "tool_failed"


def test_a_call_that_had_begun_is_unknown_and_its_project_hears_of_it(world: World) -> None:
    plan = world.plan()
    id_ = asked(world, project_id=plan.id)
    row = claimed(world, id_)
    assert world.database.write(lambda c: moves.begin(c, row))

    assert look(world, id_) == []
    found = world.row(requests, id_)
    assert (found.status, found.result["ok"], found.result["code"]) == ("done", False, "unknown")
    (result,) = plan.kinds("tool.result")
    assert (result["toolCallId"], result["outcome"]) == (id_, "unknown")
    assert not world.database.write(lambda c: moves.settle(c, row, OK))


def test_a_worker_that_lives_keeps_its_call(world: World) -> None:
    id_ = asked(world)
    claimed(world, id_)
    world.set(requests, id_, due_at=0)

    world.database.write(lambda c: moves.renew(c, [id_], LEASE_MS))

    assert world.database.write(lambda c: moves.look_after(c, 100)) == {}


def test_a_result_is_kept_for_a_day(world: World) -> None:
    id_ = asked(world)
    row = claimed(world, id_)
    world.database.write(lambda c: moves.settle(c, row, OK))

    assert world.database.write(lambda c: moves.look_after(c, 100)) == {}
    look(world, id_)
    assert world.all(select(requests)) == []
