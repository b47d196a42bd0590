"""The audit log: who did what to what is yours."""

from typing import Annotated

from fastapi import Query

from orchestrator import acts
from orchestrator.api.auth import Overseeing
from orchestrator.api.models import Out
from orchestrator.api.parts import Cursor, Limit, page_of, place_of
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply
from registry.base import Json

router = make_router("audit")


class Act(Out):
    """One thing that was done. It is never changed, and outlives what it was done to."""

    id: str
    created_at: int
    time: str
    by: str
    act: str
    subject: str | None = None
    project_id: str | None = None
    data: dict[str, Json]


class ActPage(Out):
    items: list[Act]
    next: str | None


@router.get("/audit", response_model=ActPage, summary="Who did what, the latest first")
def list_acts(
    asking: Overseeing,
    limit: Limit = 50,
    cursor: Cursor = None,
    act: Annotated[str | None, Query(max_length=60, description="As in `key` or `signal.answered`.")] = None,
    of: Annotated[str | None, Query(max_length=100, description="Only what was done to this id or name.")] = None,
) -> Reply:
    """It takes a person's session, or a key with the scope `admin`."""
    after = place_of(cursor, int, str)
    with asking.database.read() as connection:
        found = acts.listed(connection, asking.owner, limit, after=after, act=act, subject=of)
    return Reply(page_of(found, limit))
