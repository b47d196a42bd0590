"""One writer a path, across the threads and the processes of a host (spec: skills 5).

A lock is an advisory lock of the kernel on a file under `.officina/locks`: it ends with its holder, however that dies.
Paths share a fixed number of such files, so the folder does not grow with every path ever written and no file is
removed while somebody waits for it, which a shared volume could see late. Two paths of one file only wait for each
other.
"""

import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from orchestrator.workspaces import handles
from registry.errors import SkillError
from registry.skills.context import Deadline
from registry.skills.paths import RESERVED

_FOLDER: Final = (RESERVED, "locks")
#: Many more than the writes that ever run at once.
_FILES: Final = 256
_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
#: Seconds between two tries; they grow from the first to the second.
_PAUSES: Final = (0.002, 0.05)

#: The locks this thread holds: taking one again inside of it (lock, look, write) is no second lock.
_mine = threading.local()


@contextmanager
def hold(root: Path, path: str, *, seconds: float) -> Iterator[None]:
    """Holds `path` of the workspace at `root` against every other caller of this function.

    Raises:
        SkillError: `conflict` when somebody else still holds it after `seconds`.
    """
    held = _mine.__dict__.setdefault("held", set())
    name = _file_of(path)
    if (root, name) in held:
        yield
        return
    with handles.folder(root, _FOLDER, make=True) as folder:
        lock = os.open(name, _OPEN, 0o666, dir_fd=folder)
    try:
        _acquire(lock, path, Deadline(seconds))
        held.add((root, name))
        yield
    finally:
        held.discard((root, name))
        os.close(lock)


def _file_of(path: str) -> str:
    if path.startswith(RESERVED):  # our own: never behind the lock of a caller's path
        return path.removeprefix(f"{RESERVED}/")
    # Folded: on a file system that ignores case, `A.md` and `a.md` are one file.
    digest = hashlib.sha256(path.casefold().encode()).digest()
    return f"{int.from_bytes(digest[:8], 'big') % _FILES:03d}"


def _acquire(lock: int, path: str, deadline: Deadline) -> None:
    pause, longest = _PAUSES
    while not _locked(lock):
        if deadline.passed:
            raise SkillError("conflict", f"another call is still writing {path!r}; nothing was changed")
        time.sleep(min(pause, deadline.left))
        pause = min(pause * 2, longest)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
