"""Replacing one text by another in a file's bytes, and showing what changed (spec: engine 15, `edit_file`).

Bytes, because a file need not be good UTF-8 to be edited, and what is not touched stays as it is. The difference is
made of the places that were replaced, in time that grows with the file: comparing two whole files may take quadratic
time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from registry.errors import Detail, SkillError
from registry.skills.lines import BOM

#: Unchanged lines shown around a change.
_AROUND: Final = 3
#: Characters of a difference; the rest is left out, and said to be.
MAX_DIFF: Final = 20_000


@dataclass(frozen=True)
class Edited:
    """A file with its replacements made; the places are where in the old bytes each begins."""

    before: bytes
    after: bytes
    old: bytes
    new: bytes
    places: tuple[int, ...]


def replaced(content: bytes, old: str, new: str, *, every: bool, path: str) -> Edited:
    """Replaces `old` by `new`, once or everywhere.

    A file whose lines all end in CRLF is edited in its own line ends, whichever the texts come in.

    Raises:
        SkillError: `not_found` when the text does not occur, `conflict` when it occurs more than once and not every
            place was meant.
    """
    mark = BOM if content.startswith(BOM) else b""
    before = content[len(mark) :]
    looked_for, put = (_in_line_ends_of(before, text) for text in (old, new))
    found = before.count(looked_for)
    if found == 0:
        raise _fault("not_found", f"old_string does not occur in {path!r}; read the file and copy it exactly")
    if found > 1 and not every:
        words = f"old_string occurs {found} times in {path!r}; add lines around it, or set replace_all"
        raise _fault("conflict", words)
    places = tuple(len(mark) + at for at in _places(before, looked_for))
    return Edited(content, mark + before.replace(looked_for, put), looked_for, put, places)


def _fault(code: str, message: str) -> SkillError:
    return SkillError(code, message, details=[Detail("old_string", message)])


def _in_line_ends_of(content: bytes, text: str) -> bytes:
    data = text.encode()
    ends = content.count(b"\n")
    if ends == 0 or content.count(b"\r\n") != ends:
        return data
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _places(content: bytes, text: bytes) -> Iterator[int]:
    at = content.find(text)
    while at >= 0:
        yield at
        at = content.find(text, at + len(text))


def unified_diff(edited: Edited, path: str) -> str:
    """The change as a unified diff, at most 20,000 characters of it."""
    parts = [f"--- a/{path}\n+++ b/{path}\n"]
    size = len(parts[0])
    for hunk in _hunks(edited):
        size += len(hunk)
        if size > MAX_DIFF:
            parts.append("... the rest of the difference is left out\n")
            break
        parts.append(hunk)
    return "".join(parts)


@dataclass
class _Region:
    """Lines of the old file, from the first byte of one to the last of another, that hold replaced places."""

    start: int
    end: int
    places: list[int]


def _hunks(edited: Edited) -> Iterator[str]:
    counted = line = shift = 0
    for region in _regions(edited):
        line += edited.before.count(b"\n", counted, region.start)
        counted = region.start
        old = _lines(edited.before[region.start : region.end])
        new = _lines(_rewritten(edited, region))
        top, bottom = _common(old, new)
        above = old[max(0, top - _AROUND) : top]
        below = old[len(old) - bottom :][:_AROUND]
        removed, added = old[top : len(old) - bottom], new[top : len(new) - bottom]
        first = line + max(0, top - _AROUND)
        olds, news = len(above) + len(removed) + len(below), len(above) + len(added) + len(below)
        head = f"@@ -{_range(first, olds)} +{_range(first + shift, news)} @@\n"
        body = [*_marked(" ", above), *_marked("-", removed), *_marked("+", added), *_marked(" ", below)]
        shift += len(new) - len(old)
        if removed or added:
            yield head + "".join(body)


def _range(first: int, count: int) -> str:
    """As in a unified diff: lines from 1, and of nothing the line before it."""
    return f"{first + 1 if count else first},{count}"


def _regions(edited: Edited) -> Iterator[_Region]:
    current: _Region | None = None
    for at in edited.places:
        start = _back(edited.before, at, _AROUND)
        end = _on(edited.before, at + len(edited.old), _AROUND)
        if current is not None and start <= current.end:
            current.end = max(current.end, end)
            current.places.append(at)
            continue
        if current is not None:
            yield current
        current = _Region(start, end, [at])
    if current is not None:
        yield current


def _back(content: bytes, at: int, lines: int) -> int:
    """Where the line of `at` begins, so many lines further up."""
    for _ in range(lines + 1):
        at = content.rfind(b"\n", 0, at)
        if at < 0:
            return 0
    return at + 1


def _on(content: bytes, at: int, lines: int) -> int:
    """Where the line of `at` ends, so many lines further down."""
    at = max(0, at - 1)
    for _ in range(lines + 1):
        at = content.find(b"\n", at) + 1
        if at == 0:
            return len(content)
    return at


def _rewritten(edited: Edited, region: _Region) -> bytes:
    parts, at = [], region.start
    for place in region.places:
        parts += [edited.before[at:place], edited.new]
        at = place + len(edited.old)
    return b"".join([*parts, edited.before[at : region.end]])


def _lines(text: bytes) -> list[bytes]:
    pieces = text.split(b"\n")
    ended = [piece + b"\n" for piece in pieces[:-1]]
    return [*ended, pieces[-1]] if pieces[-1] else ended


def _common(old: list[bytes], new: list[bytes]) -> tuple[int, int]:
    """How many lines both have alike at the top and, of the rest, at the bottom."""
    most = min(len(old), len(new))
    top = next((n for n in range(most) if old[n] != new[n]), most)
    bottom = next((n for n in range(most - top) if old[-1 - n] != new[-1 - n]), most - top)
    return top, bottom


def _marked(mark: str, lines: list[bytes]) -> Iterator[str]:
    for line in lines:
        text = line.decode(errors="replace")
        yield mark + text if text.endswith("\n") else f"{mark}{text}\n\\ No newline at end of file\n"


__all__ = ["Edited", "replaced", "unified_diff"]
