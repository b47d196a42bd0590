"""A project's folder behind a jail: no path leaves it, no link is followed (spec: skills 5).

Everything that writes into a workspace goes through here. A write is a temporary file in the same folder, put on disk
and renamed under the lock of its path: readers see the old content or the new, and a writer that is killed leaves the
old. `.officina` is ours: its `outputs` may be read, and `write_output` is the only way to write there.
"""

import hashlib
import re
import stat
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from orchestrator.workspaces import handles, pathlock, trees
from orchestrator.workspaces.quota import Quota, Usage, is_ours
from registry.errors import SkillError
from registry.skills import paths
from registry.skills.context import Entry, Stored
from registry.skills.outputs import OUTPUTS, readable

Mode = Literal["overwrite", "create", "append"]

MAX_FILES: Final = 2_000
MAX_BYTES: Final = 200 * 1024 * 1024
#: Seconds a write waits for another call that writes the same path.
LOCK_S: Final = 10.0

_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")


@dataclass(frozen=True)
class _Present:
    """The file a write finds in its place."""

    size: int
    sha256: str
    #: Read only for an append.
    content: bytes = b""


class JailedWorkspace:
    """The workspace at `root`, a local folder or a shared volume with atomic renames and locks that span its hosts.

    Args:
        root: the folder; made when it is missing. What leads to it is the owner's and may hold links.
        max_files: regular files it may hold, ours left out.
        max_bytes: bytes they may hold together.
    """

    def __init__(self, root: Path, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root.resolve()
        self._quota = Quota(self.root, max_files, max_bytes)

    def normalise(self, path: str, *, folder: bool = False) -> str:
        """The stored form of a path that may be written; see `registry.skills.paths`."""
        return paths.normalise(path, folder=folder)

    def read(self, path: str, *, max_bytes: int) -> bytes:
        """The content of a workspace file or of a kept output.

        Raises:
            SkillError: `path_escape`, `invalid_input` (a folder too), `not_found`, `unsupported_type`, `too_large`.
        """
        stored = readable(path)
        *parents, name = stored.split("/")
        with handles.folder(self.root, parents) as folder:
            _refuse_folder(folder, name, stored, "invalid_input")
            with handles.opened(folder, name, stored) as file:
                return _read(file, stored, max_bytes)

    def write(
        self,
        path: str,
        content: bytes,
        *,
        mode: Mode = "overwrite",
        expected_sha256: str | None = None,
        max_bytes: int,
    ) -> Stored:
        """Writes a file whole, making the folders that lead to it.

        Args:
            path: any spelling of a workspace path.
            content: the new content, or for `append` what follows the old one.
            mode: `create` refuses a file that is there, `append` makes one that is not.
            expected_sha256: what the file has to hold now, in lower-case hex. An overwrite that finds its own content
                in place passes, so that a call run again after a crash does.
            max_bytes: of the whole file afterwards.

        Raises:
            SkillError: `conflict`, `too_large`, `quota`, `path_escape`, `invalid_input`, `unsupported_type`; the old
                content stands.
        """
        stored = self.normalise(path)
        with self.lock(stored):
            present = self._present(stored, mode, max_bytes)
            whole = present.content + content if present and mode == "append" else content
            sha256 = hashlib.sha256(whole).hexdigest()
            _judge_state(stored, present, mode, expected_sha256, sha256)
            if len(whole) > max_bytes:
                raise SkillError("too_large", f"{stored!r} would have {len(whole)} bytes, and {max_bytes} is the most")
            self._put(stored, whole, present)
        return Stored(stored, len(whole), sha256, present is None, present.sha256 if present else None)

    def write_tree(self, folder: str, files: Mapping[str, bytes], *, overwrite: bool = False) -> list[Stored]:
        """Writes a folder of files; a new one is there whole or not at all.

        Args:
            folder: where they go; with `overwrite` it may hold something, and each file takes the place of its like.
            files: content by path below the folder.

        Raises:
            SkillError: `conflict` when the folder holds something, `quota`, `path_escape`, `invalid_input`.
        """
        stored = self.normalise(folder)
        below = {self.normalise(f"{stored}/{path}")[len(stored) + 1 :]: content for path, content in files.items()}
        with self.lock(stored):
            if trees.is_empty(self.root, stored):
                return trees.write_new(self.root, self._quota, stored, below)
            if not overwrite:
                raise SkillError("conflict", f"{stored!r} is there already and holds something")
            self._quota.admit(Usage(len(below), sum(map(len, below.values()))))
            largest = max(map(len, below.values()))
            return [self.write(f"{stored}/{path}", content, max_bytes=largest) for path, content in below.items()]

    def entries(self, path: str, *, recursive: bool, enter: Callable[[str], bool] = lambda _path: True) -> list[Entry]:
        """What lies in a folder, sorted by path: only what a caller could name, so neither ours nor odd names."""
        stored = self.normalise(path, folder=True)
        segments = [] if stored == "." else stored.split("/")
        self._refuse_file(segments, stored)
        prefix = "" if stored == "." else f"{stored}/"
        with handles.folder(self.root, segments) as folder:
            found = [
                Entry(prefix + name, kind, status.st_size if kind == "file" else 0, status.st_mtime_ns // 1_000_000)
                for name, status in handles.scan(folder, recursive=recursive, enter=lambda name: enter(prefix + name))
                if _can_be_named(prefix + name) and (kind := _kind(status.st_mode, status.st_nlink))
            ]
        return sorted(found, key=lambda entry: entry.path)

    def exists(self, path: str) -> bool:
        """Whether anything lies there: a file, a folder, a link."""
        *parents, name = readable(path).split("/")
        try:
            with handles.folder(self.root, parents) as folder:
                return handles.look(folder, name) is not None
        except SkillError as error:
            if error.code == "not_found":
                return False
            raise

    def lock(self, path: str, *, seconds: float = LOCK_S) -> AbstractContextManager[None]:
        """Holds a path against other calls that write it; a write of the same thread inside of it goes through.

        Raises:
            SkillError: `conflict` when it is still held elsewhere after `seconds`.
        """
        return pathlock.hold(self.root, self.normalise(path), seconds=seconds)

    def write_output(self, run_id: str, call_id: str, text: str) -> str:
        """Keeps a text that was too long for the model. For the engine: no skill can write there.

        Returns:
            The path, as `files.read` takes it.
        """
        run, call = _as_name(run_id), f"{_as_name(call_id)}.txt"
        content = text.encode("utf-8", "replace")
        with (
            handles.folder(self.root, [*OUTPUTS.split("/"), run], make=True) as folder,
            handles.staged(folder, content) as staged,
        ):
            handles.rename(folder, staged, call)
        return f"{OUTPUTS}/{run}/{call}"

    def _present(self, stored: str, mode: Mode, max_bytes: int) -> _Present | None:
        *parents, name = stored.split("/")
        try:
            with handles.folder(self.root, parents) as folder:
                _refuse_folder(folder, name, stored, "conflict")
                with handles.opened(folder, name, stored) as file:
                    return _measured(file) if mode != "append" else _content_of(file, stored, max_bytes)
        except SkillError as error:
            if error.code == "not_found":
                return None
            raise

    def _put(self, stored: str, whole: bytes, present: _Present | None) -> None:
        change = Usage(0 if present else 1, len(whole) - (present.size if present else 0))
        *parents, name = stored.split("/")
        self._quota.admit(change)  # so that a refusal leaves no empty folders behind
        with (
            handles.folder(self.root, parents, make=True) as folder,
            handles.staged(folder, whole) as staged,
        ):
            self._quota.commit(change, lambda: handles.rename(folder, staged, name))

    def _refuse_file(self, segments: list[str], stored: str) -> None:
        if not segments:
            return
        with handles.folder(self.root, segments[:-1]) as above:
            status = handles.look(above, segments[-1])
        if status is not None and stat.S_ISREG(status.st_mode):
            raise SkillError("invalid_input", f"{stored!r} is a file, and has to be a folder")


def _refuse_folder(folder: int, name: str, stored: str, code: str) -> None:
    status = handles.look(folder, name)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise SkillError(code, f"{stored!r} is a folder, and has to be a file")


def _judge_state(stored: str, present: _Present | None, mode: Mode, expected: str | None, sha256: str) -> None:
    if mode == "create" and present:
        raise SkillError("conflict", f"{stored!r} is there already; mode overwrite would replace it")
    if expected is None or (present and present.sha256 == expected):
        return
    if mode == "overwrite" and present and present.sha256 == sha256:
        return
    found = f"holds something else (sha256 {present.sha256})" if present else "is not there"
    raise SkillError("conflict", f"{stored!r} {found}; read it again before writing")


def _read(file: int, stored: str, max_bytes: int) -> bytes:
    content = bytearray()
    for piece in handles.chunks(file):
        content += piece
        if len(content) > max_bytes:
            raise SkillError("too_large", f"{stored!r} has more than {max_bytes} bytes, the most that can be read here")
    return bytes(content)


def _measured(file: int) -> _Present:
    size, sha256 = 0, hashlib.sha256()
    for piece in handles.chunks(file):
        size += len(piece)
        sha256.update(piece)
    return _Present(size, sha256.hexdigest())


def _content_of(file: int, stored: str, max_bytes: int) -> _Present:
    content = _read(file, stored, max_bytes)
    return _Present(len(content), hashlib.sha256(content).hexdigest(), content)


def _kind(mode: int, names: int) -> Literal["file", "dir", "link"] | None:
    if stat.S_ISDIR(mode):
        return "dir"
    if stat.S_ISLNK(mode) or (stat.S_ISREG(mode) and names > 1):
        return "link"
    return "file" if stat.S_ISREG(mode) else None


def _can_be_named(path: str) -> bool:
    if is_ours(path):
        return False
    try:
        return paths.normalise(path) == path
    except SkillError:
        return False


def _as_name(text: str) -> str:
    """A file name made of an id: ids of calls come from models, and may hold anything."""
    return text if _PLAIN_NAME.fullmatch(text) else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


__all__ = ["JailedWorkspace"]
