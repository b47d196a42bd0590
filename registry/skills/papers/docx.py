"""Draws the blocks of a text into a Word document."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

import docx
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.shared import Mm

from registry.skills.papers.blocks import (
    Block,
    Break,
    Code,
    Document,
    Heading,
    Inline,
    Item,
    Items,
    Mark,
    Paragraph,
    Picture,
    Quote,
    Rule,
    Span,
    Table,
)
from registry.skills.papers.notices import Notices
from registry.skills.papers.pictures import Gallery
from registry.skills.papers.wordstyles import LIST_LEVELS, STEP, Numbering, dress, style_id
from registry.skills.papers.wordxml import Element, element, indented, numbered, paragraph, run

PageSize = Literal["a4", "letter"]

_PAGES: Final[dict[PageSize, tuple[float, float]]] = {"a4": (210, 297), "letter": (215.9, 279.4)}
_MARGIN_MM: Final = 25.4
_TWIPS_PER_MM: Final = 1440 / 25.4
#: Word counts its lists up to here.
_MAX_START: Final = 32_767
_BOXES: Final = {True: "☑", False: "☐"}


@dataclass(frozen=True)
class Drawn:
    """A finished document, and what it holds."""

    content: bytes
    paragraphs: int
    tables: int
    images: int
    warnings: list[str]


@dataclass(frozen=True)
class _Place:
    """Where a block is drawn: how far from the left, in which style, at which level of lists."""

    indent: int = 0
    style: str = "Normal"
    level: int = 0
    #: Numbering or box of the next paragraph, when an item begins with it.
    label: Element | str | None = None

    def within(self, **changes: Any) -> "_Place":
        return replace(self, label=None, **changes)


def draw(
    document: Document,
    *,
    title: str,
    author: str,
    page_size: PageSize,
    load: Callable[[str], Any],
    now: datetime,
    check: Callable[[], None] = lambda: None,
) -> Drawn:
    """Makes the file.

    Args:
        document: the text; its own heading of the first level stands in for the title.
        title: the first line, and a property of the file.
        author: a property of the file.
        page_size: a4 or letter.
        load: reads a picture of the workspace; raises `SkillError` when there is none to show.
        now: when the file says it was made.
        check: called between blocks; raises when the time is over.
    """
    return _Writer(document, page_size, load, check).write(title, author, now)


class _Writer:
    def __init__(
        self, document: Document, page_size: PageSize, load: Callable[[str], Any], check: Callable[[], None]
    ) -> None:
        self._document = document
        self._check = check
        self._notices = Notices()
        for warning in document.warnings:
            self._notices.add(warning)
        self._file = docx.Document()
        dress(self._file)
        width, height = _PAGES[page_size]
        self._set_page(width, height)
        self._width = round((width - 2 * _MARGIN_MM) * _TWIPS_PER_MM)
        self._numbering = Numbering(self._file)
        self._gallery = Gallery(self._file, load, self._notices, (height - 2 * _MARGIN_MM) * 0.8 / 25.4)
        self._end = self._file.element.body[-1]
        self._links: dict[str, str] = {}
        self._paragraphs = 0
        self._tables = 0

    def write(self, title: str, author: str, now: datetime) -> Drawn:
        if not self._document.has_title:
            self._put(paragraph(style_id("Title"), runs=[run(title)]))
        self._blocks(self._document.blocks, _Place())
        self._notes()
        self._describe(title, author, now)
        made = io.BytesIO()
        self._file.save(made)
        return Drawn(made.getvalue(), self._paragraphs, self._tables, self._gallery.count, self._notices.all())

    def _set_page(self, width: float, height: float) -> None:
        section = self._file.sections[0]
        section.page_width, section.page_height = Mm(width), Mm(height)
        section.left_margin = section.right_margin = section.top_margin = section.bottom_margin = Mm(_MARGIN_MM)
        footer = section.footer.paragraphs[0]
        footer.style = self._file.styles["Footer"]
        footer._p.append(element("fldSimple", run("1"), instr="PAGE"))

    def _describe(self, title: str, author: str, now: datetime) -> None:
        properties = self._file.core_properties
        properties.title, properties.author, properties.last_modified_by = title, author, author
        properties.comments = ""
        properties.created = properties.modified = now.astimezone(UTC).replace(tzinfo=None)

    def _put(self, made: Element) -> None:
        self._paragraphs += 1
        self._end.addprevious(made)

    def _blocks(self, blocks: tuple[Block, ...], place: _Place) -> None:
        for block in blocks:
            self._check()
            self._block(block, place)
            place = place.within()

    def _block(self, block: Block, place: _Place) -> None:
        match block:
            case Heading(level, inlines):
                self._line(inlines, place, style_id(f"Heading {level}"))
            case Paragraph(inlines):
                self._line(inlines, place, style_id(place.style))
            case Quote(blocks):
                self._labelled(place)
                self._blocks(blocks, place.within(indent=place.indent + STEP, style="Quote"))
            case Items():
                self._labelled(place)
                self._items(block, place)
            case Code(text):
                self._labelled(place)
                left = indented(place.indent + 140) if place.indent else None
                self._put(paragraph(style_id("Code Block"), left, runs=[run(text.expandtabs(4))]))
            case Rule():
                self._labelled(place)
                self._put(paragraph("Rule", indented(place.indent)))
            case Table():
                self._labelled(place)
                self._table(block, place)

    def _labelled(self, place: _Place) -> None:
        """Draws the label of an item that begins with something else than text."""
        if place.label is not None:
            self._line((), place, style_id(place.style))

    def _line(self, inlines: tuple[Inline, ...], place: _Place, style: str) -> None:
        runs = list(self._runs(inlines, self._width - place.indent))
        label = place.label
        if isinstance(label, str):
            runs.insert(0, run(f"{label}\t"))
        number = None if isinstance(label, str) else label
        hanging = STEP if label is not None else 0
        self._put(paragraph(style, number, indented(place.indent, hanging), runs=runs))

    def _items(self, items: Items, place: _Place) -> None:
        level = min(place.level, LIST_LEVELS - 1)
        if place.level >= LIST_LEVELS:
            self._notices.add(f"lists nested deeper than {LIST_LEVELS} levels are drawn at the last of these")
        inside = place.within(
            # A level too many is not moved any further.
            indent=place.indent + (STEP if place.level < LIST_LEVELS else 0),
            style=place.style if place.style == "Note" else "List Paragraph",
            level=place.level + 1,
        )
        number = self._number(items, level)
        for item in items.items:
            labelled = replace(inside, label=self._label(item, number, level))
            if not item.blocks:
                self._labelled(labelled)
            self._blocks(item.blocks, labelled)

    def _number(self, items: Items, level: int) -> int:
        if items.start is None:
            return self._numbering.bullets
        if items.start > _MAX_START:
            self._notices.add(f"a list that begins at {items.start} begins at {_MAX_START}: Word counts no further")
        return self._numbering.counting(level, min(items.start, _MAX_START))

    def _label(self, item: Item, number: int, level: int) -> Element | str:
        return numbered(number, level) if item.done is None else _BOXES[item.done]

    def _table(self, table: Table, place: _Place) -> None:
        self._tables += 1
        columns = len(table.header)
        width = (self._width - place.indent) // columns
        rows = [
            self._row(cells, table, width, is_header=not at) for at, cells in enumerate((table.header, *table.rows))
        ]
        properties = element(
            "tblPr",
            element("tblStyle", val="OfficinaTable"),
            element("tblW", w=5000, type="pct") if not place.indent else element("tblW", w=width * columns, type="dxa"),
            element("tblInd", w=place.indent, type="dxa") if place.indent else None,
            element("tblLook", val="0420", firstRow=1, lastRow=0, firstColumn=0, lastColumn=0, noHBand=0, noVBand=1),
        )
        grid = element("tblGrid", *(element("gridCol", w=width) for _ in range(columns)))
        self._end.addprevious(element("tbl", properties, grid, *rows))
        # Two tables without a paragraph between them would be one.
        self._put(paragraph(style_id("Table Text")))

    def _row(self, cells: tuple[tuple[Inline, ...], ...], table: Table, width: int, *, is_header: bool) -> Element:
        self._check()
        properties = element("trPr", element("cantSplit"), element("tblHeader") if is_header else None)
        made = element("tr", properties)
        for cell, alignment in zip(cells, table.alignments, strict=True):
            side = element("jc", val=alignment) if alignment else None
            # A header alone at the foot of a page heads nothing.
            kept = element("keepNext") if is_header else None
            line = paragraph(style_id("Table Text"), kept, side, runs=self._runs(cell, width))
            made.append(element("tc", element("tcPr", element("tcW", w=width, type="dxa")), line))
        return made

    def _notes(self) -> None:
        if not self._document.notes:
            return
        self._put(paragraph("Rule"))
        items = Items(tuple(Item(blocks) for blocks in self._document.notes), start=1)
        self._items(items, _Place(style="Note"))

    def _runs(self, inlines: tuple[Inline, ...], width: int) -> Iterator[Element]:
        for inline in inlines:
            self._check()
            match inline:
                case Span():
                    yield self._span(inline)
                case Break():
                    yield run("\n")
                case Mark(number):
                    yield run(str(number), element("vertAlign", val="superscript"))
                case Picture():
                    drawing = self._gallery.show(inline, width / 1440)
                    yield drawing if drawing is not None else run(inline.alt or "[image]")

    def _span(self, span: Span) -> Element:
        style = "Inline Code" if span.code else "Hyperlink" if span.href else None
        made = run(
            span.text,
            element("rStyle", val=style_id(style)) if style else None,
            element("b") if span.bold else None,
            element("i") if span.italic else None,
            element("strike") if span.strike else None,
        )
        return self._linked(made, span.href) if span.href else made

    def _linked(self, made: Element, url: str) -> Element:
        if url not in self._links:
            # Ids of our own: the library looks through all of them to find the next.
            self._links[url] = f"rIdLink{len(self._links) + 1}"
            self._file.part.rels.add_relationship(RELATIONSHIP_TYPE.HYPERLINK, url, self._links[url], is_external=True)
        link = element("hyperlink", made, history=1)
        link.set(_RELATION, self._links[url])
        return link


_RELATION: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
