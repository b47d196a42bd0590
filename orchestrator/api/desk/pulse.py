"""Says that something of an owner moved, to pages that then ask again; what moved the rows say.

A page of one project listens to that project's trace instead (`/api/studio/projects/ID/events`).
"""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, Final

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import func, select
from starlette.responses import Response, StreamingResponse

from orchestrator.api.auth import Asking, Person
from orchestrator.api.desk.routing import router as make_router
from orchestrator.api.feed import Feed
from orchestrator.api.gate import Refusal
from orchestrator.api.standing import Standing
from orchestrator.states import PROJECT_ENDED
from orchestrator.store.tables import projects, signals, traces

router = make_router()

#: Seconds between looks.
LOOK_S: Final = 1.0


@router.get("/pulse")
async def pulse(request: Request, asking: Person) -> Response:
    """A server-sent event each time something moved, and one at the start."""
    feed: Feed = request.app.state.feed
    if feed.readers >= asking.settings.api.streams:
        raise Refusal(503, "too_many_streams", "this process carries as many streams as it may; try again")
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    standing: Standing = request.app.state.standing
    return StreamingResponse(_beats(feed, asking, standing), media_type="text/event-stream", headers=headers)


async def _beats(feed: Feed, asking: Asking, standing: Standing) -> AsyncIterator[bytes]:
    yield b": officina\n\n"
    before: Any = None
    signed_out = asyncio.Event()
    heard = time.monotonic()
    with feed.reading(), standing.watch(asking.who, signed_out.set):
        while not feed.closed and not signed_out.is_set():
            now = await run_in_threadpool(_look, asking)
            if now != before:
                yield b"data: moved\n\n"
                before, heard = now, time.monotonic()
            elif time.monotonic() - heard > asking.settings.api.heartbeat_s:
                yield b": still here\n\n"
                heard = time.monotonic()
            await asyncio.sleep(LOOK_S)


def _look(asking: Asking) -> tuple[Any, ...]:
    """Numbers that differ when anything an overview shows has moved: one statement."""
    mine = (projects.c.owner_id == asking.owner) & (projects.c.kind == "project")
    open_ = mine & projects.c.status.not_in(sorted(PROJECT_ENDED))
    own = signals.c.owner_id == asking.owner
    numbers = (
        select(func.count()).where(own, signals.c.status == "open"),
        select(func.max(signals.c.answered_at)).where(own),
        select(func.count()).select_from(projects).where(mine),
        select(func.max(projects.c.ended_at)).where(mine),
        select(func.sum(traces.c.seq)).join(projects, projects.c.id == traces.c.id).where(open_),
    )
    query = select(*(one.scalar_subquery().label(f"n{place}") for place, one in enumerate(numbers)))
    with asking.database.read() as connection:
        return tuple(connection.execute(query).one())
