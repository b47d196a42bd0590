"""What agents remember: looked at and forgotten by the person it belongs to."""

from typing import Annotated

from fastapi import Path, Query
from fastapi import Response as Empty
from pydantic import Field

from orchestrator import remembered
from orchestrator.api.auth import Reading, Writing
from orchestrator.api.models import Out
from orchestrator.api.parts import Cursor, Limit, page_of, place_of
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply
from orchestrator.remembered import Only

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
    being_id: str | None
    project_id: str | None
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
    after = place_of(cursor, int, str)
    found = remembered.page(asking.settings, Only(kind, project, being), limit=limit, after=after)
    return Reply(page_of(found, limit))


@router.delete("/memories", response_model=Forgotten, summary="Forget by filter, or everything")
def forget(
    asking: Writing,
    kind: Kind = None,
    project: Project = None,
    being: Being = None,
    everything: Annotated[bool, Query(alias="all", description="Needed where nothing else is named.")] = False,
) -> Reply:
    forgotten = remembered.forget(asking.settings, Only(kind, project, being), everything=everything)
    return Reply({"forgotten": forgotten})


@router.delete("/memories/{memory_id}", status_code=204, summary="Forget one")
def forget_one(asking: Writing, memory_id: Annotated[str, Path(min_length=1, max_length=100)]) -> Empty:
    remembered.forget_one(asking.settings, memory_id)
    return Empty(status_code=204)
