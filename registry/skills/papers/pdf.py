"""Draws the blocks of a text into a PDF file. The same text gives the same bytes."""

import io
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal
from xml.sax.saxutils import escape, quoteattr

from reportlab.lib import colors
from reportlab.lib.enums import TA_CENTER, TA_LEFT, TA_RIGHT
from reportlab.lib.pagesizes import A4, LETTER
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import inch, mm
from reportlab.platypus import (
    BaseDocTemplate,
    Flowable,
    Frame,
    HRFlowable,
    Image,
    LongTable,
    PageTemplate,
    Preformatted,
)
from reportlab.platypus import Paragraph as Lines

from registry.errors import SkillError
from registry.skills.papers import pdffonts
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
from registry.skills.papers.images import Raster
from registry.skills.papers.notices import Notices, shown
from registry.skills.papers.pdffonts import CODE, TEXT, fitted

PageSize = Literal["a4", "letter"]

MAX_IMAGES: Final = 20
#: How deep lists are moved in.
LIST_LEVELS: Final = 5
_PAGES: Final = {"a4": A4, "letter": LETTER}
_MARGIN: Final = 25 * mm
_STEP: Final = 18.0
_SIZE: Final = 10.5
_HEADINGS: Final = {1: 20.0, 2: 16.0, 3: 13.5, 4: 12.0, 5: 11.0, 6: _SIZE}
_GREY, _LIGHT, _LINK = colors.HexColor("#555555"), colors.HexColor("#f2f2f2"), "#1a56a0"
_BOXES: Final = {True: "☑", False: "☐"}
_SIDES: Final = {"left": TA_LEFT, "center": TA_CENTER, "right": TA_RIGHT, None: TA_LEFT}
#: Characters that are drawn from the right in the scripts that are; nothing here turns them around.
_FROM_RIGHT: Final = ("R", "AL")


@dataclass(frozen=True)
class Drawn:
    """A finished document, and what it holds."""

    content: bytes
    pages: int
    paragraphs: int
    tables: int
    images: int
    warnings: list[str]


@dataclass(frozen=True)
class _Place:
    """Where a block is drawn: how far from the left in points, in which look, at which level of lists."""

    indent: float = 0
    look: Literal["text", "quote", "note"] = "text"
    level: int = 0
    #: Number, bullet or box of the next paragraph, when an item begins with it.
    label: str | None = None


def draw(
    document: Document,
    *,
    title: str,
    author: str,
    page_size: PageSize,
    load: Callable[[str], Raster],
    check: Callable[[], None] = lambda: None,
) -> Drawn:
    """Makes the file.

    Args:
        document: the text; its own heading of the first level stands in for the title.
        title: the first line, and a property of the file.
        author: a property of the file.
        page_size: a4 or letter.
        load: reads a picture of the workspace; raises `SkillError` when there is none to show.
        check: called between blocks and as they are laid out; raises when the time is over.
    """
    return _Writer(document, page_size, load, check).write(title, author)


class _Pages(BaseDocTemplate):  # type: ignore[misc] # no types are published for it
    """Pages with a number at the foot; looks at the clock as it goes."""

    def __init__(self, target: Any, check: Callable[[], None], **how: Any) -> None:
        super().__init__(target, **how)
        self._check = check
        frame = Frame(self.leftMargin, self.bottomMargin, self.width, self.height, 0, 0, 0, 0)
        self.addPageTemplates(PageTemplate("page", [frame], onPageEnd=self._number))

    def afterFlowable(self, flowable: Flowable) -> None:  # noqa: N802 - the name the library calls
        """Called after each block that was laid out."""
        self._check()

    def _number(self, canvas: Any, _template: Any) -> None:
        self._check()
        canvas.saveState()
        canvas.setFont(TEXT, 8)
        canvas.setFillColor(_GREY)
        canvas.drawCentredString(self.pagesize[0] / 2, 12 * mm, str(canvas.getPageNumber()))
        canvas.restoreState()


