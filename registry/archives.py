"""Files of a plugin out of a folder or an archive, read into memory in bounded size; nothing is unpacked (skills 17).

Only texts that a person can read, below one folder, without links. What an archive says of its sizes is not believed.
"""

import gzip
import io
import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final

from registry.errors import Fault, SkillError, WrongUse
from registry.plugins import MANIFEST, Bundle, bundle_of, refused
from registry.skills.paths import normalise

MAX_FILES: Final = 100
MAX_FILE: Final = 512 * 1024
MAX_TOTAL: Final = 4 * 1024 * 1024
#: Bytes of an archive, and of what is in a compressed tar with its headers.
MAX_ARCHIVE: Final = 8 * 1024 * 1024
#: Kinds of files that can be read before they are trusted.
SUFFIXES: Final = (*(".py", ".md", ".txt", ".json", ".csv", ".yaml", ".yml", ".toml", ".html", ".css", ".js"), "")
#: How a folder or an archive in the plugin folder may be called for those who install it from elsewhere.
LAID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
#: Folders and files that tools leave, which are no part of a plugin.
_TOOLS: Final = frozenset({"__pycache__", "__MACOSX"})
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class _Taken:
    """The files so far, each judged as it comes."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.left_out: list[str] = []
        self._folded: set[str] = set()
        self._size = self._seen = 0

    def wants(self, path: str) -> str | None:
        """The stored form of a path; None: it is left out.

        Raises:
            WrongUse: it leads elsewhere, or there are too many.
        """
        self._seen += 1
        if self._seen > 10 * MAX_FILES:
            raise _no("", "too_many", f"more than {10 * MAX_FILES} entries, and {MAX_FILES} files is the most")
        try:
            name = normalise(path.rstrip("/"))
        except SkillError as error:
            raise _no(path, error.code, error.message) from None
        if any(part.startswith(".") or part in _TOOLS for part in PurePosixPath(name).parts):
            self.left_out.append(name)
            return None
        return name

    def add(self, name: str, file: IO[bytes]) -> None:
        """Takes a file, however large it says to be."""
        if name.casefold() in self._folded:
            raise _no(name, "twice", "is there twice")
        if len(self.files) >= MAX_FILES:
            raise _no("", "too_many", f"more than {MAX_FILES} files")
        if PurePosixPath(name).suffix.lower() not in SUFFIXES:
            raise _no(name, "unsupported_type", "is no kind of text that can be read before it is trusted")
        content = file.read(MAX_FILE + 1)
        self._size += len(content)
        if len(content) > MAX_FILE:
            raise _no(name, "too_large", f"has more than {MAX_FILE} bytes")
        if self._size > MAX_TOTAL:
            raise _no("", "too_large", f"its files have more than {MAX_TOTAL} bytes together")
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise _no(name, "not_text", "is no UTF-8 text") from None
        if "\0" in text:
            raise _no(name, "not_text", "holds a NUL")
        self._folded.add(name.casefold())
        self.files[name] = content


def read(source: Path) -> Bundle:
    """The plugin in a folder, a .zip, a .tar or a .tar.gz; in an archive it may lie in one folder.

    Raises:
        WrongUse: `plugin_invalid`, with what is wrong and where.
    """
    taken = _Taken()
    try:
        if source.is_dir():
            _folder(taken, source)
        else:
            _archive(taken, source)
    except FileNotFoundError:
        raise _no("", "missing", f"there is no {str(source)[:200]!r}") from None
    except OSError as error:
        raise _no("", "unreadable", f"cannot be read: {error.strerror or error}") from None
    return bundle_of(_unwrapped(taken.files), taken.left_out)


def _unwrapped(files: dict[str, bytes]) -> dict[str, bytes]:
    """The same without the one folder everything lies in."""
    tops = {path.partition("/")[0] for path in files}
    if MANIFEST in files or len(tops) != 1:
        return files
    (top,) = tops
    return {path[len(top) + 1 :]: content for path, content in files.items() if path.startswith(f"{top}/")}


def _folder(taken: _Taken, source: Path) -> None:
    """Component by component with handles: nothing that is swapped for a link meanwhile is followed."""
    top = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for path, handle in _walk(taken, top, ""):
            with os.fdopen(handle, "rb") as file:
                taken.add(path, file)
    finally:
        os.close(top)


def _walk(taken: _Taken, folder: int, prefix: str) -> Iterator[tuple[str, int]]:
    for name in sorted(os.listdir(folder)):
        path = taken.wants(prefix + name)
        if path is None:
            continue
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink != 1):
            raise _no(path, "link", "is a link: a plugin holds files and nothing that leads elsewhere")
        if stat.S_ISDIR(status.st_mode):
            inner = os.open(name, _FOLDER, dir_fd=folder)
            try:
                yield from _walk(taken, inner, f"{path}/")
            finally:
                os.close(inner)
        elif stat.S_ISREG(status.st_mode):
            handle = os.open(name, _FILE, dir_fd=folder)
            again = os.fstat(handle)
            if not stat.S_ISREG(again.st_mode) or again.st_nlink != 1:
                os.close(handle)
                raise _no(path, "link", "changed while it was read")
            yield path, handle
        else:
            raise _no(path, "unsupported_type", "is neither a file nor a folder")


def _archive(taken: _Taken, source: Path) -> None:
    with source.open("rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise _no("", "unsupported_type", "is neither a folder nor an archive")
        content = file.read(MAX_ARCHIVE + 1)
    if len(content) > MAX_ARCHIVE:
        raise _no("", "too_large", f"the archive has more than {MAX_ARCHIVE} bytes")
    try:
        if content[:2] == b"PK":
            _zip(taken, content)
        else:
            _tar(taken, _unpacked(content) if content[:2] == b"\x1f\x8b" else content)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        words = f"is no folder and no archive that can be read: {str(error)[:100] or type(error).__name__}"
        raise _no("", "unreadable", words) from None


def _zip(taken: _Taken, content: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for entry in archive.infolist():
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _no(entry.filename, "link", "is a link or a device: a plugin holds files and nothing else")
            name = taken.wants(entry.filename)
            if name is None or entry.is_dir():
                continue
            with archive.open(entry) as file:
                taken.add(name, file)


def _unpacked(content: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        plain = file.read(MAX_ARCHIVE + 1)
    if len(plain) > MAX_ARCHIVE:
        raise _no("", "too_large", f"the archive has more than {MAX_ARCHIVE} bytes once it is unpacked")
    return plain


def _tar(taken: _Taken, content: bytes) -> None:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for entry in archive:
            if not (entry.isreg() or entry.isdir()) or entry.issparse():
                raise _no(entry.name, "link", "is a link or a device: a plugin holds files and nothing else")
            name = taken.wants(entry.name)
            if name is None or entry.isdir():
                continue
            file = archive.extractfile(entry)
            assert file is not None  # a regular file
            taken.add(name, file)


def _no(path: str, code: str, message: str) -> WrongUse:
    shown = "".join(c if c.isprintable() else "?" for c in path[:120])
    return refused([Fault(shown, code, message)])


__all__ = ["MAX_ARCHIVE", "MAX_FILE", "MAX_FILES", "MAX_TOTAL", "SUFFIXES", "read"]
