"""The tree between Markdown and a file format: what every writer has to draw, and nothing else.

A writer sees plain texts only: raw HTML is text already, links are ones it may draw, and everything of a document that
was left out or changed stands in its warnings.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias


@dataclass(frozen=True)
class Span:
    """A stretch of text in one style; no line breaks in it."""

    text: str
    bold: bool = False
    italic: bool = False
    strike: bool = False
    code: bool = False
    #: http, https or mailto, percent-encoded; None for plain text.
    href: str | None = None


@dataclass(frozen=True)
class Break:
    """A line that ends where its writer wanted it to."""


@dataclass(frozen=True)
class Picture:
    """A picture of the workspace; `path` is its stored form, and whether it is there is not known yet."""

    path: str
    alt: str


@dataclass(frozen=True)
class Mark:
    """A reference to a footnote."""

    number: int


Inline: TypeAlias = Span | Break | Picture | Mark


@dataclass(frozen=True)
class Heading:
    #: 1 to 6.
    level: int
    inlines: tuple[Inline, ...]
    #: The lines it takes in the text: the first, and the one after the last.
    lines: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Paragraph:
    inlines: tuple[Inline, ...]


@dataclass(frozen=True)
class Code:
    text: str


@dataclass(frozen=True)
class Rule:
    """A line across the page."""


@dataclass(frozen=True)
class Quote:
    blocks: tuple["Block", ...]


@dataclass(frozen=True)
class Item:
    blocks: tuple["Block", ...]
    #: Whether the task is done; None when it is no task.
    done: bool | None = None


@dataclass(frozen=True)
class Items:
    """A list; `start` is the number of its first item, None for bullets."""

    items: tuple[Item, ...]
    start: int | None = None


Alignment: TypeAlias = Literal["left", "center", "right"]
Cell: TypeAlias = tuple[Inline, ...]


@dataclass(frozen=True)
class Table:
    header: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    #: One per column; None where the text does not say.
    alignments: tuple[Alignment | None, ...]


Block: TypeAlias = Heading | Paragraph | Code | Rule | Quote | Items | Table


@dataclass(frozen=True)
class Document:
    """A text as read."""

    blocks: tuple[Block, ...]
    #: What each footnote says, in the order of their numbers, from 1.
    notes: tuple[tuple[Block, ...], ...] = ()
    warnings: list[str] = field(default_factory=list)
    #: Whether the parser gave up on what stands too deep inside quotes and lists.
    is_cut: bool = False

    @property
    def has_title(self) -> bool:
        """Whether the text begins with a heading of the first level."""
        return bool(self.blocks) and isinstance(self.blocks[0], Heading) and self.blocks[0].level == 1


def plain(inlines: tuple[Inline, ...]) -> str:
    """The text of a line without its styles."""
    return "".join(_plain(inline) for inline in inlines)


def leaves(document: Document) -> Iterator[Block]:
    """Every block that is no container, footnotes last."""
    for blocks in (document.blocks, *document.notes):
        yield from _leaves(blocks)


def headings(blocks: tuple[Block, ...]) -> Iterator[Heading]:
    """Every heading, in the order of the text."""
    return (block for block in _leaves(blocks) if isinstance(block, Heading))


def count_words(document: Document) -> int:
    """Words that a reader sees: what stands between blanks."""
    return sum(len(text.split()) for block in leaves(document) for text in _texts(block))


def _leaves(blocks: tuple[Block, ...]) -> Iterator[Block]:
    for block in blocks:
        match block:
            case Quote(inner):
                yield from _leaves(inner)
            case Items(items):
                for item in items:
                    yield from _leaves(item.blocks)
            case _:
                yield block


def _texts(block: Block) -> Iterator[str]:
    match block:
        case Heading(inlines=inlines) | Paragraph(inlines=inlines):
            yield plain(inlines)
        case Code(text):
            yield text
        case Table(header, rows):
            yield from (plain(cell) for row in (header, *rows) for cell in row)


def _plain(inline: Inline) -> str:
    match inline:
        case Span(text):
            return text
        case Break():
            return "\n"
        case Picture(alt=alt):
            return alt
    return ""
