"""The pack `process_kill`: ends jobs that `shell` left in the background (spec: engine 15).

It needs no gate: a call reaches only jobs that its own task was allowed to start.
"""

from typing import Annotated

from pydantic import Field, StringConstraints

from registry.base import Model
from registry.packs.pack import Pack
from registry.skills.context import SkillContext
from registry.skills.jobs import JobStatus, JobView
from registry.skills.skill import tool


class Kill(Model):
    job_id: Annotated[str, StringConstraints(min_length=1, max_length=100)] = Field(alias="job_id")


class Killed(Model):
    job_id: str
    status: JobStatus
    ok: bool


@tool(
    "process_kill",
    title="End a job",
    effect="idempotent",
    timeout_s=20,
    needs=("jobs",),
)
def kill(given: Kill, context: SkillContext) -> Killed:
    """Ends a background job of `shell` with everything it started. `ok` says that it no longer runs; status `unknown`
    means that your task started no such job."""
    seen = context.jobs.kill(context.caller, given.job_id) if context.jobs else JobView(given.job_id, "unknown")
    return Killed(job_id=given.job_id, status=seen.status, ok=seen.status not in ("running", "unknown"))


PACK = Pack("process_kill", "end jobs in the background", (kill,))

__all__ = ["PACK"]
