"""Files of a workspace reached by directory handles, one component at a time (spec: skills 5).

Resolving a path and then opening it is a race: between the two, another task may swap a folder for a link. Here every
step is opened relative to the handle of the step before, without following links, and what was opened is judged, not
its name. Names come in already judged by `registry.skills.paths`.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from registry.errors import SkillError
from registry.skills.paths import RESERVED

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Without blocking: opening a pipe nobody writes to would wait for ever.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
#: What `open` answers for a link, depending on the system.
_IS_LINK: Final = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)
#: Begins like our folder, so that no caller can name one and every listing hides it.
TEMPORARY: Final = f"{RESERVED}-tmp-"
#: Folders nested deeper than this are not walked; no caller can name what lies in them.
_MAX_DEPTH: Final = 32
_CHUNK: Final = 1 << 20


@contextmanager
def folder(root: Path, segments: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """A handle on the folder that `segments` lead to from `root`; with `make`, missing ones are created.

    Raises:
        SkillError: `path_escape` for a link on the way; `not_found` (`conflict` with `make`) where a step is a file;
            `not_found` where one is missing.
    """
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for depth, name in enumerate(segments, start=1):
            inner = _step(handle, name, "/".join(segments[:depth]), make=make)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _step(handle: int, name: str, path: str, *, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=handle)
    except FileNotFoundError:
        if not make:
            raise SkillError("not_found", f"there is no folder {path!r} in the workspace") from None
        _make_folder(handle, name)
        return _step(handle, name, path, make=False)
    except OSError as error:
        if error.errno not in _IS_LINK:
            raise
        status = look(handle, name)
        # A folder, or nothing: it was a link a moment ago.
        if status is None or stat.S_ISLNK(status.st_mode) or stat.S_ISDIR(status.st_mode):
            raise _link(path) from None
        raise SkillError("conflict" if make else "not_found", f"{path!r} is a file, not a folder") from None


def _make_folder(handle: int, name: str) -> None:
    try:
        os.mkdir(name, dir_fd=handle)
    except FileExistsError:  # another call was faster
        return
    except FileNotFoundError:
        raise _vanished() from None
    os.fsync(handle)


def look(handle: int, name: str) -> os.stat_result | None:
    """What lies under a name, links not followed; None when nothing does."""
    try:
        return os.stat(name, dir_fd=handle, follow_symlinks=False)
    except FileNotFoundError:
        return None


def judge_file(status: os.stat_result, path: str) -> None:
    """Refuses all but a regular file with one name.

    A file of no name passes: it was replaced right after it was opened, and what it held is whole.

    Raises:
        SkillError: `path_escape` for a link of either kind, `unsupported_type` for pipes, sockets and devices.
    """
    if stat.S_ISLNK(status.st_mode):
        raise _link(path)
    if not stat.S_ISREG(status.st_mode):
        raise SkillError("unsupported_type", f"{path!r} is no regular file")
    if status.st_nlink > 1:
        raise SkillError("path_escape", f"{path!r} has a second name (a hard link), which may lie outside")


@contextmanager
def opened(handle: int, name: str, path: str) -> Iterator[int]:
    """A handle on a regular file, for reading; a folder is the caller's to judge before."""
    status = look(handle, name)
    if status is None:
        raise SkillError("not_found", f"there is no file {path!r} in the workspace")
    judge_file(status, path)  # before opening: opening a device can do something
    try:
        file = os.open(name, _FILE, dir_fd=handle)
    except FileNotFoundError:
        raise SkillError("not_found", f"there is no file {path!r} in the workspace") from None
    except OSError as error:
        if error.errno not in _IS_LINK:
            raise
        raise _link(path) from None
    try:
        judge_file(os.fstat(file), path)  # and after: the name may have been swapped in between
        yield file
    finally:
        os.close(file)


def chunks(file: int) -> Iterator[bytes]:
    """The content of an open file, a piece at a time."""
    while piece := os.read(file, _CHUNK):
        yield piece


@contextmanager
def staged(handle: int, content: bytes) -> Iterator[str]:
    """A temporary file that holds `content`, on disk; its name is to be renamed, and is gone at the end either way."""
    name = f"{TEMPORARY}{secrets.token_hex(8)}"
    try:
        _create(handle, name, content)
        yield name
    except FileNotFoundError:
        raise _vanished() from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise SkillError("quota", "the disk that holds the workspace is full") from None
    finally:
        remove(handle, name)


def _create(handle: int, name: str, content: bytes) -> None:
    file = os.open(name, _NEW, 0o666, dir_fd=handle)  # the umask decides on the rest; never an exec bit
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(file, left) :]
        os.fsync(file)
    finally:
        os.close(file)


def rename(handle: int, staged_name: str, name: str) -> None:
    """Puts a staged file in the place of `name` in one step; readers see the old content or the new, never a part."""
    os.replace(staged_name, name, src_dir_fd=handle, dst_dir_fd=handle)
    os.fsync(handle)


def remove(handle: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=handle)
    except FileNotFoundError:
        return


def scan(
    handle: int,
    *,
    recursive: bool,
    enter: Callable[[str], bool] = lambda _path: True,
    prefix: str = "",
    depth: int = 0,
) -> Iterator[tuple[str, os.stat_result]]:
    """What lies below a folder, our own folder included; links are shown and never entered.

    Args:
        enter: of a folder below, by its path: whether to look into it as well.
    """
    with os.scandir(handle) as found:
        names = [entry.name for entry in found]
    for name in names:
        status = look(handle, name)
        if status is None:
            continue
        yield prefix + name, status
        if recursive and stat.S_ISDIR(status.st_mode) and depth < _MAX_DEPTH and enter(prefix + name):
            yield from _below(handle, name, prefix, depth, enter)


def _below(
    handle: int, name: str, prefix: str, depth: int, enter: Callable[[str], bool]
) -> Iterator[tuple[str, os.stat_result]]:
    try:
        inner = os.open(name, _FOLDER, dir_fd=handle)
    except OSError:  # gone, swapped for a link, or not ours to read: nothing to show
        return
    try:
        yield from scan(inner, recursive=True, enter=enter, prefix=f"{prefix}{name}/", depth=depth + 1)
    finally:
        os.close(inner)


def _link(path: str) -> SkillError:
    return SkillError("path_escape", f"{path!r} is a link; links in a workspace are not followed")


def _vanished() -> SkillError:
    return SkillError("not_found", "the folder was removed while it was written to; nothing was written")
