"""What is kept of a job: a folder of the workspace that any process of the host can read (spec: engine 15).

`.officina/jobs/<id>/` holds `job.json` (what it is and how it ended), `alive` (locked by the process that keeps the
job: the kernel lets go of it whatever way that process dies), `kill` (somebody wants its end) and the output in pieces
whose names say at which character they begin. Other hosts that share the workspace see the same; there the age of
`alive` says whether anybody still keeps the job.
"""

import codecs
import fcntl
import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Final

from orchestrator.workspaces import handles
from registry.errors import SkillError
from registry.skills.jobs import JobStatus, JobView
from registry.skills.paths import RESERVED

#: Characters of a job's output that are kept, the last ones.
MAX_KEPT: Final = 256_000
#: Seconds between two signs of life.
BEAT_S: Final = 2.0
#: Seconds without one after which a job of another host counts as lost.
SILENT_S: Final = 30.0

_JOBS: Final = (RESERVED, "jobs")
_STATE, _ALIVE, _KILL, _PIECE = "job.json", "alive", "kill", "out-"
#: Characters of a piece; a piece goes as a whole once it lies behind what is kept.
_PIECE_CHARS: Final = 64_000
_MAX_STATE: Final = 64 * 1024
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_APPEND: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass
class Job:
    """The content of `job.json`."""

    id: str
    #: The task it belongs to, or the run where there is no task.
    owner: str
    host: str
    boot: str
    started_at: int
    status: JobStatus = "running"
    exit_code: int | None = None
    ended_at: int | None = None


