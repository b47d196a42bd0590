"""The pack `files`: reading, writing, editing and finding files of the workspace (spec: engine 15).

The jail of the workspace holds for these tools as for the skills `files.*`; the block list is on top of it. Paths are
relative to the pack's `root`, in what goes in and in what comes out.
"""

import hashlib
from itertools import islice
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints, model_validator

from registry.base import Model
from registry.errors import SkillError
from registry.packs import edits
from registry.packs.blocklist import BLOCKED, Pattern, entries, is_blocked, refuse_blocked
from registry.packs.pack import Pack
from registry.skills import files_search, lines
from registry.skills.context import Entry, SkillContext, Stored, Workspace
from registry.skills.files import MAX_CONTENT_BYTES, MAX_READ_BYTES, MAX_TEXT_BYTES
from registry.skills.globs import Glob
from registry.skills.outputs import OUTPUTS, ReadablePath, SearchablePath
from registry.skills.paths import WorkspaceFolder, WorkspaceGlob, WorkspacePath, normalise
from registry.skills.skill import tool

MAX_LISTED: Final = 500
MAX_FOUND: Final = 1000
#: A NUL in so many bytes at its beginning makes a file binary.
_LOOKED_AT: Final = 8192

Text = Annotated[str, StringConstraints(max_length=MAX_TEXT_BYTES)]


class FilesSpec(Model):
    """Settings of the pack: the folder it works in, and names it does not touch beside those it never does."""

    root: WorkspaceFolder = "."
    blocklist: tuple[Pattern, ...] = Field(default=(), max_length=100)

    @model_validator(mode="after")
    def _open(self) -> "FilesSpec":
        if self.root != "." and is_blocked(self.root, self.blocked):
            raise ValueError("root has a name that file tools do not touch")
        return self

    @property
    def blocked(self) -> tuple[str, ...]:
        return (*BLOCKED, *self.blocklist)


class ReadFile(Model):
    path: ReadablePath
    #: The first line, from 1.
    offset: int = Field(default=1, ge=1)
    limit: int = Field(default=400, ge=1, le=2000)


class ReadLines(Model):
    #: Each line behind its number.
    content: str
    total_lines: int
    #: More lines follow, or a line was cut.
    truncated: bool


class WriteFile(Model):
    path: WorkspacePath
    content: Text
    overwrite: bool = True


class Written(Model):
    path: str
    bytes: int
    created: bool


class EditFile(Model):
    path: WorkspacePath
    old_string: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT_BYTES)] = Field(alias="old_string")
    new_string: Text = Field(alias="new_string")
    replace_all: bool = Field(default=False, alias="replace_all")

    @model_validator(mode="after")
    def _changes(self) -> "EditFile":
        if self.old_string == self.new_string:
            raise ValueError("old_string and new_string are the same: nothing would change")
        return self


class EditedFile(Model):
    path: str
    replacements: int
    #: Unified diff.
    diff: str


class ListDir(Model):
    path: WorkspaceFolder = "."
    depth: int = Field(default=1, ge=1, le=5)


class Listed(Model):
    #: Its path below the folder.
    name: str
    type: Literal["file", "dir", "link"]
    size: int


class ListedDir(Model):
    path: str
    entries: list[Listed]
    truncated: bool


class GlobFiles(Model):
    pattern: Annotated[WorkspaceGlob, StringConstraints(min_length=1)]


class Globbed(Model):
    pattern: str
    matches: list[str]


class Grep(Model):
    pattern: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    #: A folder or a file.
    path: SearchablePath | None = None
    glob: WorkspaceGlob | None = None
    max_results: int = Field(default=100, ge=1, le=1000)


class Hit(Model):
    file: str
    line: int
    text: str


class Grepped(Model):
    pattern: str
    matches: list[Hit]
    truncated: bool


@tool(
    "read_file",
    title="Read a file",
    operations=("fs.read",),
    timeout_s=10,
    needs=("workspace",),
    loads=("pathspec", "re2"),
    fails=("path_escape", "blocked", "not_found", "unsupported_type", "too_large"),
)
def read_file(given: ReadFile, context: SkillContext) -> ReadLines:
    """Reads lines of a text file: `limit` lines (400) from line `offset`, each shown behind its number and `: `, at
    most 256 KiB. `truncated` says that more follows. Refuses binary files and names like .env and .git. Changes
    nothing."""
    place = _Place(context)
    data = place.workspace.read(place.readable(given.path), max_bytes=MAX_READ_BYTES)
    if b"\0" in data[:_LOOKED_AT]:
        raise SkillError("unsupported_type", f"{given.path!r} is a binary file, and has no lines to read")
    text = data.removeprefix(lines.BOM)
    shown, size, cut = list[str](), 0, False
    for number, line in enumerate(islice(lines.from_line(text, given.offset), given.limit), start=given.offset):
        if shown and size + len(line) > MAX_CONTENT_BYTES:
            break
        cut = len(line) > MAX_CONTENT_BYTES
        size += len(line)
        bare = line.removesuffix(b"\n").removesuffix(b"\r")[:MAX_CONTENT_BYTES]
        shown.append(f"{number}: {bare.decode(errors='replace')}")
    total = lines.count(text)
    more = bool(shown) and given.offset + len(shown) <= total
    return ReadLines(content="\n".join(shown), total_lines=total, truncated=more or cut)


