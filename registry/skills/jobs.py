"""The port of programs in a workspace: commands of the shell, and jobs that go on behind them (spec: engine 15).

Its real side is `workers/sandbox/jobs.py`. Which jobs a call may see follows from its caller: those of the same task,
or of the same run where there is no task.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from registry.skills.context import Caller

#: `exited` by itself; `killed` on demand, or with its task, its run or its worker's orderly end; `timed_out` at its
#: limit; `lost`: what kept it died, and it with it; `unknown`: this task started no such job.
JobStatus = Literal["running", "exited", "killed", "timed_out", "lost", "unknown"]


@dataclass(frozen=True)
class Command:
    """A line for `/bin/sh`, and what it finds around it."""

    text: str
    #: Seconds it may take.
    timeout_s: float
    #: What its agent wants; the deployment has the last word.
    network: bool = False
    #: Patterns as in `.gitignore`: names it does not see, where the wall can hide them.
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finished:
    """How a command came out."""

    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool
    duration_ms: int


@dataclass(frozen=True)
class JobView:
    """A job as it is now."""

    id: str
    status: JobStatus
    exit_code: int | None = None
    #: What it said, stdout and stderr as they came, from `since` to `next_since`.
    output: str = ""
    #: Characters it said before `output`, and up to its end.
    since: int = 0
    next_since: int = 0
    #: Some of what was asked for is no longer kept.
    truncated: bool = False


class Jobs(Protocol):
    """Runs commands in one workspace, behind the wall of the sandbox."""

    def run(self, command: Command, *, cancelled: Callable[[], bool]) -> Finished:
        """Runs a command to its end.

        Raises:
            SkillError: `sandbox_unavailable` (nothing ran), `cancelled`, `quota`.
        """
        ...

    def start(self, caller: "Caller", command: Command) -> str:
        """Starts a command and leaves it to itself; returns the id of the job.

        Raises:
            SkillError: `quota` when the workspace has as many jobs as it may, `sandbox_unavailable`.
        """
        ...

    def look(self, caller: "Caller", job_id: str, *, since: int = 0) -> JobView:
        """A job of the caller's task; another's, or none, is `unknown`."""
        ...

    def kill(self, caller: "Caller", job_id: str) -> JobView:
        """Ends a job with all it started, and waits until it has ended, for some seconds."""
        ...


__all__ = ["Command", "Finished", "JobStatus", "JobView", "Jobs"]
