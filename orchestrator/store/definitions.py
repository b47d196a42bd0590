"""Moves of `definitions`: written once under their digest, never changed."""

from collections.abc import Mapping

from sqlalchemy import Connection, select

from orchestrator.store.sql import insert_or_ignore
from orchestrator.store.tables import definitions
from registry.base import Json


def keep(connection: Connection, bodies: Mapping[str, dict[str, Json]]) -> None:
    """Stores definitions by digest."""
    insert_or_ignore(connection, definitions, [{"digest": k, "body": v} for k, v in sorted(bodies.items())])


def get(connection: Connection, digest: str) -> dict[str, Json]:
    found = connection.execute(select(definitions.c.body).where(definitions.c.digest == digest)).scalar_one()
    return dict(found)
