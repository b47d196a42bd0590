"""Moves of `sources`: texts people gave to agents, with the passages they are found by. Each works within one owner's
one namespace.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from orchestrator.store import passages as passage_moves
from orchestrator.store.database import now_ms
from orchestrator.store.notebook_tables import passages, sources
from orchestrator.store.sql import take_turns
from registry.ids import new_id

KIND = "knowledge"


@dataclass(frozen=True)
class Put:
    """What became of a source: `known` means that the same content stands there under another address."""

    id: str
    how: Literal["added", "replaced", "unchanged", "known", "full"]


def space(owner_id: str, namespace: str) -> str:
    return passage_moves.digest(owner_id, KIND, namespace)


def put(
    connection: Connection,
    owner_id: str,
    namespace: str,
    row: dict[str, Any],
    pieces: Sequence[dict[str, Any]],
    *,
    most: int,
) -> Put:
    """Adds a source, or replaces the one of its address with all its passages; content that is there stays as it is.

    Args:
        pieces: text and embedding of each passage, in order.
        most: sources the namespace may hold; `full` when there would be more, and nothing is changed.
    """
    take_turns(connection, f"sources {owner_id} {namespace}")
    mine = (sources.c.owner_id == owner_id) & (sources.c.namespace == namespace)
    known = connection.execute(select(sources).where(mine, sources.c.uri == row["uri"])).one_or_none()
    alike = select(sources).where(mine, sources.c.content_hash == row["content_hash"]).order_by(sources.c.id).limit(1)
    twin = connection.execute(alike).one_or_none()
    if twin is not None:
        return Put(twin.id, "unchanged" if known is not None and twin.id == known.id else "known")
    if known is None and connection.execute(select(func.count()).where(mine)).scalar_one() >= most:
        return Put("", "full")
    source_id = new_id() if known is None else known.id
    if known is None:
        whose = {"id": source_id, "owner_id": owner_id, "namespace": namespace}
        connection.execute(insert(sources).values(created_at=now_ms(), updated_at=now_ms(), **whose, **row))
    else:
        connection.execute(update(sources).where(sources.c.id == source_id).values(updated_at=now_ms(), **row))
        connection.execute(delete(passages).where(passages.c.source_id == source_id))
    at = connection.execute(select(now_ms())).scalar_one()
    rows = [piece | {"source_id": source_id, "position": n, "at": at} for n, piece in enumerate(pieces)]
    passage_moves.add(connection, space(owner_id, namespace), rows)
    return Put(source_id, "added" if known is None else "replaced")


def listed(connection: Connection, owner_id: str, namespace: str | None = None) -> list[Row[Any]]:
    """Without their texts, the oldest first; None: of every namespace."""
    shown = (sources.c.id, sources.c.namespace, sources.c.uri, sources.c.title, sources.c.bytes, sources.c.updated_at)
    query = select(*shown).where(sources.c.owner_id == owner_id).order_by(sources.c.created_at, sources.c.id)
    return list(connection.execute(query if namespace is None else query.where(sources.c.namespace == namespace)))


def get(connection: Connection, owner_id: str, source_id: str) -> Row[Any] | None:
    mine = (sources.c.owner_id == owner_id) & (sources.c.id == source_id)
    return connection.execute(select(sources).where(mine)).one_or_none()


def namespaces(connection: Connection, owner_id: str) -> list[str]:
    """Those in which the owner has sources."""
    query = select(sources.c.namespace).where(sources.c.owner_id == owner_id).distinct().order_by(sources.c.namespace)
    return list(connection.execute(query).scalars())


def find(connection: Connection, owner_id: str, namespaces: Sequence[str], source_id: str) -> Row[Any] | None:
    mine = (sources.c.owner_id == owner_id, sources.c.namespace.in_(sorted(namespaces)), sources.c.id == source_id)
    return connection.execute(select(sources).where(*mine)).one_or_none()


def remove(connection: Connection, owner_id: str, source_id: str) -> bool:
    """Deletes a source with its passages; False when the owner has none of this id."""
    mine = (sources.c.owner_id == owner_id) & (sources.c.id == source_id)
    return connection.execute(delete(sources).where(mine)).rowcount == 1


def heads(connection: Connection, source_ids: Sequence[str]) -> dict[str, Row[Any]]:
    """Title and address of each."""
    query = select(sources.c.id, sources.c.title, sources.c.uri).where(sources.c.id.in_(sorted(set(source_ids))))
    found: list[Row[Any]] = list(connection.execute(query))
    return {row.id: row for row in found}


def around(connection: Connection, source_id: str, position: int, reach: int) -> list[str]:
    """A passage with those before and after it."""
    near = (passages.c.source_id == source_id, passages.c.position.between(position - reach, position + reach))
    return list(connection.execute(select(passages.c.text).where(*near).order_by(passages.c.position)).scalars())


def embedded(connection: Connection, spaces: Sequence[str], model: str, limit: int) -> list[Row[Any]]:
    """Passages of these spaces that a model has placed, the latest first: number and place."""
    mine = (passages.c.space.in_(sorted(spaces)), passages.c.embedded_by == model)
    query = select(passages.c.number, passages.c.embedding).where(*mine).order_by(passages.c.number.desc())
    return list(connection.execute(query.limit(limit)))


def read(connection: Connection, numbers: Sequence[int]) -> list[Row[Any]]:
    return list(connection.execute(select(passages).where(passages.c.number.in_(list(numbers)))))