@tool(
    "write_file",
    title="Write a file",
    operations=("fs.write",),
    effect="idempotent",
    timeout_s=15,
    needs=("workspace",),
    loads=("pathspec", "re2"),
    fails=("path_escape", "blocked", "not_found", "conflict", "too_large", "quota"),
)
def write_file(given: WriteFile, context: SkillContext) -> Written:
    """Writes a whole text file of at most 1 MiB, making the folders that lead to it. Replaces what is there; with
    `overwrite` false it refuses (conflict) a file that holds something else. Never makes a file executable, never
    deletes one."""
    place = _Place(context)
    path, data = place.writable(given.path), given.content.encode()
    if len(data) > MAX_TEXT_BYTES:
        raise SkillError("too_large", f"content has {len(data)} bytes, and {MAX_TEXT_BYTES} is the most")
    with place.workspace.lock(path, seconds=min(10, context.deadline.left)):
        context.check()
        if not given.overwrite and place.holds(path, data):  # its own content: it was called again after a crash
            return Written(path=place.shown(path), bytes=len(data), created=False)
        mode: Literal["overwrite", "create"] = "overwrite" if given.overwrite else "create"
        stored = place.workspace.write(path, data, mode=mode, max_bytes=MAX_TEXT_BYTES)
    _tell(context, stored, "write_file")
    return Written(path=place.shown(path), bytes=stored.bytes, created=stored.created)


@tool(
    "edit_file",
    title="Edit a file",
    operations=("fs.write",),
    effect="once",
    timeout_s=15,
    needs=("workspace",),
    loads=("pathspec", "re2"),
    fails=("path_escape", "blocked", "not_found", "conflict", "unsupported_type", "too_large", "quota"),
)
def edit_file(given: EditFile, context: SkillContext) -> EditedFile:
    """Replaces `old_string` by `new_string` in a text file of at most 1 MiB and returns the change as a diff.
    `old_string` must occur exactly once (else not_found or conflict), or set `replace_all`. It must match the file to
    the letter, without the line numbers that read_file shows."""
    place = _Place(context)
    path = place.writable(given.path)
    with place.workspace.lock(path, seconds=min(10, context.deadline.left)):
        context.check()
        data = place.workspace.read(path, max_bytes=MAX_TEXT_BYTES)
        if b"\0" in data[:_LOOKED_AT]:
            raise SkillError("unsupported_type", f"{given.path!r} is a binary file, and is not edited")
        made = edits.replaced(data, given.old_string, given.new_string, every=given.replace_all, path=given.path)
        stored = place.workspace.write(
            # The lock holds back the tools; a program in the shell is told apart by what the file holds.
            path,
            made.after,
            expected_sha256=hashlib.sha256(data).hexdigest(),
            max_bytes=MAX_TEXT_BYTES,
        )
    _tell(context, stored, "edit_file")
    shown = place.shown(path)
    return EditedFile(path=shown, replacements=len(made.places), diff=edits.unified_diff(made, shown))


@tool(
    "list_dir",
    title="List a folder",
    operations=("fs.read",),
    timeout_s=10,
    needs=("workspace",),
    loads=("pathspec", "re2"),
    fails=("path_escape", "blocked", "not_found"),
)
def list_dir(given: ListDir, context: SkillContext) -> ListedDir:
    """Lists a folder, and with `depth` the folders in it, sorted by name: at most 500 entries. Links are shown and
    never followed. Hides what .gitignore ignores, and names like .env, .git and node_modules. Changes nothing."""
    place = _Place(context)
    folder = place.folder(given.path)
    prefix = "" if folder == "." else f"{folder}/"

    def enter(path: str) -> bool:
        return path[len(prefix) :].count("/") + 1 < given.depth

    found = entries(place.workspace, folder, place.blocked, enter=enter, recursive=given.depth > 1)
    return ListedDir(
        path=given.path,
        entries=[Listed(name=e.path[len(prefix) :], type=e.type, size=e.size) for e in found[:MAX_LISTED]],
        truncated=len(found) > MAX_LISTED,
    )


