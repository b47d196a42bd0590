"""Files that a project file names: they lie beside it, in its folder, and nothing leads out of it.

No link is followed, of either kind: a folder somebody else packed may hold one that points at their reader's secrets.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from registry.errors import Fault
from registry.graph.findings import nearest, quoted

#: Folders nested deeper than this are refused.
_MAX_DEPTH: Final = 32


class Unusable(Exception):
    """A named file cannot be used; `code` and the message become a fault at the field that names it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def at(self, path: str) -> Fault:
        return Fault(path, self.code, str(self))


@dataclass(frozen=True)
class Beside:
    """A regular file in the project file's folder."""

    path: Path
    #: Its path from that folder, POSIX.
    name: str
    bytes: int


def find(folder: Path, name: str) -> list[Beside]:
    """The file of a name, or all files of the folder of that name, sorted.

    Raises:
        Unusable: `outside`, `missing`, `link`, `unsupported_type`, `unreadable`.
    """
    segments = _segments(name)
    status = _walk(folder, segments, name)
    path = folder.joinpath(*segments)
    if stat.S_ISDIR(status.st_mode):
        return list(_below(path, "/".join(segments), depth=0))
    return [_file(path, "/".join(segments), status)]


def find_file(folder: Path, name: str) -> Beside:
    """The one file of a name.

    Raises:
        Unusable: as `find`, and for a folder.
    """
    segments = _segments(name)
    status = _walk(folder, segments, name)
    if stat.S_ISDIR(status.st_mode):
        raise Unusable("wrong_type", f"{quoted(name)} is a folder, and has to be a file")
    return _file(folder.joinpath(*segments), "/".join(segments), status)


def open_regular(file: Beside) -> int:
    """A handle on a file found before, judged anew: it may have been swapped meanwhile.

    Raises:
        Unusable: when it is no longer a regular file of one name.
    """
    try:
        handle = os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Unusable("unreadable", f"{quoted(file.name)} cannot be read: {error.strerror}") from None
    try:
        _judge(os.fstat(handle), file.name)
    except Unusable:
        os.close(handle)
        raise
    return handle


def _segments(name: str) -> list[str]:
    if "\0" in name:
        raise Unusable("invalid_value", "a path has no NUL")
    if name.startswith(("/", "~")) or "\\" in name or Path(name).drive:
        raise Unusable(
            "outside", f"{quoted(name)} is not a path beside the project file; give a relative one, with '/'"
        )
    segments = [segment for segment in name.split("/") if segment not in ("", ".")]
    if ".." in segments:
        raise Unusable("outside", f"{quoted(name)} leads out of the folder of the project file")
    return segments


def _walk(folder: Path, segments: list[str], name: str) -> os.stat_result:
    """What the last segment is, every one before it being a real folder."""
    here, status = folder, folder.stat()
    for segment in segments:
        if not stat.S_ISDIR(status.st_mode):
            raise Unusable("missing", f"there is no {quoted(name)}: {quoted(here.name)} is a file")
        above, here = here, here / segment
        try:
            status = here.lstat()
        except OSError:
            raise Unusable(
                "missing", f"there is no {quoted(name)} beside the project file{_like(above, segment)}"
            ) from None
        if stat.S_ISLNK(status.st_mode):
            raise Unusable(
                "link", f"{quoted(name)} is or passes a link, which is not followed; put the file itself there"
            )
    return status


def _like(folder: Path, segment: str) -> str:
    try:
        names = sorted(entry.name for entry in os.scandir(folder))
    except OSError:
        return ""
    return nearest(segment, names)


def _below(folder: Path, name: str, depth: int) -> Iterator[Beside]:
    if depth > _MAX_DEPTH:
        raise Unusable("too_deep", f"{quoted(name)} lies more than {_MAX_DEPTH} folders deep")
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise Unusable("unreadable", f"the folder {quoted(name)} cannot be read: {error.strerror}") from None
    for entry in entries:
        inner = f"{name}/{entry.name}" if name else entry.name
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            yield from _below(folder / entry.name, inner, depth + 1)
        else:
            yield _file(folder / entry.name, inner, status)


def _file(path: Path, name: str, status: os.stat_result) -> Beside:
    _judge(status, name)
    if not os.access(path, os.R_OK):
        raise Unusable("unreadable", f"{quoted(name)} may not be read by this user")
    return Beside(path, name, status.st_size)


def _judge(status: os.stat_result, name: str) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise Unusable("link", f"{quoted(name)} is a link, which is not followed; put the file itself there")
    if not stat.S_ISREG(status.st_mode):
        raise Unusable("unsupported_type", f"{quoted(name)} is no regular file")
    if status.st_nlink > 1:
        raise Unusable("link", f"{quoted(name)} has a second name (a hard link); put a copy there")


__all__ = ["Beside", "Unusable", "find", "find_file", "open_regular"]
