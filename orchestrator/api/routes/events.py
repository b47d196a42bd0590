"""The trace of a project: as a stream, or a page at a time."""

from typing import Annotated, Any, Final

from fastapi import Header, Query, Request
from sqlalchemy import Connection
from starlette.responses import Response

from orchestrator import lookup
from orchestrator.api.auth import Asking, Reading
from orchestrator.api.feed import Feed
from orchestrator.api.gate import Refusal
from orchestrator.api.models import EventPage
from orchestrator.api.parts import ProjectId
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply, problems
from orchestrator.api.sse import EventStream
from orchestrator.api.standing import Standing
from orchestrator.store import events as rows

router = make_router("projects")

_MOST: Final = 2**62
_STREAM: Final[dict[str, Any]] = {
    "description": "A page (`Accept: application/json`), or else a stream of lines, each with its number as id.",
    "content": {"text/event-stream": {"schema": {"type": "string"}, "example": 'id: 7\ndata: {"seq":7,...}\n\n'}},
}


@router.get(
    "/projects/{project_id}/events",
    response_model=EventPage,
    summary="The trace, live or a page at a time",
    responses={200: _STREAM, 204: {"description": "The project has ended, and you have all of it."}, **problems(409)},
)
def events(
    request: Request,
    asking: Reading,
    project_id: ProjectId,
    after: Annotated[int, Query(ge=0, le=_MOST, description="Only lines with a higher number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000, description="Lines of a page.")] = 200,
    last_event_id: Annotated[
        int | None, Header(alias="Last-Event-ID", ge=0, le=_MOST, description="What a client has: wins over `after`.")
    ] = None,
    live: Annotated[bool, Query(description="What agents say while they say it, too: events called `live`.")] = False,
) -> Response:
    """A stream goes on from `Last-Event-ID`, so that a client that comes back misses nothing and hears nothing twice.

    It ends with the project. A comment every 15 seconds says that the connection lives. With `live` it carries pieces
    of what is being said, `{kind, runId, taskId, agentId, at, text}`, `at` being the characters before it; they have
    no number, come once or not at all, and the message that follows in the trace is the whole of it.
    """
    after = after if last_event_id is None else last_event_id
    with asking.database.read() as connection:
        trace_id = lookup.trace_id(connection, project_id, asking.owner)
        if _wants_page(request.headers.get("accept", "")):
            return Reply(_page(connection, trace_id, after, limit))
    feed: Feed = request.app.state.feed
    if feed.readers >= asking.settings.api.streams:
        raise Refusal(503, "too_many_streams", "this process carries as many streams as it may; try again")
    if last_event_id is not None and _has_all(asking, trace_id, last_event_id):
        return Response(status_code=204)  # to a browser: do not come back
    overhearing = request.app.state.overhearing if live else None
    standing: Standing = request.app.state.standing
    return EventStream(feed, trace_id, after, asking.settings.api, overhearing, who=asking.who, standing=standing)


def _wants_page(accept: str) -> bool:
    return "application/json" in accept and "text/event-stream" not in accept


def _page(connection: Connection, trace_id: str, after: int, limit: int) -> dict[str, Any]:
    found = rows.after(connection, trace_id, after, limit)
    following = found[-1].seq if len(found) == limit else None
    return {"items": [event.to_json(trace_id) for event in found], "next": following}


def _has_all(asking: Asking, trace_id: str, seq: int) -> bool:
    from orchestrator.following import has_ended

    if not has_ended(asking.settings, trace_id):
        return False
    with asking.database.read() as connection:
        return rows.last(connection, trace_id) <= seq
