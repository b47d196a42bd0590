"""What agents remember, as the person it belongs to sees and forgets it (spec: skills 18): over HTTP and by command."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from orchestrator import forgetting
from orchestrator.settings import Settings
from orchestrator.store import memories
from orchestrator.store.database import get_database
from registry.base import Json
from registry.errors import Fault, Refused, WrongUse


@dataclass(frozen=True)
class Only:
    """Which memories are meant: those that fit everything it names; all of an owner's when it names nothing."""

    kind: str | None = None
    project_id: str | None = None
    being_id: str | None = None

    @property
    def columns(self) -> dict[str, str]:
        given = {"kind": self.kind, "project_id": self.project_id, "being_id": self.being_id}
        return {name: value for name, value in given.items() if value is not None}


def page(settings: Settings, only: Only, *, limit: int, after: tuple[int, str] | None = None) -> list[dict[str, Json]]:
    """The owner's living memories, the eldest first: those made after a moment and id."""
    with get_database(settings).read() as connection:
        rows = memories.page(connection, settings.owner, only.columns, limit, after)
    return [_view(row) for row in rows]


def forget(settings: Settings, only: Only, *, everything: bool = False) -> int:
    """Forgets the memories that are meant; gives how many they were.

    Args:
        everything: has to be said where nothing is named, so that a lost filter does not empty a memory.

    Raises:
        WrongUse: `filter` where neither is.
    """
    if not only.columns and not everything:
        fault = Fault("", "filter", "name what to forget (kind, project, being), or say all")
        raise WrongUse(fault.message, code="filter", faults=[fault])
    return forgetting.forget(settings, only.columns)


def forget_one(settings: Settings, memory_id: str) -> None:
    """
    Raises:
        Refused: `unknown_memory`.
    """
    if not forgetting.forget(settings, {"id": memory_id}):
        raise Refused(f"you have no memory {memory_id[:80]!r}", code="unknown_memory")


def _view(row: Row[Any]) -> dict[str, Json]:
    return {
        "id": row.id,
        "kind": row.kind,
        "content": row.content,
        "tags": row.tags,
        "importance": row.importance,
        "untrusted": row.untrusted,
        "beingId": row.being_id,
        "projectId": row.project_id,
        "sourceTaskId": row.source_task_id,
        "createdAt": row.created_at,
        "lastUsedAt": row.last_used_at,
        "uses": row.uses,
        "expiresAt": row.expires_at,
    }


__all__ = ["Only", "forget", "forget_one", "page"]