@tool(
    "glob",
    title="Find files by name",
    operations=("fs.read",),
    timeout_s=15,
    needs=("workspace",),
    loads=("pathspec", "re2"),
    fails=("path_escape", "not_found"),
)
def glob(given: GlobFiles, context: SkillContext) -> Globbed:
    """Finds files by a pattern as in .gitignore: `*.md` anywhere, `src/*.py` in one folder, `src/**/*.py` below it.
    Returns at most 1,000 paths, sorted. Hides what .gitignore ignores, and names like .env, .git and node_modules.
    Changes nothing."""
    place = _Place(context)
    chosen = Glob(given.pattern, folder=place.root)
    found = (e.path for e in place.files(place.root) if chosen.chooses(e))
    return Globbed(pattern=given.pattern, matches=[place.shown(path) for path in islice(found, MAX_FOUND)])


@tool(
    "grep",
    title="Search in files",
    operations=("fs.read",),
    timeout_s=30,
    needs=("workspace",),
    loads=("pathspec", "re2"),
    fails=("path_escape", "blocked", "not_found", "unsupported_type"),
)
def grep(given: Grep, context: SkillContext) -> Grepped:
    """Finds lines that match `pattern`, a regular expression in RE2 syntax (no look-around, no back-references), in the
    files of a folder or in one file. `glob` chooses files as in .gitignore. Case counts; `(?i)` before the pattern
    makes it not. Skips binary files, files over 2 MiB, what .gitignore ignores, and names like .env and .git. Changes
    nothing."""
    pattern = files_search.compiled(given.pattern, regex=True, case_sensitive=True, field="pattern")
    place = _Place(context)
    found: list[Hit] = []
    for path in _to_search(given, place):
        context.check()
        data = files_search.text_of(place.workspace, path)
        if data is None:
            continue
        hits = files_search.in_file(place.shown(path), data, 0, pattern, context)
        room = given.max_results + 1 - len(found)
        found += [Hit(file=hit.path, line=hit.line, text=hit.text) for hit in islice(hits, room)]
        if len(found) > given.max_results:
            break
    return Grepped(pattern=given.pattern, matches=found[: given.max_results], truncated=len(found) > given.max_results)


def _to_search(given: Grep, place: "_Place") -> list[str]:
    if given.path is not None and given.path.startswith(f"{OUTPUTS}/"):
        return [_one_file(place, given.path)]
    folder = place.folder(given.path or ".")
    if folder != "." and place.is_file(folder):
        return [_one_file(place, folder)]
    chosen = Glob(given.glob, folder=folder)
    return [e.path for e in place.files(folder) if chosen.chooses(e)]


def _one_file(place: "_Place", path: str) -> str:
    """A file that was named: why it cannot be searched is said, where one among many is passed over."""
    place.workspace.read(path, max_bytes=files_search.MAX_FILE_BYTES)
    if files_search.text_of(place.workspace, path) is None:
        raise SkillError("unsupported_type", f"{place.shown(path)!r} is not UTF-8 text, and has no lines to search")
    return path


class _Place:
    """The folder these tools work in: paths from the caller's to the workspace's and back."""

    def __init__(self, context: SkillContext) -> None:
        if context.workspace is None:
            raise SkillError("not_found", "this run has no workspace: there are no files here")
        spec = context.spec(FilesSpec)
        self.workspace: Workspace = context.workspace
        self.root = spec.root
        self.blocked = spec.blocked
        self._prefix = "" if spec.root == "." else f"{spec.root}/"

    def readable(self, path: str) -> str:
        """A file to read; a kept output is not below the root, and is read all the same."""
        return path if path.startswith(f"{OUTPUTS}/") else self.writable(path)

    def writable(self, path: str) -> str:
        whole = normalise(self._prefix + path)
        refuse_blocked(whole, self.blocked)
        return whole

    def folder(self, path: str) -> str:
        whole = normalise(self._prefix + path, folder=True)
        if whole != ".":
            refuse_blocked(whole, self.blocked)
        return whole

    def shown(self, path: str) -> str:
        return path.removeprefix(self._prefix)

    def files(self, folder: str) -> list[Entry]:
        """Regular files below a folder, as a listing shows them. A root nobody wrote to yet holds none."""
        if folder == self.root != "." and not self.workspace.exists(folder):
            return []
        return [e for e in entries(self.workspace, folder, self.blocked) if e.type == "file"]

    def is_file(self, path: str) -> bool:
        """Whether a path names something that is not a folder."""
        above, _, _name = path.rpartition("/")
        found = self.workspace.entries(above or ".", recursive=False)
        return any(entry.path == path and entry.type != "dir" for entry in found)

    def holds(self, path: str, data: bytes) -> bool:
        try:
            return self.workspace.read(path, max_bytes=len(data)) == data
        except SkillError:
            return False


def _tell(context: SkillContext, stored: Stored, name: str) -> None:
    context.emit("file.written", {"path": stored.path, "bytes": stored.bytes, "sha256": stored.sha256, "skill": name})


PACK = Pack(
    "files",
    "read, write, edit and find files of the workspace",
    (read_file, write_file, edit_file, list_dir, glob, grep),
    FilesSpec,
)

__all__ = ["PACK", "FilesSpec"]
