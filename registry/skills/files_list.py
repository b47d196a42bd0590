"""`files.list`: what lies in the workspace, page by page (spec: skills 7.6)."""

import base64
from typing import Final, Literal

from pydantic import Field

from registry.base import Model
from registry.errors import Detail, SkillError
from registry.jsontext import digest
from registry.skills.context import Entry, SkillContext
from registry.skills.globs import Glob
from registry.skills.paths import WorkspaceFolder, WorkspaceGlob
from registry.skills.skill import skill
from registry.times import iso

NOT_WIRED: Final = "no workspace is wired to this call"
#: Characters of a cursor that bind it to its question.
_CURSOR_KEY: Final = 12


class ListFiles(Model):
    path: WorkspaceFolder = "."
    recursive: bool = False
    glob: WorkspaceGlob | None = None
    limit: int = Field(default=200, ge=1, le=1000)
    cursor: str | None = Field(default=None, max_length=1000)


class ListedEntry(Model):
    path: str
    type: Literal["file", "dir", "link"]
    #: Bytes; 0 for anything but a file.
    size: int
    modified_at: str


class ListedFiles(Model):
    path: str
    entries: list[ListedEntry]
    truncated: bool
    next_cursor: str | None = None
    wired: bool = True
    note: str | None = None


@skill("files.list", title="List files", operations=("fs.read",), timeout_s=5, needs=("workspace",))
def list_files(given: ListFiles, context: SkillContext) -> ListedFiles:
    """Lists files and folders of the workspace, sorted by path, in pages of up to `limit`. `glob` is a gitignore-style
    pattern below `path`; `recursive` looks into folders. Links are listed and never followed. Pass `nextCursor` as
    `cursor`, with everything else unchanged, to go on. Changes nothing."""
    if context.workspace is None:
        return ListedFiles(path=given.path, entries=[], truncated=False, wired=False, note=NOT_WIRED)
    after = _after(given)
    glob = Glob(given.glob, folder=given.path)
    found = [e for e in context.workspace.entries(given.path, recursive=given.recursive) if glob.chooses(e)]
    left = [entry for entry in found if after is None or entry.path > after]
    page = left[: given.limit]
    more = len(left) > len(page)
    return ListedFiles(
        path=given.path,
        entries=[_listed(entry) for entry in page],
        truncated=more,
        next_cursor=_cursor(given, page[-1].path) if more else None,
    )


def _listed(entry: Entry) -> ListedEntry:
    return ListedEntry(path=entry.path, type=entry.type, size=entry.size, modified_at=iso(entry.modified_at))


def _cursor_key(given: ListFiles) -> str:
    """What binds a cursor to its question; the size of the page may change on the way."""
    return digest([given.path, given.recursive, given.glob])[:_CURSOR_KEY]


def _cursor(given: ListFiles, last: str) -> str:
    return base64.urlsafe_b64encode(f"{_cursor_key(given)}{last}".encode()).decode()


def _after(given: ListFiles) -> str | None:
    if given.cursor is None:
        return None
    try:
        text = base64.b64decode(given.cursor, altchars=b"-_", validate=True).decode()
    except ValueError:
        text = ""
    if not text.startswith(_cursor_key(given)):
        message = "this is no cursor of this very listing; leave it out to begin anew"
        raise SkillError("invalid_input", f"cursor: {message}", details=[Detail("cursor", message)])
    return text[_CURSOR_KEY:]


__all__ = ["NOT_WIRED", "list_files"]
