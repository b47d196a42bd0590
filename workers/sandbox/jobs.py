"""Commands of the shell, and jobs that go on behind them (`registry.skills.jobs.Jobs`; spec: engine 15).

A thread of this process keeps each job, as a call keeps its command: the program lives behind the wall of the sandbox,
and ends with all it started when the process that keeps it dies, however that happens. Other processes read the job's
folder, and ask for its end there.
"""

import logging
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from orchestrator.workspaces import pathlock
from registry.errors import SkillError
from registry.skills.context import Caller, Execution
from registry.skills.jobs import Command, Finished, JobView
from registry.skills.paths import RESERVED
from workers.sandbox import room
from workers.sandbox.box import Box
from workers.sandbox.jobrecords import MAX_KEPT, Kept, Records, new_job
from workers.sandbox.limits import MIB, Limits
from workers.sandbox.supervise import Stream

log = logging.getLogger(__name__)

#: Jobs of one workspace that run at once, and ended ones something is kept of.
MAX_JOBS: Final = 16
#: Seconds between two questions whether a job's task goes on.
TASK_LOOK_S: Final = 1.0
#: Seconds a command may take that is waited for.
MAX_RUN_S: Final = 600.0
#: Seconds a kill waits for the end.
KILL_S: Final = 5.0
#: Seconds a job has to begin.
BEGIN_S: Final = 30.0

_LOCK: Final = f"{RESERVED}/jobs.lock"
_LOOK_S: Final = 0.05
_SIGNAL_BASE: Final = 128


@dataclass(frozen=True)
class Allowed:
    """What the deployment gives the shell (`settings.shell`)."""

    network: bool = False
    memory: int = 1024 * MIB
    #: Seconds a job may take.
    job_s: float = 3600

    @property
    def limits(self) -> Limits:
        """More than a lone program gets: a shell builds and tests whole projects."""
        return Limits(
            memory=self.memory,
            processes=256,
            handles=1024,
            file=200 * MIB,
            scratch=256 * MIB,
            scratch_entries=50_000,
        )


class JobKeeper:
    """The jobs this process keeps, in whatever workspace."""

    def __init__(
        self,
        sandbox: Callable[[], object],
        allowed: Allowed = Allowed(),
        over: Callable[[str], bool] = lambda _owner: False,
    ) -> None:
        """
        Args:
            sandbox: the one of this machine.
            allowed: what the deployment gives.
            over: whether a task (or a run without one) has ended; asked from threads.
        """
        self._sandbox = sandbox
        self.allowed = allowed
        self._over = over
        self._leaving = threading.Event()
        self._threads: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()

    def of(self, root: Path) -> "WorkspaceJobs":
        """The port for one workspace."""
        return WorkspaceJobs(root.resolve(), self)

    def box(self) -> Box:
        """
        Raises:
            SkillError: `sandbox_unavailable`.
        """
        found = self._sandbox()
        if not isinstance(found, Box):
            words = getattr(found, "message", "there is no sandbox on this machine, and nothing ran")
            raise SkillError("sandbox_unavailable", words)
        return replace(found, limits=self.allowed.limits)

    def keep(self, kept: Kept, work: Callable[[Callable[[], bool]], Execution]) -> None:
        """Follows a job in a thread of its own until it ends."""
        thread = threading.Thread(target=self._follow, args=(kept, work), name=kept.job.id, daemon=True)
        with self._lock:
            self._threads[kept.job.id] = thread
        thread.start()

    def _follow(self, kept: Kept, work: Callable[[Callable[[], bool]], Execution]) -> None:
        asked = time.monotonic()

        def unwanted() -> bool:
            nonlocal asked
            if self._leaving.is_set() or kept.asked_to_end:
                return True
            if time.monotonic() - asked < TASK_LOOK_S:
                return False
            asked = time.monotonic()
            return self._task_is_over(kept.job.owner)

        try:
            done = work(unwanted)
        except SkillError as error:
            # A reason to say so, unless it is the one that was asked for.
            kept.end("killed", None, "" if error.code == "cancelled" else error.message)
        except Exception:
            log.exception("job %s could not be followed to its end", kept.job.id)
            kept.end("killed", None, "ended by a fault on our side")
        else:
            words = "; ".join(done.warnings)
            if done.timed_out:
                kept.end("timed_out", None, words or "ended: its time was over")
            elif done.exit_code is None and done.warnings:
                kept.end("killed", None, words)
            else:
                kept.end("exited", _exit_code(done), words)
        finally:
            with self._lock:
                self._threads.pop(kept.job.id, None)

    def _task_is_over(self, owner: str) -> bool:
        try:
            return self._over(owner)
        except Exception as error:
            log.warning("whether the task of a job goes on cannot be seen; asked again: %s", error)
            return False

    def close(self) -> None:
        """Ends every job this process keeps."""
        self._leaving.set()
        with self._lock:
            threads = list(self._threads.values())
        for thread in threads:
            thread.join(KILL_S)


