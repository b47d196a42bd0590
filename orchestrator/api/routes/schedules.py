"""What begins later, once or again and again."""

from typing import Annotated, Literal

from fastapi import Path, Query
from fastapi import Response as Empty
from pydantic import Field

from orchestrator import timetable
from orchestrator.api.auth import Reading, Writing
from orchestrator.api.models import Out
from orchestrator.api.parts import Cursor, Limit, page_of, place_of
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply, problems
from orchestrator.api.shared import skills
from orchestrator.timetable import NewSchedule
from registry.base import Json, Model
from registry.skills.scheduling import Title

router = make_router("schedules")

ScheduleId = Annotated[str, Path(min_length=1, max_length=100)]


class ScheduleView(Out):
    id: str
    title: str
    kind: Literal["at", "every", "cron"]
    spec: str = Field(description="A moment, minutes, or five cron fields.")
    timezone: str
    description: str = Field(description="When it runs, in words.")
    action: dict[str, Json]
    status: Literal["active", "paused", "done", "failed"]
    next_run_at: int | None
    runs: int
    created_at: int
    firings: list[dict[str, Json]] | None = Field(None, description="What became of its last due times, if asked for.")


class SchedulePage(Out):
    items: list[ScheduleView]
    next: str | None


class Change(Model):
    title: Title | None = None
    status: Literal["active", "paused"] | None = None


@router.get("/schedules", response_model=SchedulePage, summary="Your schedules, the eldest first")
def list_schedules(asking: Reading, limit: Limit = 50, cursor: Cursor = None) -> Reply:
    found = timetable.listed(asking.settings, limit=limit, after=place_of(cursor, int, str))
    return Reply(page_of(found, limit))


@router.post(
    "/schedules", response_model=ScheduleView, status_code=201, summary="Make a schedule", responses=problems(409)
)
def create_schedule(asking: Writing, body: NewSchedule) -> Reply:
    """At least a minute apart. It approves nothing: a skill that acts on the world asks each time it is due."""
    return Reply(timetable.create(asking.settings, skills(), body), 201)


@router.get("/schedules/{schedule_id}", response_model=ScheduleView, summary="One schedule")
def show_schedule(
    asking: Reading,
    schedule_id: ScheduleId,
    firings: Annotated[int, Query(ge=0, le=99, description="How many of its last due times to tell of.")] = 0,
) -> Reply:
    found = timetable.show(asking.settings, schedule_id)
    return Reply(found | ({"firings": timetable.seen(asking.settings, schedule_id, firings)} if firings else {}))


@router.patch(
    "/schedules/{schedule_id}", response_model=ScheduleView, summary="Rename, pause or resume", responses=problems(409)
)
def change_schedule(asking: Writing, schedule_id: ScheduleId, body: Change) -> Reply:
    return Reply(timetable.change(asking.settings, schedule_id, title=body.title, status=body.status))


@router.delete("/schedules/{schedule_id}", status_code=204, summary="Delete a schedule")
def remove_schedule(asking: Writing, schedule_id: ScheduleId) -> Empty:
    """Projects it started go on."""
    timetable.remove(asking.settings, schedule_id)
    return Empty(status_code=204)
