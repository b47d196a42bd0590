"""Moves of `passages`: pieces of text that are found by their words. What they belong to makes and removes them."""

import hashlib
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select

from orchestrator.store import fulltext
from orchestrator.store.notebook_tables import passages


def digest(owner_id: str, kind: str, namespace: str) -> str:
    """A space of passages: one owner's one namespace, for one kind of text."""
    return hashlib.sha256(f"{owner_id}\n{kind}\n{namespace}".encode()).hexdigest()[:32]


def add(connection: Connection, space: str, rows: Sequence[dict[str, Any]]) -> None:
    """Adds passages; their words are indexed with them."""
    if rows:
        marked = [
            row | {"space": space, "terms": [fulltext.mark(space), *fulltext.parted(row["text"])]} for row in rows
        ]
        connection.execute(insert(passages), marked)


def trim(connection: Connection, space: str, most: int) -> int:
    """Deletes the oldest of a space that has more than so many; how many those were."""
    count = connection.execute(select(func.count()).where(passages.c.space == space)).scalar_one()
    if count <= most:
        return 0
    oldest = select(passages.c.number).where(passages.c.space == space).order_by(passages.c.at, passages.c.number)
    gone = oldest.limit(count - most).scalar_subquery()
    connection.execute(delete(passages).where(passages.c.number.in_(gone)))
    return int(count - most)


def forget_said(connection: Connection, before_ms: int, limit: int) -> int:
    """Deletes what was said in runs that ended before a time, so many at once; how many it deleted."""
    old = select(passages.c.number).where(passages.c.run_id.is_not(None), passages.c.at < before_ms).limit(limit)
    return connection.execute(delete(passages).where(passages.c.number.in_(old.scalar_subquery()))).rowcount
