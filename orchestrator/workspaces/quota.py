"""How much a workspace holds, without counting it at every write (spec: skills 5).

Two numbers, files and bytes, stand in `.officina/usage`. A change is booked under a lock together with the rename that
makes it: growth before the rename, shrinking after it, so that a crash in between leaves a number too high and never
one too low. Before a write is refused the workspace is counted anew, which also forgives numbers that are too high and
takes in what a person deleted. What a person puts in by hand counts from the next count on.
"""

import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.workspaces import handles, pathlock
from registry.errors import SkillError
from registry.skills.paths import RESERVED

_LEDGER: Final = "usage"
_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
#: Seconds a booking waits for the one before it; each takes less than a millisecond.
_PATIENCE_S: Final = 10.0
#: No caller can lock this path: it is reserved.
_LOCK: Final = f"{RESERVED}/{_LEDGER}"
#: Seconds after which a temporary file belongs to a writer that died.
_ABANDONED_S: Final = 3600.0


@dataclass(frozen=True)
class Usage:
    """Regular files of a workspace, and their bytes; our own folder is left out."""

    files: int
    bytes: int

    def plus(self, other: "Usage") -> "Usage":
        return Usage(max(0, self.files + other.files), max(0, self.bytes + other.bytes))


@dataclass(frozen=True)
class Quota:
    """The limits of one workspace, and the ledger that keeps them."""

    root: Path
    max_files: int
    max_bytes: int

    def admit(self, change: Usage) -> None:
        """Says whether there is room for a change, and books nothing."""
        self.commit(change, lambda: None, book=False)

    def commit(self, change: Usage, action: Callable[[], None], *, book: bool = True) -> None:
        """Runs `action`, which makes the change, once there is room for it.

        Raises:
            SkillError: `quota` when the workspace would hold too much; `action` did not run.
        """
        with (
            pathlock.hold(self.root, _LOCK, seconds=_PATIENCE_S),
            handles.folder(self.root, (RESERVED,), make=True) as folder,
        ):
            used = _read(folder) or self._count(folder)
            if self._excess(used.plus(change), change):
                used = self._count(folder)
            if excess := self._excess(used.plus(change), change):
                raise SkillError("quota", excess)
            if not book:
                return
            growth = Usage(max(0, change.files), max(0, change.bytes))
            _write(folder, used.plus(growth))
            action()
            if growth != change:
                _write(folder, used.plus(change))

    def _excess(self, would_be: Usage, change: Usage) -> str | None:
        # A workspace that a person filled beyond the limit may still shrink.
        if change.files > 0 and would_be.files > self.max_files:
            return f"the workspace would hold {would_be.files} files, and {self.max_files} is the most"
        if change.bytes > 0 and would_be.bytes > self.max_bytes:
            return f"the workspace would hold {would_be.bytes} bytes, and {self.max_bytes} is the most"
        return None

    def _count(self, ledger_folder: int) -> Usage:
        with handles.folder(self.root, ()) as top:
            found = handles.scan(top, recursive=True)
            regular = [(path, status) for path, status in found if stat.S_ISREG(status.st_mode)]
        counted = [status.st_size for path, status in regular if not is_ours(path)]
        _sweep(self.root, regular)
        used = Usage(len(counted), sum(counted))
        _write(ledger_folder, used)
        return used


def is_ours(path: str) -> bool:
    """Whether a path as found on disk is our folder, lies in it, or is a temporary file."""
    return any(segment.casefold().startswith(RESERVED) for segment in path.split("/"))


def _sweep(root: Path, found: list[tuple[str, os.stat_result]]) -> None:
    """Removes what writers that were killed left behind."""
    eldest = time.time() - _ABANDONED_S
    for path, status in found:
        *parents, name = path.split("/")
        if name.startswith(handles.TEMPORARY) and status.st_mtime < eldest:
            try:
                with handles.folder(root, parents) as folder:
                    handles.remove(folder, name)
            except SkillError:  # the folder went away meanwhile
                continue


def _read(folder: int) -> Usage | None:
    """The booked numbers; None when there are none, or a power failure tore them."""
    ledger = os.open(_LEDGER, _OPEN, 0o666, dir_fd=folder)
    try:
        words = os.read(ledger, 64).split()
    finally:
        os.close(ledger)
    if len(words) != 2 or not all(word.isdigit() for word in words):
        return None
    return Usage(int(words[0]), int(words[1]))


def _write(folder: int, used: Usage) -> None:
    ledger = os.open(_LEDGER, _OPEN, 0o666, dir_fd=folder)
    try:
        # One write of a fixed width: a process killed around it leaves the old numbers or the new.
        os.pwrite(ledger, f"{used.files:020d} {used.bytes:020d}\n".encode(), 0)
    finally:
        os.close(ledger)