class _Writer:
    def __init__(
        self, document: Document, page_size: PageSize, load: Callable[[str], Raster], check: Callable[[], None]
    ) -> None:
        pdffonts.load()
        self._document = document
        self._load = load
        self._check = check
        self._notices = Notices()
        for warning in document.warnings:
            self._notices.add(warning)
        self._page = _PAGES[page_size]
        self._width = self._page[0] - 2 * _MARGIN
        self._height = self._page[1] - 2 * _MARGIN
        self._missing: set[str] = set()
        self._from_right = False
        self._rasters: dict[str, Raster | None] = {}
        self._paragraphs = self._tables = self._images = 0

    def write(self, title: str, author: str) -> Drawn:
        story: list[Any] = []
        if not self._document.has_title:
            story += self._block(Heading(1, (Span(title),)), _Place())
        story += self._blocks(self._document.blocks, _Place())
        story += self._notes()
        made = io.BytesIO()
        pages = _Pages(
            made,
            self._check,
            pagesize=self._page,
            leftMargin=_MARGIN,
            rightMargin=_MARGIN,
            topMargin=_MARGIN,
            bottomMargin=_MARGIN,
            title=title,
            author=author or "",
            subject="",
            creator="Officina",
            invariant=1,
            lang=None,
        )
        pages.build(story)
        self._tell()
        return Drawn(made.getvalue(), pages.page, self._paragraphs, self._tables, self._images, self._notices.all())

    def _tell(self) -> None:
        if self._missing:
            named = ", ".join(f"U+{ord(c):04X}" for c in sorted(self._missing)[:10])
            more = f" and {len(self._missing) - 10} more" if len(self._missing) > 10 else ""
            self._notices.add(f"characters that the font lacks were replaced by {pdffonts.REPLACEMENT}: {named}{more}")
        if self._from_right:
            self._notices.add("text that runs from right to left is drawn in the order it is stored in")

    def _blocks(self, blocks: tuple[Block, ...], place: _Place) -> Iterator[Any]:
        for block in blocks:
            self._check()
            yield from self._block(block, place)
            place = replace(place, label=None)

    def _block(self, block: Block, place: _Place) -> Iterator[Any]:
        match block:
            case Heading(level, inlines):
                yield from self._line(inlines, place, _heading(level, place))
            case Paragraph(inlines):
                yield from self._line(inlines, place, _text(place))
            case Quote(blocks):
                yield from self._labelled(place)
                yield from self._blocks(blocks, replace(place, indent=self._moved(place), look="quote", label=None))
            case Items():
                yield from self._labelled(place)
                yield from self._items(block, place)
            case Code(text):
                yield from self._labelled(place)
                yield self._code(text, place)
            case Rule():
                yield from self._labelled(place)
                yield HRFlowable(width="100%", thickness=0.5, color=_GREY, spaceBefore=6, spaceAfter=10)
            case Table():
                yield from self._labelled(place)
                yield self._table(block, place)

    def _labelled(self, place: _Place) -> Iterator[Any]:
        """Draws the label of an item that begins with something else than text."""
        if place.label is not None:
            yield from self._line((), place, _text(place))

    def _line(self, inlines: tuple[Inline, ...], place: _Place, style: ParagraphStyle) -> Iterator[Any]:
        self._paragraphs += 1
        if place.label is not None:
            style = ParagraphStyle("item", style, bulletIndent=place.indent - _STEP, leftIndent=place.indent)
        yield from self._flow(inlines, style, self._width - place.indent, label=place.label)

    def _flow(
        self, inlines: tuple[Inline, ...], style: ParagraphStyle, width: float, *, label: str | None = None
    ) -> Iterator[Any]:
        """Lines of text, parted where a picture stands; at least one when there is a label."""
        written: list[str] = []
        for inline in inlines:
            picture = self._picture(inline, width) if isinstance(inline, Picture) else None
            if picture is None:
                written.append(self._markup(inline))
                continue
            if "".join(written).strip() or label is not None:
                yield Lines("".join(written), style, bulletText=label)
            written, label = [], None
            yield picture
        if "".join(written).strip() or label is not None or not inlines:
            yield Lines("".join(written), style, bulletText=label)

    def _markup(self, inline: Inline) -> str:
        match inline:
            case Span():
                return self._span(inline)
            case Break():
                return "<br/>"
            case Mark(number):
                return f"<super>{number}</super>"
            case Picture(alt=alt):
                return self._plain(alt or "[image]")

    def _span(self, span: Span) -> str:
        text = self._plain(span.text, code=span.code)
        if span.code:
            text = f'<font face="{CODE}" size="{_SIZE - 1.5}">{text}</font>'
        for wanted, tag in ((span.bold, "b"), (span.italic, "i"), (span.strike, "strike")):
            text = f"<{tag}>{text}</{tag}>" if wanted else text
        if span.href:
            text = f'<link href={quoteattr(span.href)} color="{_LINK}">{text}</link>'
        return text

    def _plain(self, text: str, *, code: bool = False) -> str:
        """Text as markup that says nothing but the text."""
        if not text.isascii() and any(unicodedata.bidirectional(c) in _FROM_RIGHT for c in text):
            self._from_right = True
        return escape(fitted(text, self._missing, code=code))

    def _code(self, text: str, place: _Place) -> Any:
        style = ParagraphStyle(
            "code",
            fontName=CODE,
            fontSize=8.5,
            leading=11,
            leftIndent=place.indent + 6,
            backColor=_LIGHT,
            borderPadding=(4, 6, 4, 6),
            spaceBefore=6,
            spaceAfter=10,
        )
        # The cut is monospaced: every character is this wide.
        room = max(10, int((self._width - place.indent - 12) / (style.fontSize * 0.602)))
        self._paragraphs += 1
        return Preformatted(
            fitted(text.expandtabs(4), self._missing, code=True), style, maxLineLength=room, splitChars=None
        )

    def _items(self, items: Items, place: _Place) -> Iterator[Any]:
        if place.level >= LIST_LEVELS:
            self._notices.add(f"lists nested deeper than {LIST_LEVELS} levels are drawn at the last of these")
        indent = self._moved(place) if place.level < LIST_LEVELS else place.indent
        inside = replace(place, indent=indent, level=place.level + 1, label=None)
        for number, item in enumerate(items.items, start=items.start or 0):
            labelled = replace(inside, label=_label(item, number, items))
            if not item.blocks:
                yield from self._labelled(labelled)
            yield from self._blocks(item.blocks, labelled)

    def _moved(self, place: _Place) -> float:
        """One step to the right, as long as half of the page is left."""
        return float(min(place.indent + _STEP, self._width / 2))

    def _table(self, table: Table, place: _Place) -> Any:
        self._tables += 1
        columns = len(table.header)
        width = (self._width - place.indent) / columns
        padding = min(4.0, width / 8)
        size = _SIZE - 1.5 if columns <= 8 else 6.0
        rows = []
        for at, cells in enumerate((table.header, *table.rows)):
            self._check()
            rows.append(
                [
                    self._cell(cell, side, size, width - 2 * padding, is_header=at == 0)
                    for cell, side in zip(cells, table.alignments, strict=True)
                ]
            )
        look = [
            ("GRID", (0, 0), (-1, -1), 0.4, _GREY),
            ("BACKGROUND", (0, 0), (-1, 0), _LIGHT),
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("LEFTPADDING", (0, 0), (-1, -1), padding),
            ("RIGHTPADDING", (0, 0), (-1, -1), padding),
        ]
        return LongTable(
            rows,
            colWidths=[width] * columns,
            style=look,
            repeatRows=1 if len(rows) > 1 else 0,
            splitInRow=1,
            hAlign="RIGHT" if place.indent else "CENTER",
            spaceBefore=6,
            spaceAfter=10,
        )

    def _cell(self, cell: Any, side: Any, size: float, width: float, *, is_header: bool) -> list[Any]:
        style = ParagraphStyle(
            "cell",
            fontName=f"{TEXT}-Bold" if is_header else TEXT,
            fontSize=size,
            leading=size * 1.3,
            alignment=_SIDES[side],
            splitLongWords=1,
        )
        return list(self._flow(cell, style, width))

    def _notes(self) -> Iterator[Any]:
        if not self._document.notes:
            return
        yield HRFlowable(width="30%", thickness=0.5, color=_GREY, spaceBefore=14, spaceAfter=6, hAlign="LEFT")
        items = Items(tuple(Item(blocks) for blocks in self._document.notes), start=1)
        yield from self._items(items, _Place(look="note"))

    def _picture(self, picture: Picture, width: float) -> Any | None:
        """The drawing of a picture, scaled down to what its place holds; None when it cannot be shown."""
        if self._images >= MAX_IMAGES:
            self._notices.add(f"only the first {MAX_IMAGES} images are shown")
            return None
        if picture.path not in self._rasters:
            self._rasters[picture.path] = self._raster(picture.path)
        raster = self._rasters[picture.path]
        if raster is None:
            return None
        self._images += 1
        wide, high = raster.width * inch, raster.height * inch
        scale = min(1.0, width / wide, self._height * 0.8 / high)
        image = Image(io.BytesIO(raster.content), wide * scale, high * scale, mask="auto")
        image.hAlign = "LEFT"
        image.spaceBefore, image.spaceAfter = 4, 8
        return image

    def _raster(self, path: str) -> Raster | None:
        try:
            return self._load(path)
        except SkillError as error:
            self._notices.add(f"the image {shown(path)} became its alternative text: {error.message}")
            return None


def _label(item: Item, number: int, items: Items) -> str:
    if item.done is not None:
        return _BOXES[item.done]
    return "•" if items.start is None else f"{number}."


def _heading(level: int, place: _Place) -> ParagraphStyle:
    size = _HEADINGS[level]
    return ParagraphStyle(
        f"heading{level}",
        fontName=f"{TEXT}-Bold",
        fontSize=size,
        leading=size * 1.25,
        leftIndent=place.indent,
        spaceBefore=size * 0.8,
        spaceAfter=size * 0.4,
        keepWithNext=1,
        splitLongWords=1,
    )


def _text(place: _Place) -> ParagraphStyle:
    size = _SIZE - 1.5 if place.look == "note" else _SIZE
    return ParagraphStyle(
        place.look,
        fontName=TEXT,
        fontSize=size,
        leading=size * 1.4,
        leftIndent=place.indent,
        textColor=_GREY if place.look == "quote" else colors.black,
        spaceAfter=3 if place.level else 7,
        bulletFontName=TEXT,
        bulletFontSize=size,
        splitLongWords=1,
    )
