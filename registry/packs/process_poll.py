"""The pack `process_poll`: how a job stands that `shell` left in the background (spec: engine 15).

It needs no gate: a call reaches only jobs that its own task was allowed to start.
"""

import time
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from registry.base import Model
from registry.packs.pack import Pack
from registry.skills.context import SkillContext
from registry.skills.jobs import JobStatus, JobView
from registry.skills.skill import tool

_LOOK_S: Final = 0.05

JobId = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class Poll(Model):
    job_id: JobId = Field(alias="job_id")
    #: `nextSince` of the look before: only what came after it is returned.
    since: int = Field(default=0, ge=0)
    #: How long to wait for more, or for the end.
    wait_ms: int = Field(default=0, ge=0, le=30_000, alias="wait_ms")


class Polled(Model):
    job_id: str
    status: JobStatus
    exit_code: int | None
    output: str
    since: int
    next_since: int
    truncated: bool


@tool(
    "process_poll",
    title="Look at a job",
    timeout_s=40,
    needs=("jobs",),
)
def poll(given: Poll, context: SkillContext) -> Polled:
    """Says how a background job of `shell` stands and what it said since character `since` (pass `nextSince` of the
    look before), at most the last 256,000 characters; `truncated` says that some are no longer kept. With `wait_ms` it
    waits for more output or the end. Status: running, exited, killed, timed_out, lost (what kept it died, and it with
    it), unknown (your task started no such job)."""
    seen = _look(given.job_id, context, given.since)
    until = time.monotonic() + min(given.wait_ms / 1000, context.deadline.left)
    while seen.status == "running" and seen.next_since <= given.since and time.monotonic() < until:
        context.check()
        time.sleep(_LOOK_S)
        seen = _look(given.job_id, context, given.since)
    return Polled(
        job_id=given.job_id,
        status=seen.status,
        exit_code=seen.exit_code,
        output=seen.output,
        since=seen.since,
        next_since=seen.next_since,
        truncated=seen.truncated,
    )


def _look(job_id: str, context: SkillContext, since: int) -> JobView:
    return context.jobs.look(context.caller, job_id, since=since) if context.jobs else JobView(job_id, "unknown")


PACK = Pack("process_poll", "look at jobs in the background", (poll,))

__all__ = ["PACK"]
