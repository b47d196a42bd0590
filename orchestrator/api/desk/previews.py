"""What of a file can be shown in a page: text, Markdown made safe, tables, pictures. Everything else is downloaded."""

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from markupsafe import Markup

from orchestrator.downloads import Download
from orchestrator.terminal.wording import visible

#: Bytes of a text that are shown, and rows of a table.
MOST: Final = 200_000
ROWS: Final = 200
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

Kind = Literal["text", "markdown", "table", "picture", "none"]


@dataclass(frozen=True)
class Preview:
    kind: Kind
    text: str = ""
    html: Markup = Markup()  # noqa: RUF009 - it never changes
    rows: tuple[tuple[str, ...], ...] = ()
    #: More is in the file than is shown.
    cut: bool = False


def preview(download: Download) -> Preview:
    """A preview by what the file holds; its name only says how a text is meant. The file stays open."""
    head = download.file.read(MOST + 1)
    download.file.seek(0)
    if picture_type(head) is not None:
        return Preview("picture" if download.bytes <= PICTURE else "none")
    cut = len(head) > MOST
    text = _text(head[:MOST])
    if text is None:
        return Preview("none")
    end = download.name.rpartition(".")[2].lower()
    if end in ("md", "markdown"):
        return Preview("markdown", text, markdown(text), cut=cut)
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


def markdown(text: str) -> Markup:
    """Markdown as HTML that only says how text looks: no script, no style, no address but of pages, no pictures."""
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
    if not rows or not 1 < len(rows[0]) <= 40:
        return Preview("text", text, cut=cut)
    return Preview("table", text, rows=tuple(map(tuple, rows[: ROWS + 1])), cut=cut or text.count("\n") > ROWS + 1)


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
