"""The audit log: written with the act or not at all, never changed, each owner's own."""

from typing import Any

import pytest
from sqlalchemy import delete, select, update
from sqlalchemy.exc import DBAPIError

from orchestrator.records import Park, SignalRecord
from orchestrator.store import audit, signals
from orchestrator.store.house_tables import audit as table
from registry import masking
from registry.errors import Refused
from registry.ids import new_id
from tests.contract.store.world import YES, Plan, World, at


def lines(world: World, owner: str = "local", **which: Any) -> list[Any]:
    with world.database.read() as connection:
        return audit.page(connection, owner, 100, **which)


def asked(world: World) -> tuple[Plan, str]:
    """A run that waits for a yes."""
    plan, id_ = world.plan(), new_id()
    claim = world.claimed(plan.run("a"))
    action = {"toolCallId": "c1", "skill": "email.send", "input": {}}
    signal = SignalRecord(id_, "decision", "May it?", call_id="c1", action=action, digest="d" * 64)
    world.park(at(claim, park=Park("needs_input", "signals"), signals=[signal]))
    return plan, id_


def test_an_answer_is_on_record_with_who_gave_it_to_which_call(world: World) -> None:
    plan, signal_id = asked(world)

    world.database.write(lambda c: signals.answer(c, signal_id, YES, rejected=False, by="key ci"))

    (line,) = lines(world)
    assert (line.act, line.by, line.subject, line.project_id) == ("signal.answered", "key ci", signal_id, plan.id)
    assert line.data["skill"] == "email.send"
    assert line.data["digest"] == "d" * 64
    assert line.data["rejected"] is False


def test_whoever_came_too_late_is_not_on_record(world: World) -> None:
    _, signal_id = asked(world)
    world.database.write(lambda c: signals.answer(c, signal_id, YES, rejected=False, by="ann"))
    with pytest.raises(Refused):
        world.database.write(lambda c: signals.answer(c, signal_id, YES, rejected=True, by="bob"))
    assert [line.by for line in lines(world)] == ["ann"]


@pytest.mark.parametrize("change", [update(table).values(by="somebody else"), delete(table)])
def test_a_line_is_never_changed_nor_taken_away(world: World, change: Any) -> None:
    world.database.write(lambda c: audit.record(c, "local", "ann", "key.made", "k1"))
    with pytest.raises(DBAPIError, match="only grows"):
        world.database.write(lambda c: c.execute(change))
    assert [line.by for line in lines(world)] == ["ann"]


def test_an_owner_sees_own_lines_the_latest_first_page_by_page(world: World) -> None:
    for n in range(5):
        world.database.write(lambda c, n=n: audit.record(c, "local", "ann", "key.made", f"k{n}"))
    world.database.write(lambda c: audit.record(c, "other", "eve", "key.made", "theirs"))

    with world.database.read() as connection:
        first = audit.page(connection, "local", 3)
        rest = audit.page(connection, "local", 3, (first[-1].at, first[-1].id))

    assert [line.subject for line in [*first, *rest]] == ["k4", "k3", "k2", "k1", "k0"]


def test_lines_are_found_by_what_was_done_and_to_what(world: World) -> None:
    world.database.write(lambda c: audit.record(c, "local", "ann", "key.made", "k1"))
    world.database.write(lambda c: audit.record(c, "local", "ann", "key.revoked", "k1"))
    world.database.write(lambda c: audit.record(c, "local", "ann", "keyring.made", "x"))
    assert {line.act for line in lines(world, act="key")} == {"key.made", "key.revoked"}
    assert {line.act for line in lines(world, act="key.revoked")} == {"key.revoked"}
    assert len(lines(world, subject="k1")) == 2


def test_a_secret_in_a_fact_is_masked(world: World) -> None:
    masking.remember("hunter2-hunter2")
    world.database.write(lambda c: audit.record(c, "local", "ann", "key.made", name="hunter2-hunter2"))
    with world.database.read() as connection:
        assert "hunter2" not in str(connection.execute(select(table.c.data)).scalar_one())
