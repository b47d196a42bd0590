"""Moves of `generators`: saved, and read by their owner."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select

from orchestrator.store.database import now_ms
from orchestrator.store.kept import generators
from registry.generators import Generator


def of_call(connection: Connection, call_key: str | None) -> str | None:
    """The generator this very call made before."""
    if call_key is None:
        return None
    return connection.execute(select(generators.c.id).where(generators.c.call_key == call_key)).scalar()


def count(connection: Connection, owner_id: str) -> int:
    return int(connection.execute(select(func.count()).where(generators.c.owner_id == owner_id)).scalar_one())


def by_name(connection: Connection, owner_id: str, name_key: str) -> Row[Any] | None:
    query = select(generators).where(generators.c.owner_id == owner_id, generators.c.name_key == name_key)
    return connection.execute(query).one_or_none()


def create(connection: Connection, row: Mapping[str, Any]) -> None:
    connection.execute(insert(generators).values(dict(row) | {"created_at": now_ms(), "version": 1}))


def get(connection: Connection, owner_id: str, generator_id: str) -> Generator | None:
    """A generator of an owner; another's is as if it were not there."""
    query = select(generators).where(generators.c.owner_id == owner_id, generators.c.id == generator_id)
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    return Generator.model_validate(
        {"name": row.name, "description": row.description, "inputs": row.inputs, "steps": row.steps}
    )
