"""What of a file can be shown in a page: text, Markdown made safe, tables, pictures, the parts of a glTF scene.

Everything else is downloaded. However large a file is, a bounded head of it is read and drawn: a page that renews
itself asks for it again and again.
"""

import csv
import io
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from markupsafe import Markup

from orchestrator.api.desk import gltf
from orchestrator.downloads import Download
from orchestrator.terminal.wording import visible
from registry.base import Json

#: Bytes of a text that are shown; characters of Markdown that are drawn, which takes a hundred times as long.
MOST: Final = 200_000
DRAWN: Final = 50_000
#: Rows of a table, columns, and characters of a cell; longer ones than `LONG` are wrapped.
ROWS, COLUMNS, CELL, LONG = 200, 40, 400, 40
#: Pictures larger than this are only downloaded.
PICTURE: Final = 20_000_000
#: What Markdown may become.
_TAGS: Final = (
    *("h1", "h2", "h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "blockquote", "pre", "code", "hr", "br", "a"),
    *("em", "strong", "s", "table", "thead", "tbody", "tr", "th", "td"),
)
#: First bytes of a picture -> what it is sent as. An SVG is shown as its text: it may hold more than a picture.
_PICTURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)

_NUMBER: Final = re.compile(r"[-+−]?[\d,]*\.?\d+(e[-+]?\d+)?\s?%?", re.IGNORECASE)

Kind = Literal["text", "markdown", "table", "picture", "gltf", "empty", "none"]


@dataclass(frozen=True)
class Preview:
    kind: Kind
    text: str = ""
    html: Markup = Markup()  # noqa: RUF009 - it never changes
    rows: tuple[tuple[str, ...], ...] = ()
    #: Of a table: the places of columns that hold nothing but numbers.
    numbers: frozenset[int] = frozenset()
    #: Of a glTF scene: what it is made of, and how many of each.
    parts: tuple[tuple[str, str], ...] = ()
    #: More is in the file than is shown.
    cut: bool = False


def preview(download: Download) -> Preview:
    """A preview by what the file holds; its name only says how a text is meant. The file stays open."""
    head = download.file.read(MOST + 1)
    download.file.seek(0)
    if not head:
        return Preview("empty")
    if picture_type(head) is not None:
        return Preview("picture" if download.bytes <= PICTURE else "none")
    if (parts := gltf.parts(head)) is not None:
        return Preview("gltf", parts=parts)
    cut = len(head) > MOST
    text = _text(head[:MOST])
    if text is None:
        return Preview("none")
    end = download.name.rpartition(".")[2].lower()
    if end in ("md", "markdown"):
        drawn, more = beginning(text)
        return Preview("markdown", drawn, markdown(drawn), cut=cut or more)
    if end in ("csv", "tsv"):
        return _table(text, "\t" if end == "tsv" else ",", cut)
    if end == "json" and not cut:
        return Preview("text", _indented(text))
    return Preview("text", text, cut=cut)


def picture_type(head: bytes) -> str | None:
    """The type of a picture that browsers show, by its first bytes."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _PICTURES if head.startswith(start)), None)


def beginning(text: str) -> tuple[str, bool]:
    """As much of a text as is drawn, to the end of a block where one is near; and whether there is more."""
    if len(text) <= DRAWN:
        return text, False
    end = text.rfind("\n\n", DRAWN - DRAWN // 10, DRAWN)
    return text[: end if end > 0 else DRAWN], True


def output(value: Json) -> tuple[str, bool]:
    """What a task came to as text, whole, and whether it was written as one; everything else is JSON."""
    content = value.get("content") if isinstance(value, dict) else value
    if isinstance(content, str):
        return content, True
    return json.dumps(value, ensure_ascii=False, indent=2), False


@lru_cache(maxsize=64)
def markdown(text: str) -> Markup:
    """Markdown as HTML that only says how text looks: no script, no style, no address but of pages, no pictures.

    Give it a `beginning`: it takes half a second for 100,000 characters. The latest are remembered.
    """
    import nh3
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).render(visible(text))
    clean = nh3.clean(
        made,
        tags=set(_TAGS),
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(clean)


def _text(data: bytes) -> str | None:
    """The bytes as text; None when they are none."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # A character that the cut went through is no reason to think it is no text.
        return data[: error.start].decode("utf-8-sig") if error.start >= len(data) - 3 else None


def _table(text: str, separator: str, cut: bool) -> Preview:
    try:
        rows = list(_first(csv.reader(io.StringIO(text), delimiter=separator), ROWS + 1))
    except csv.Error:
        return Preview("text", text, cut=cut)
    if not rows or not 1 < len(rows[0]) <= COLUMNS:
        return Preview("text", text, cut=cut)
    shown = tuple(tuple(_cell(cell) for cell in row[:COLUMNS]) for row in rows)
    wide = any(len(row) > COLUMNS or max(map(len, row), default=0) > CELL for row in rows)
    cut = cut or wide or text.count("\n") > ROWS + 1
    return Preview("table", rows=shown, numbers=_numbers(shown[1:]), cut=cut)


def _cell(text: str) -> str:
    return text if len(text) <= CELL else text[: CELL - 1] + "…"


def _numbers(rows: tuple[tuple[str, ...], ...]) -> frozenset[int]:
    """Columns in which every cell that is not empty is a number, and one is."""
    columns: dict[int, list[str]] = {}
    for row in rows:
        for place, cell in enumerate(row):
            if cell.strip():
                columns.setdefault(place, []).append(cell)
    return frozenset(place for place, cells in columns.items() if all(map(_is_number, cells)))


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell.strip()) is not None


def _first(rows: Iterable[list[str]], most: int) -> Iterable[list[str]]:
    for number, row in enumerate(rows):
        if number >= most:
            return
        yield row


def _indented(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text
