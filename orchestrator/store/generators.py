"""Moves of `generators`: saved, and read by their owner."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, literal, select, tuple_

from orchestrator.store.database import now_ms
from orchestrator.store.kept import generators
from orchestrator.store.sql import take_turns
from registry.generators import Generator, built_in


def of_call(connection: Connection, call_key: str | None) -> str | None:
    """The generator this very call made before."""
    if call_key is None:
        return None
    return connection.execute(select(generators.c.id).where(generators.c.call_key == call_key)).scalar()


def count(connection: Connection, owner_id: str) -> int:
    """How many an owner has; whoever is about to save one waits for another who does."""
    take_turns(connection, f"generators {owner_id}")
    return int(connection.execute(select(func.count()).where(generators.c.owner_id == owner_id)).scalar_one())


def by_name(connection: Connection, owner_id: str, name_key: str) -> Row[Any] | None:
    query = select(generators).where(generators.c.owner_id == owner_id, generators.c.name_key == name_key)
    return connection.execute(query).one_or_none()


def page(connection: Connection, owner_id: str, limit: int, after: tuple[int, str] | None) -> list[Row[Any]]:
    """The owner's, the eldest first: those made after a moment and id."""
    query = select(generators).where(generators.c.owner_id == owner_id)
    if after is not None:
        place = tuple_(literal(after[0]), literal(after[1]))
        query = query.where(tuple_(generators.c.created_at, generators.c.id) > place)
    return list(connection.execute(query.order_by(generators.c.created_at, generators.c.id).limit(limit)))


def row(connection: Connection, owner_id: str, generator_id: str) -> Row[Any] | None:
    mine = select(generators).where(generators.c.owner_id == owner_id, generators.c.id == generator_id)
    return connection.execute(mine).one_or_none()


def remove(connection: Connection, owner_id: str, generator_id: str) -> bool:
    """False when there was none."""
    mine = (generators.c.owner_id == owner_id) & (generators.c.id == generator_id)
    return connection.execute(delete(generators).where(mine)).rowcount == 1


def create(connection: Connection, row: Mapping[str, Any]) -> None:
    connection.execute(insert(generators).values(dict(row) | {"created_at": now_ms(), "version": 1}))


def get(connection: Connection, owner_id: str, generator_id: str) -> Generator | None:
    """A generator of an owner, or one that ships; another's is as if it were not there."""
    query = select(generators).where(generators.c.owner_id == owner_id, generators.c.id == generator_id)
    row = connection.execute(query).one_or_none()
    if row is None:
        return built_in().get(generator_id)
    return Generator.model_validate(
        {"name": row.name, "description": row.description, "inputs": row.inputs, "steps": row.steps}
    )
