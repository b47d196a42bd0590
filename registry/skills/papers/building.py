"""From the parser's flat tokens to the tree of blocks."""

import re
from typing import Final

from markdown_it.token import Token

from registry.skills.papers import inlines
from registry.skills.papers.blocks import (
    Alignment,
    Block,
    Cell,
    Code,
    Heading,
    Inline,
    Item,
    Items,
    Paragraph,
    Quote,
    Rule,
    Span,
    Table,
)
from registry.skills.papers.characters import cleaned
from registry.skills.papers.notices import Notices

_TASK: Final = re.compile(r"\[([ xX])\](?:[ ]+|$)")
_ALIGNMENTS: Final[dict[str, Alignment]] = {
    "text-align:left": "left",
    "text-align:center": "center",
    "text-align:right": "right",
}


class Builder:
    """One walk over the tokens of a text."""

    def __init__(self, tokens: list[Token], notices: Notices) -> None:
        self._tokens = tokens
        self._notices = notices
        self._at = 0
        #: Label of each footnote that says something -> what it says.
        self._notes: dict[str, list[Block]] = {}
        self._numbers: dict[str, int] = {}

    def build(self) -> tuple[tuple[Block, ...], tuple[tuple[Block, ...], ...]]:
        """The blocks of the text, and those of its footnotes in the order of their numbers."""
        self._number_notes()
        blocks = self._blocks("")
        # A footnote that nothing refers to comes last, so that no text is lost.
        labels = sorted(self._notes, key=lambda label: self._numbers.get(label, len(self._tokens)))
        return blocks, tuple(tuple(self._notes[label]) for label in labels)

    def _number_notes(self) -> None:
        for token in self._tokens:
            for child in token.children or ():
                if child.type == "footnote_ref":
                    self._numbers.setdefault(child.meta["label"], child.meta["id"])

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _blocks(self, closing: str) -> tuple[Block, ...]:
        """The blocks up to the token that closes what they stand in."""
        found: list[Block] = []
        while self._at < len(self._tokens):
            token = self._next()
            if token.type == closing:
                break
            block = self._block(token)
            if block is not None:
                found.append(block)
        return tuple(found)

    def _block(self, token: Token) -> Block | None:
        match token.type:
            case "heading_open":
                first, after = token.map or (0, 0)
                return Heading(int(token.tag[1]), self._line(), (first, after))
            case "paragraph_open":
                return Paragraph(self._line())
            case "fence" | "code_block":
                return Code(cleaned(token.content).removesuffix("\n"))
            case "hr":
                return Rule()
            case "blockquote_open":
                return Quote(self._blocks("blockquote_close"))
            case "bullet_list_open":
                return Items(self._items("bullet_list_close"))
            case "ordered_list_open":
                return Items(self._items("ordered_list_close"), start=int(token.attrs.get("start", 1)))
            case "table_open":
                return self._table()
            case "footnote_reference_open":
                self._notes.setdefault(token.meta["label"], []).extend(self._blocks("footnote_reference_close"))
        return None

    def _line(self) -> tuple[Inline, ...]:
        """The inlines of a heading, a paragraph or a cell, whose opening token was just taken."""
        inline, _closing = self._next(), self._next()
        return inlines.read(inline.children or (), self._notices)

    def _items(self, closing: str) -> tuple[Item, ...]:
        found: list[Item] = []
        while self._next().type != closing:
            found.append(_as_task(self._blocks("list_item_close")))
        return tuple(found)

    def _table(self) -> Table:
        rows: list[list[Cell]] = []
        alignments: list[Alignment | None] = []
        while (token := self._next()).type != "table_close":
            if token.type == "tr_open":
                rows.append([])
            elif token.type in ("th_open", "td_open"):
                if token.type == "th_open":
                    alignments.append(_ALIGNMENTS.get(str(token.attrs.get("style", ""))))
                rows[-1].append(self._line())
        header, *body = (tuple(row) for row in rows)
        return Table(header, tuple(body), tuple(alignments))


def _as_task(blocks: tuple[Block, ...]) -> Item:
    """An item, and whether it is a task: then its text begins with `[ ]` or `[x]`."""
    first = blocks[0] if blocks else None
    lead = first.inlines[0] if isinstance(first, Paragraph) and first.inlines else None
    if not isinstance(first, Paragraph) or not isinstance(lead, Span) or lead.code or lead.href:
        return Item(blocks)
    box = _TASK.match(lead.text)
    if box is None:
        return Item(blocks)
    rest = Span(lead.text[box.end() :], lead.bold, lead.italic, lead.strike)
    kept = (rest, *first.inlines[1:]) if rest.text else first.inlines[1:]
    return Item((Paragraph(kept), *blocks[1:]), done=box[1] != " ")
