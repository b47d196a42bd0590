"""Moves of `agendas` and `agenda_items`: what an agent set itself to do for a task or a thread."""

import secrets
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from orchestrator.store.database import now_ms
from orchestrator.store.notebook_tables import agenda_items, agendas
from orchestrator.store.sql import take_turns
from registry.ids import new_id


def find(connection: Connection, owner_id: str, space: str, *, lock: bool = False) -> Row[Any] | None:
    query = select(agendas).where(agendas.c.owner_id == owner_id, agendas.c.space == space)
    return connection.execute(query.with_for_update() if lock else query).one_or_none()


def items(connection: Connection, agenda_id: str) -> list[Row[Any]]:
    """In their order."""
    query = select(agenda_items).where(agenda_items.c.agenda_id == agenda_id).order_by(agenda_items.c.position)
    return list(connection.execute(query))


def save(
    connection: Connection, owner_id: str, space: str, row: dict[str, Any], steps: Sequence[dict[str, Any]]
) -> None:
    """Makes the agenda of a space, or gives it other items; it keeps its id. A call that did so before does nothing."""
    take_turns(connection, f"agenda {owner_id} {space}")
    known = find(connection, owner_id, space, lock=True)
    if known is not None and known.call_key is not None and known.call_key == row["call_key"]:
        return
    if known is None:
        agenda_id = new_id()
        whose = {"id": agenda_id, "owner_id": owner_id, "space": space}
        connection.execute(insert(agendas).values(created_at=now_ms(), updated_at=now_ms(), **whose, **row))
    else:
        agenda_id = known.id
        connection.execute(update(agendas).where(agendas.c.id == agenda_id).values(updated_at=now_ms(), **row))
        connection.execute(delete(agenda_items).where(agenda_items.c.agenda_id == agenda_id))
    # Ids by chance, not by time: a model may name an item by the first characters of its id.
    rows = [
        {"id": secrets.token_hex(8), "agenda_id": agenda_id, "position": n, "status": "pending"} | step
        for n, step in enumerate(steps)
    ]
    connection.execute(insert(agenda_items), rows)


def mark(connection: Connection, agenda_id: str, item_id: str, values: dict[str, Any], *, untrusted: bool) -> None:
    connection.execute(update(agenda_items).where(agenda_items.c.id == item_id).values(values))
    changed: dict[str, Any] = {"updated_at": now_ms()} | ({"untrusted": True} if untrusted else {})
    connection.execute(update(agendas).where(agendas.c.id == agenda_id).values(changed))