class WorkspaceJobs:
    """The port `Jobs` of one workspace."""

    def __init__(self, root: Path, keeper: JobKeeper) -> None:
        self._root = root
        self._keeper = keeper
        self._records = Records(root)

    def run(self, command: Command, *, cancelled: Callable[[], bool]) -> Finished:
        streams = (Ends(MAX_KEPT), Ends(MAX_KEPT))
        done = self._execute(command, cancelled, streams=streams)
        stderr = streams[1].text
        for warning in done.warnings:
            stderr += f"{'' if not stderr or stderr.endswith(chr(10)) else chr(10)}[{warning}]\n"
        return Finished(_exit_code(done), streams[0].text, stderr, done.timed_out, done.duration_ms)

    def start(self, caller: Caller, command: Command) -> str:
        self._keeper.box()  # before anything is written about a job that cannot begin
        with pathlock.hold(self._root, _LOCK, seconds=KILL_S):
            self._make_room()
            kept = Kept(self._records, new_job(_owner(caller)))
        job_id = kept.job.id
        command = replace(command, timeout_s=min(command.timeout_s, self._keeper.allowed.job_s))
        begun = threading.Event()
        fault: list[SkillError] = []

        def work(unwanted: Callable[[], bool]) -> Execution:
            try:
                return self._execute(command, unwanted, streams=kept.streams, on_start=begun.set)
            except SkillError as error:
                if not begun.is_set():
                    fault.append(error)
                raise
            finally:
                begun.set()

        self._keeper.keep(kept, work)
        begun.wait(BEGIN_S)
        if fault and fault[0].code != "cancelled":
            self._wait_until(caller, job_id, KILL_S)
            self._records.remove(job_id)
            raise fault[0]
        return job_id

    def look(self, caller: Caller, job_id: str, *, since: int = 0) -> JobView:
        job = self._records.read(job_id) if _is_id(job_id) else None
        if job is None or job.owner != _owner(caller):
            return JobView(job_id, "unknown")
        return self._records.view(job, since)

    def kill(self, caller: Caller, job_id: str) -> JobView:
        if self.look(caller, job_id).status == "running":
            with suppress(SkillError):  # it was cleared away in between
                self._records.ask_to_end(job_id)
            self._wait_until(caller, job_id, KILL_S)
        return self.look(caller, job_id)

    def _wait_until(self, caller: Caller, job_id: str, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.look(caller, job_id).status == "running":
            time.sleep(_LOOK_S)

    def _make_room(self) -> None:
        """Forgets the oldest of too many ended jobs.

        Raises:
            SkillError: `quota`.
        """
        jobs = self._records.all()
        ended = [job for job in jobs if job.status != "running"]
        if len(jobs) - len(ended) >= MAX_JOBS:
            raise SkillError("quota", f"{MAX_JOBS} jobs run in this workspace, the most; end one with process_kill")
        for job in ended[: -(MAX_JOBS - 1)]:
            self._records.remove(job.id)

    def _execute(
        self,
        command: Command,
        cancelled: Callable[[], bool],
        *,
        streams: tuple[Stream, Stream],
        on_start: Callable[[], None] = lambda: None,
    ) -> Execution:
        box = self._keeper.box()
        around = room.prepare(
            self._root, hidden=command.hidden, network=command.network and self._keeper.allowed.network
        )
        return box.execute(
            ["sh", "-c", command.text],
            stdin=b"",
            files={},
            timeout_s=min(command.timeout_s, max(self._keeper.allowed.job_s, MAX_RUN_S)),
            cancelled=cancelled,
            room=around,
            streams=streams,
            on_start=on_start,
        )


class Ends:
    """The first and the last bytes of a stream (`workers.sandbox.supervise.Stream`): a build says why at its end."""

    def __init__(self, most: int) -> None:
        self.seen = 0
        self._half = most // 2
        self._head = bytearray()
        self._tail = bytearray()

    @property
    def data(self) -> bytes:
        return bytes(self._head + self._tail)

    @property
    def truncated(self) -> bool:
        return self.seen > len(self._head) + len(self._tail)

    def add(self, part: bytes) -> None:
        self.seen += len(part)
        room = self._half - len(self._head)
        self._head += part[:room]
        self._tail += part[room:] if room > 0 else part
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    @property
    def text(self) -> str:
        tail = bytes(self._tail[-self._half :])
        left_out = self.seen - len(self._head) - len(tail)
        between = f"\n[... {left_out} bytes left out ...]\n" if left_out else ""
        if not left_out:
            return bytes(self._head + tail).decode(errors="replace")
        return bytes(self._head).decode(errors="replace") + between + tail.decode(errors="replace")


def _owner(caller: Caller) -> str:
    return caller.task_id or caller.run_id or ""


def _is_id(text: str) -> bool:
    kind, _, digits = text.partition("-")
    return kind == "job" and len(digits) == 12 and all(digit in "0123456789abcdef" for digit in digits)


def _exit_code(done: Execution) -> int:
    """As a shell says it: 128 and the signal's number for a program that a signal ended."""
    if done.exit_code is not None:
        return done.exit_code
    known = {one.name: one.value for one in signal.Signals}
    name = done.signal or "SIGKILL"
    return _SIGNAL_BASE + known.get(name, int(name.removeprefix("SIG")) if name[3:].isdigit() else 9)


__all__ = ["Allowed", "Ends", "JobKeeper", "WorkspaceJobs"]
