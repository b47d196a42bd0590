"""The scratch folder: input files in, output files out, and how full it is.

Everything is reached through folder handles without following links: the program may have left any tree behind.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator

#: Levels of `out` that are looked into: as deep as a workspace path may be.
MAX_DEPTH = 12

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def prepare(scratch: str, files: list[tuple[str, int]], read: Callable[[int], bytes], owner: int | None) -> int:
    """Makes `in` and `out`, writes the input files (read-only), and returns a handle of the folder.

    Args:
        scratch: the folder, empty.
        files: path below `in` and size of each file.
        read: gives the next so many bytes of their content.
        owner: the user the program will be, when the keeper is somebody else.
    """
    box = os.open(scratch, _FOLDER)
    for name in ("in", "out"):
        os.mkdir(name, 0o755, dir_fd=box)
    if owner is not None:
        os.chown(box, owner, owner)
        os.chown("out", owner, owner, dir_fd=box)
    for path, size in files:
        _write(box, path, read(size))
    return box


def _write(box: int, path: str, content: bytes) -> None:
    parts = ["in", *path.split("/")]
    for end in range(2, len(parts)):
        with contextlib.suppress(FileExistsError):
            os.mkdir("/".join(parts[:end]), 0o755, dir_fd=box)
    fd = os.open("/".join(parts), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o444, dir_fd=box)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def collect(box: int, limits: dict[str, int]) -> Iterator[tuple[str, bytes, str]]:
    """Each regular file of `out` as (path, content, ""), and each thing left behind as (path, b"", why)."""
    try:
        out = os.open("out", _FOLDER, dir_fd=box)
    except OSError:
        return
    taken = left = 0
    for path, content, why_not in _walk(out, "", 1, limits["outFile"]):
        if not why_not and taken == limits["outFiles"]:
            why_not, content = f"more than {limits['outFiles']} files", b""
        taken += not why_not
        left += bool(why_not)
        # A thousand refusals say no more than twenty.
        if left > limits["outFiles"]:
            return
        yield path, content, why_not


def _walk(folder: int, prefix: str, depth: int, max_bytes: int) -> Iterator[tuple[str, bytes, str]]:
    try:
        for name in sorted(os.listdir(folder)):
            path = prefix + os.fsencode(name).decode("utf-8", "replace")
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISREG(mode):
                yield path, *_take(folder, name, max_bytes)
            elif not stat.S_ISDIR(mode):
                yield path, b"", "no regular file"
            elif depth == MAX_DEPTH:
                yield path, b"", f"deeper than {MAX_DEPTH} levels"
            else:
                try:
                    inner = os.open(name, _FOLDER, dir_fd=folder)
                except OSError as fault:
                    yield path, b"", fault.strerror or "unreadable"
                    continue
                yield from _walk(inner, path + "/", depth + 1, max_bytes)
    finally:
        os.close(folder)


def _take(folder: int, name: str, max_bytes: int) -> tuple[bytes, str]:
    try:
        fd = os.open(name, _FILE, dir_fd=folder)
    except OSError as fault:
        return b"", fault.strerror or "unreadable"
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            return b"", "no regular file with one name"
        if found.st_size > max_bytes:
            return b"", f"larger than {max_bytes} bytes"
        parts = []
        while part := os.read(fd, 1 << 20):
            parts.append(part)
        return b"".join(parts)[:max_bytes], ""
    finally:
        os.close(fd)


def usage(box: int, own_mount: bool, limits: dict[str, int]) -> tuple[int, int]:
    """Bytes and entries in the scratch folder; in a shared file system counted, and no further than past a limit.

    Raises:
        PermissionError: a folder in it cannot be looked into.
    """
    if own_mount:
        fs = os.fstatvfs(box)
        return (fs.f_blocks - fs.f_bfree) * fs.f_frsize, fs.f_files - fs.f_ffree
    used = entries = 0
    todo = [os.open(".", _FOLDER, dir_fd=box)]
    try:
        while todo and used <= limits["scratch"] and entries <= limits["scratchEntries"]:
            folder = todo.pop()
            more_bytes, more_entries = _measure(folder, todo, limits["scratchEntries"])
            used, entries = used + more_bytes, entries + more_entries
    except OSError as fault:
        # A tree so wide or deep that the walk runs out of handles is over the limit too.
        if fault.errno != errno.EMFILE:
            raise
        entries = limits["scratchEntries"] + 1
    finally:
        for folder in todo:
            os.close(folder)
    return used, entries


def _measure(folder: int, todo: list[int], most: int) -> tuple[int, int]:
    used = entries = 0
    try:
        with os.scandir(folder) as found:
            for entry in found:
                entries += 1
                if entries > most:
                    break
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    used += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(os.open(entry.name, _FOLDER, dir_fd=folder))
    finally:
        os.close(folder)
    return used, entries


def clear(box: int) -> None:
    """Empties the folder. Whatever depth it has: what lies in a folder is moved up before the folder goes."""
    mark, number = os.urandom(8).hex(), 0
    while names := os.listdir(box):
        for name in names:
            if not stat.S_ISDIR(os.stat(name, dir_fd=box, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=box)
                continue
            os.chmod(name, 0o700, dir_fd=box)
            inner = os.open(name, _FOLDER, dir_fd=box)
            try:
                for below in os.listdir(inner):  # noqa: PTH208
                    number += 1
                    os.rename(below, f".{mark}-{number}", src_dir_fd=inner, dst_dir_fd=box)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=box)
