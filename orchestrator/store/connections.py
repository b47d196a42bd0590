"""Moves of connections: named rows of an owner, replaced whole."""

from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from orchestrator.store.database import now_ms
from orchestrator.store.tables import connections
from registry.base import Json
from registry.ids import new_id


def save(connection: Connection, owner_id: str, name: str, values: dict[str, Json]) -> bool:
    """Writes a connection; True when the owner had none of this name."""
    mine = (connections.c.owner_id == owner_id) & (connections.c.name == name)
    if connection.execute(update(connections).where(mine).values(values | {"updated_at": now_ms()})).rowcount:
        return False
    keys = {"id": new_id(), "owner_id": owner_id, "name": name}
    connection.execute(insert(connections).values(keys | values | {"created_at": now_ms(), "updated_at": now_ms()}))
    return True


def remove(connection: Connection, owner_id: str, name: str) -> bool:
    """False when there was none."""
    mine = (connections.c.owner_id == owner_id) & (connections.c.name == name)
    return connection.execute(delete(connections).where(mine)).rowcount > 0


def of_owner(connection: Connection, owner_id: str, kind: str | None = None) -> list[Row[Any]]:
    """The owner's connections, the oldest first."""
    query = select(connections).where(connections.c.owner_id == owner_id)
    if kind is not None:
        query = query.where(connections.c.kind == kind)
    return list(connection.execute(query.order_by(connections.c.created_at, connections.c.id)))
