"""Files of a workspace, opened for reading: nothing on the way to one may be a link, and it has one name only.

What agents leave in a workspace is theirs to name; a link in it must not lead a reader to a file of ours.
"""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from registry.errors import Refused, SkillError
from registry.skills.paths import normalise


@dataclass(frozen=True)
class Download:
    """An open file; whoever has it closes it."""

    file: BinaryIO
    name: str
    bytes: int
    #: Tells one version of the file from another.
    version: str


def open_file(workspace: Path, path: str) -> Download:
    """Opens a regular file of a workspace.

    Raises:
        Refused: `unknown_file`, whatever is wrong with the path or on the way.
    """
    try:
        segments = normalise(path).split("/")
        handle = _walk(workspace, segments)
    except (SkillError, OSError):
        raise _unknown(path) from None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(handle)
        raise _unknown(path)
    version = f"{status.st_size:x}-{status.st_mtime_ns:x}"
    return Download(os.fdopen(handle, "rb"), segments[-1], status.st_size, version)


def _walk(workspace: Path, segments: list[str]) -> int:
    here = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for segment in segments[:-1]:
            inner = os.open(segment, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = inner
        # Not blocking: a pipe would be waited for.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(segments[-1], flags, dir_fd=here)
    finally:
        with suppress(OSError):
            os.close(here)


def _unknown(path: str) -> Refused:
    return Refused(f"the project has no file {path[:200]!r}", code="unknown_file")
