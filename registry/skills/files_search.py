"""`files.search`: text in the files of a workspace, in time that grows with their size alone (spec: skills 7.9)."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from pydantic import Field

from registry.base import Model
from registry.errors import Detail, SkillError
from registry.skills.context import SkillContext, Workspace
from registry.skills.files_list import NOT_WIRED
from registry.skills.globs import Glob
from registry.skills.paths import WorkspaceFolder, WorkspaceGlob
from registry.skills.skill import skill

MAX_FILE_BYTES: Final = 2 * 1024 * 1024
MAX_TEXT: Final = 300
#: Characters shown before a match that would lie beyond the end of a long line's text.
_LEAD: Final = 100
#: Steps of a compiled pattern: more make a search slow without saying more.
_MAX_PROGRAM: Final = 10_000
#: Bytes looked at between two looks at the clock and the cancel flag.
_STRETCH: Final = 64 * 1024


class SearchFiles(Model):
    query: str = Field(min_length=1, max_length=200)
    regex: bool = False
    case_sensitive: bool = False
    path: WorkspaceFolder = "."
    glob: WorkspaceGlob | None = None
    context_lines: int = Field(default=0, ge=0, le=5)
    limit: int = Field(default=50, ge=1, le=200)


class Match(Model):
    path: str
    #: Both from 1; the column in characters.
    line: int
    column: int
    text: str
    before: list[str]
    after: list[str]


class SearchedFiles(Model):
    query: str
    matches: list[Match]
    files_scanned: int
    files_skipped: int
    truncated: bool
    wired: bool = True
    note: str | None = None


@skill(
    "files.search",
    title="Search in files",
    operations=("fs.read",),
    timeout_s=5,
    needs=("workspace",),
    loads=("re2", "pathspec"),
)
def search(given: SearchFiles, context: SkillContext) -> SearchedFiles:
    """Finds lines of workspace files that hold `query`, a text or (regex) a pattern in RE2 syntax, which has no
    look-around and no back-references. Gives the first match of each line, by path and line. Matching is line by line.
    `glob` is gitignore style below `path`. Binary files and files over 2 MiB are skipped and counted. Changes
    nothing."""
    pattern = _compiled(given)
    glob = Glob(given.glob, folder=given.path)
    if context.workspace is None:
        return SearchedFiles(
            query=given.query,
            matches=[],
            files_scanned=0,
            files_skipped=0,
            truncated=False,
            wired=False,
            note=NOT_WIRED,
        )
    tally = _Tally()
    found = list(islice(_matches(given, pattern, glob, context, context.workspace, tally), given.limit + 1))
    return SearchedFiles(
        query=given.query,
        matches=found[: given.limit],
        files_scanned=tally.scanned,
        files_skipped=tally.skipped,
        truncated=len(found) > given.limit,
    )


class _Tally:
    scanned = 0
    skipped = 0


def _compiled(given: SearchFiles) -> Any:
    return compiled(given.query, regex=given.regex, case_sensitive=given.case_sensitive, field="query")


def compiled(text: str, *, regex: bool, case_sensitive: bool, field: str) -> Any:
    """A pattern that looks at one line after another, in linear time.

    Args:
        text: what is looked for: words as they are, or with `regex` a pattern in RE2 syntax.
        case_sensitive: whether `a` and `A` differ.
        field: the input it came in, for the words of a refusal.

    Raises:
        SkillError: `invalid_input`.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.never_nl = True
    options.case_sensitive = case_sensitive
    options.literal = not regex
    if "\n" in text:
        raise _invalid(field, "a line break cannot match: the search goes line by line")
    try:
        pattern = re2.compile(f"(?m){text}" if regex else text, options)
    except re2.error as error:
        raise _invalid(field, f"not a pattern the engine (RE2) reads: {_reason(error)}") from None
    if pattern.programsize > _MAX_PROGRAM:
        raise _invalid(field, "the pattern is too large once its repeats are written out")
    return pattern


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else "bad syntax"
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


def _matches(
    given: SearchFiles, pattern: Any, glob: Glob, context: SkillContext, workspace: Workspace, tally: _Tally
) -> Iterator[Match]:
    for entry in workspace.entries(given.path, recursive=True):
        context.check()
        if entry.type != "file" or not glob.chooses(entry):
            continue
        data = text_of(workspace, entry.path) if entry.size <= MAX_FILE_BYTES else None
        if data is None:
            tally.skipped += 1
            continue
        tally.scanned += 1
        yield from in_file(entry.path, data, given.context_lines, pattern, context)


def text_of(workspace: Workspace, path: str) -> bytes | None:
    """The file with LF line ends, or None when it is binary, or was changed under our hands."""
    try:
        data = workspace.read(path, max_bytes=MAX_FILE_BYTES)
        data.decode()
    except (SkillError, UnicodeDecodeError):
        return None
    return None if b"\0" in data else data.replace(b"\r\n", b"\n")


def in_file(path: str, data: bytes, around: int, pattern: Any, context: SkillContext) -> Iterator[Match]:
    """The first match of each line of a text, with `around` lines on either side."""
    line, counted = 1, 0
    for start, end in _spans(data, pattern, context):
        first = data.rfind(b"\n", 0, start) + 1
        line += data.count(b"\n", counted, first)
        counted = first
        last = _end_of_line(data, first)
        # A match of single bytes (`\C`) may begin inside a character.
        column = len(data[first:start].decode(errors="ignore"))
        length = len(data[start : min(end, last)].decode(errors="ignore"))
        yield Match(
            path=path,
            line=line,
            column=column + 1,
            text=_window(data[first:last].decode(), column, length),
            before=_before(data, first, around),
            after=_after(data, last, around),
        )


def _spans(data: bytes, pattern: Any, context: SkillContext) -> Iterator[tuple[int, int]]:
    """Where the first match of each line lies, in bytes."""
    position = 0
    while position < len(data):
        context.check()
        # Up to the end of a line and without its LF, after which an empty line would seem to follow.
        stretch = _end_of_line(data, min(position + _STRETCH, len(data)))
        found = pattern.search(data, position, stretch)
        if found is None:
            position = stretch + 1
        else:
            yield found.span()
            position = _end_of_line(data, found.start()) + 1


def _end_of_line(data: bytes, position: int) -> int:
    end = data.find(b"\n", position)
    return len(data) if end < 0 else end


def _before(data: bytes, first: int, count: int) -> list[str]:
    lines: list[str] = []
    while count > len(lines) and first > 0:
        previous = data.rfind(b"\n", 0, first - 1) + 1
        lines.insert(0, data[previous : first - 1].decode()[:MAX_TEXT])
        first = previous
    return lines


def _after(data: bytes, last: int, count: int) -> list[str]:
    lines: list[str] = []
    while count > len(lines) and last + 1 < len(data):
        end = _end_of_line(data, last + 1)
        lines.append(data[last + 1 : end].decode()[:MAX_TEXT])
        last = end
    return lines


def _window(line: str, column: int, length: int) -> str:
    """At most 300 characters of a line: its beginning, or the surroundings of a match further on."""
    if column + length <= MAX_TEXT:
        return line[:MAX_TEXT]
    start = max(0, column - _LEAD)
    return line[start : start + MAX_TEXT]


def _invalid(field: str, message: str) -> SkillError:
    return SkillError("invalid_input", f"{field}: {message}", details=[Detail(field, message)])


__all__ = ["MAX_FILE_BYTES", "Match", "compiled", "in_file", "search", "text_of"]
