"""The title and the table of contents of a Markdown file, written so that they read as what they say."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from registry.skills.papers.blocks import Document, Heading, plain
from registry.skills.papers.markdown import parse

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~&:])")
_LINE_BREAK: Final = re.compile(r"\r\n?|\n")
_NOT_IN_ANCHORS: Final = re.compile(r"[^\w\- ]")


def title_line(title: str) -> str:
    """A heading of the first level that says just this title, with markup in it made plain."""
    blocks = parse(f"# {title}").blocks
    reads_alike = len(blocks) == 1 and isinstance(blocks[0], Heading) and plain(blocks[0].inlines) == title
    return f"# {title}" if reads_alike else f"# {escape(title)}"


def split_after(text: str, document: Document) -> tuple[str, str]:
    """A text that begins with its title, in two: up to the end of the title's line, and the rest."""
    first = document.blocks[0]
    lines = first.lines[1] if isinstance(first, Heading) else 0
    end = 0
    for _, line_break in zip(range(lines), _LINE_BREAK.finditer(text), strict=False):
        end = line_break.end()
    # A title without a line break after it is all there is.
    return (text[:end], text[end:]) if len(_LINE_BREAK.findall(text)) >= lines else (text, "")


def escape(text: str) -> str:
    """A plain text as Markdown that shows it as it is."""
    return _MARKUP.sub(r"\\\1", text)


def contents(headings: Sequence[Heading]) -> str:
    """A nested list of links to all headings but the first, by the anchors that GitHub and others make of them."""
    lines: list[str] = []
    open_levels: list[int] = []
    for heading, anchor in list(zip(headings, anchors(headings), strict=True))[1:]:
        while open_levels and open_levels[-1] >= heading.level:
            open_levels.pop()
        label = escape(line_of(heading))
        lines.append(f"{'  ' * len(open_levels)}- [{label}](#{anchor})")
        open_levels.append(heading.level)
    return "\n".join(lines)


def line_of(heading: Heading) -> str:
    return " ".join(plain(heading.inlines).split())


def anchors(headings: Sequence[Heading]) -> Iterator[str]:
    """The anchor of each heading; a repeated one gets a number."""
    seen: dict[str, int] = {}
    for heading in headings:
        base = _NOT_IN_ANCHORS.sub("", line_of(heading).lower()).replace(" ", "-")
        count = seen.get(base, 0)
        seen[base] = count + 1
        yield f"{base}-{count}" if count else base
