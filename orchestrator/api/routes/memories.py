"""What agents remember: looked at and forgotten by the person it belongs to."""

from typing import Annotated, Any

from fastapi import Path, Query
from fastapi import Response as Empty
from pydantic import Field

from orchestrator import forgetting
from orchestrator.api.auth import Reading, Writing
from orchestrator.api.gate import Refusal
from orchestrator.api.models import Out
from orchestrator.api.parts import Cursor, Limit, page_of, place_of
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply
from orchestrator.store import memories
from registry.base import Json
from registry.errors import Refused

router = make_router("memories")

Kind = Annotated[str | None, Query(min_length=1, max_length=60, description="Only memories of this kind.")]
Project = Annotated[
    str | None, Query(alias="projectId", min_length=1, max_length=100, description="Only those of this project.")
]
Being = Annotated[str | None, Query(alias="beingId", min_length=1, max_length=100, description="Only of this being.")]


class MemoryView(Out):
    id: str
    kind: str
    content: str
    tags: list[str]
    importance: float
    untrusted: bool = Field(description="Made where text from outside had been read.")
    created_at: int
    uses: int


class MemoryPage(Out):
    items: list[MemoryView]
    next: str | None


class Forgotten(Out):
    forgotten: int


@router.get("/memories", response_model=MemoryPage, summary="What is remembered, the eldest first")
def list_memories(
    asking: Reading,
    kind: Kind = None,
    project: Project = None,
    being: Being = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Reply:
    with asking.database.read() as connection:
        rows = memories.page(connection, asking.owner, _only(kind, project, being), limit, place_of(cursor, int, str))
    return Reply(page_of([_view(row) for row in rows], limit))


@router.delete("/memories", response_model=Forgotten, summary="Forget by filter, or everything")
def forget(
    asking: Writing,
    kind: Kind = None,
    project: Project = None,
    being: Being = None,
    everything: Annotated[bool, Query(alias="all", description="Needed where nothing else is named.")] = False,
) -> Reply:
    only = _only(kind, project, being)
    if not only and not everything:
        raise Refusal(400, "filter", "name what to forget (kind, projectId, beingId), or say all=true")
    return Reply({"forgotten": forgetting.forget(asking.settings, only)})


@router.delete("/memories/{memory_id}", status_code=204, summary="Forget one")
def forget_one(asking: Writing, memory_id: Annotated[str, Path(min_length=1, max_length=100)]) -> Empty:
    if not forgetting.forget(asking.settings, {"id": memory_id}):
        raise Refused(f"you have no memory {memory_id[:80]!r}", code="unknown_memory")
    return Empty(status_code=204)


def _only(kind: str | None, project: str | None, being: str | None) -> dict[str, str]:
    given = {"kind": kind, "project_id": project, "being_id": being}
    return {name: value for name, value in given.items() if value is not None}


def _view(row: Any) -> dict[str, Json]:
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