@cache
def boot() -> str:
    """Tells one life of one kernel from every other: locks are seen within it, and gone with it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return socket.gethostname()


def new_job(owner: str) -> Job:
    return Job(f"job-{secrets.token_hex(6)}", owner, socket.gethostname(), boot(), time.time_ns() // 1_000_000)


@dataclass(frozen=True)
class Records:
    """The jobs of one workspace."""

    root: Path

    def all(self) -> list[Job]:
        """Every job something is kept of, the oldest first."""
        with handles.folder(self.root, _JOBS, make=True) as folder:
            names = _names(folder)
        found = [job for name in names if (job := self.read(name)) is not None]
        return sorted(found, key=lambda job: job.started_at)

    def read(self, job_id: str) -> Job | None:
        """A job as it stands, with what its keeper can no longer write itself: that it is lost."""
        job = self._read(job_id)
        if job is None or job.status != "running" or self._kept(job):
            return job
        # It may have ended, and been let go of, between the two looks.
        job = self._read(job_id)
        if job is not None and job.status == "running":
            job.status = "lost"
        return job

    def _read(self, job_id: str) -> Job | None:
        try:
            with self.folder(job_id) as folder, handles.opened(folder, _STATE, _STATE) as file:
                return Job(**json.loads(os.read(file, _MAX_STATE)))
        except (SkillError, OSError, ValueError, TypeError):
            return None

    def _kept(self, job: Job) -> bool:
        """Whether a process still keeps a job."""
        try:
            with self.folder(job.id) as folder, handles.opened(folder, _ALIVE, _ALIVE) as alive:
                if job.boot != boot():
                    # Another machine, or an earlier life of this one, whose locks are not seen here.
                    silent = time.time() - os.fstat(alive).st_mtime > SILENT_S
                    return job.host != socket.gethostname() and not silent
                return not _locked(alive)
        except (SkillError, OSError):
            return False

    @contextmanager
    def folder(self, job_id: str) -> Iterator[int]:
        with handles.folder(self.root, (*_JOBS, job_id)) as folder:
            yield folder

    def write(self, folder: int, job: Job) -> None:
        with handles.staged(folder, json.dumps(asdict(job)).encode()) as staged:
            handles.rename(folder, staged, _STATE)

    def ask_to_end(self, job_id: str) -> None:
        with self.folder(job_id) as folder:
            os.close(os.open(_KILL, _NEW, 0o600, dir_fd=folder))

    def remove(self, job_id: str) -> None:
        with suppress(OSError, SkillError), handles.folder(self.root, _JOBS) as jobs:
            shutil.rmtree(job_id, dir_fd=jobs)

    def view(self, job: Job, since: int) -> JobView:
        """A job and what it said from a character on, as far as that is kept."""
        first, text = self._output(job.id)
        end = first + len(text)
        start = min(max(since, end - MAX_KEPT, first), end)
        return JobView(
            job.id,
            job.status,
            job.exit_code,
            text[start - first :],
            since=start,
            next_since=end,
            truncated=since < start,
        )

    def _output(self, job_id: str) -> tuple[int, str]:
        """What is kept, and at which character that begins."""
        for _ in range(3):  # a piece may go while the next is read
            with suppress(SkillError, FileNotFoundError), self.folder(job_id) as folder:
                names = sorted(name for name in _names(folder) if name.startswith(_PIECE))
                text = "".join(_piece(folder, name) for name in names)
                return (int(names[0].removeprefix(_PIECE)) if names else 0), text
        return 0, ""


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _piece(folder: int, name: str) -> str:
    with handles.opened(folder, name, name) as file:
        # A character may be half written at this moment.
        return b"".join(handles.chunks(file)).decode(errors="ignore")


def _locked(file: int) -> bool:
    """Takes the lock if nobody has it; it goes with the handle."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Kept:
    """A job in the hands of the process that keeps it: its folder, its lock, its output."""

    def __init__(self, records: Records, job: Job) -> None:
        self.job = job
        self._records = records
        with handles.folder(records.root, (*_JOBS, job.id), make=True) as folder:
            self._folder = os.dup(folder)
        os.set_inheritable(self._folder, False)
        self._alive = os.open(_ALIVE, _NEW, 0o600, dir_fd=self._folder)
        fcntl.flock(self._alive, fcntl.LOCK_EX)
        records.write(self._folder, job)
        self._beaten = time.monotonic()
        self._decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in range(2)]
        self._pieces: list[tuple[int, int]] = []  # where each begins, and its characters
        self.streams = (_JobStream(self, 0), _JobStream(self, 1))

    @property
    def asked_to_end(self) -> bool:
        """Whether somebody wants its end; a sign of life as well."""
        if time.monotonic() - self._beaten > BEAT_S:
            self._beaten = time.monotonic()
            os.utime(self._alive)
        return handles.look(self._folder, _KILL) is not None

    def say(self, stream: int, part: bytes, *, final: bool = False) -> None:
        """Adds to the output."""
        text = self._decoders[stream].decode(part, final)
        while text:
            begin, held = self._pieces[-1] if self._pieces else (0, 0)
            if not self._pieces or held >= _PIECE_CHARS:
                begin, held = begin + held, 0
                self._pieces.append((begin, 0))
                self._drop(begin)
            room = text[: _PIECE_CHARS - held]
            self._append(f"{_PIECE}{begin:015d}", room.encode())
            self._pieces[-1] = (begin, held + len(room))
            text = text[len(room) :]

    def _append(self, name: str, data: bytes) -> None:
        file = os.open(name, _APPEND, 0o600, dir_fd=self._folder)
        try:
            os.write(file, data)
        finally:
            os.close(file)

    def _drop(self, end: int) -> None:
        """Removes pieces that lie wholly behind what is kept of an output that goes to `end` and beyond."""
        while end - sum(self._pieces[0]) >= MAX_KEPT:
            begin, _ = self._pieces.pop(0)
            handles.remove(self._folder, f"{_PIECE}{begin:015d}")

    def end(self, status: JobStatus, exit_code: int | None, words: str = "") -> None:
        """The last word about the job; after it the lock is let go."""
        for stream in (0, 1):
            self.say(stream, b"", final=True)
        if words:
            self.say(1, f"\n[{words}]\n".encode())
        self.job.status, self.job.exit_code, self.job.ended_at = status, exit_code, time.time_ns() // 1_000_000
        try:
            self._records.write(self._folder, self.job)
        finally:
            os.close(self._alive)
            os.close(self._folder)


class _JobStream:
    """One of the two streams of a job (`workers.sandbox.supervise.Stream`): what comes is in the file at once."""

    def __init__(self, kept: Kept, number: int) -> None:
        self._kept, self._number = kept, number
        self.data, self.truncated, self.seen = b"", False, 0

    def add(self, part: bytes) -> None:
        self.seen += len(part)
        self._kept.say(self._number, part)


__all__ = ["MAX_KEPT", "Job", "Kept", "Records", "boot", "new_job"]
