"""Moves of `pins`: facts an agent reads at each model call. Each works within one namespace of one owner."""

from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from orchestrator.store.database import now_ms
from orchestrator.store.notebook_tables import pins
from orchestrator.store.sql import take_turns
from registry.ids import new_id


def put(connection: Connection, owner_id: str, namespace: str, row: dict[str, Any], *, most: int) -> Row[Any] | None:
    """Pins a text, in place of the one under its key; None when it would be one too many, and nothing is changed."""
    take_turns(connection, f"pins {owner_id} {namespace}")
    mine = _mine(owner_id, namespace)
    again = update(pins).where(mine, pins.c.key == row["key"]).values(updated_at=now_ms(), **row)
    if (changed := connection.execute(again.returning(pins)).one_or_none()) is not None:
        return changed
    if connection.execute(select(func.count()).where(mine)).scalar_one() >= most:
        return None
    whose = {"id": new_id(), "owner_id": owner_id, "namespace": namespace}
    made = insert(pins).values(created_at=now_ms(), updated_at=now_ms(), **whose, **row).returning(pins)
    return connection.execute(made).one()


def latest(connection: Connection, owner_id: str, namespace: str, limit: int) -> list[Row[Any]]:
    """The newest first."""
    query = select(pins).where(_mine(owner_id, namespace)).order_by(pins.c.updated_at.desc(), pins.c.id.desc())
    return list(connection.execute(query.limit(limit)))


def of_owner(connection: Connection, owner_id: str, limit: int) -> list[Row[Any]]:
    """An owner's pins of every namespace, the newest first."""
    query = select(pins).where(pins.c.owner_id == owner_id).order_by(pins.c.updated_at.desc(), pins.c.id.desc())
    return list(connection.execute(query.limit(limit)))


def unpin(connection: Connection, owner_id: str, pin_id: str) -> bool:
    """False when the owner has none of this id."""
    return connection.execute(delete(pins).where(pins.c.owner_id == owner_id, pins.c.id == pin_id)).rowcount == 1


def remove(connection: Connection, owner_id: str, namespace: str, key: str) -> None:
    connection.execute(delete(pins).where(_mine(owner_id, namespace), pins.c.key == key))


def move(connection: Connection, owner_id: str, namespace: str, to: str) -> None:
    """Gives what is pinned in a namespace to another, which has nothing yet."""
    connection.execute(update(pins).where(_mine(owner_id, namespace)).values(namespace=to))


def any_untrusted(connection: Connection, owner_id: str, namespace: str) -> bool:
    """Whether text from outside may be in one of them."""
    query = select(pins.c.id).where(_mine(owner_id, namespace), pins.c.untrusted).limit(1)
    return connection.execute(query).first() is not None


def _mine(owner_id: str, namespace: str) -> Any:
    return (pins.c.owner_id == owner_id) & (pins.c.namespace == namespace)
