"""Reads Markdown (CommonMark with tables, strike-through, tasks and footnotes) into blocks.

Raw HTML is text. A parser is made for each text, because a shared one sets itself up at first use, and a second thread
would find it half set up.
"""

from collections.abc import Callable
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from mdit_py_plugins.footnote import footnote_plugin

from registry.errors import SkillError
from registry.skills.papers.blocks import Document, Table, leaves
from registry.skills.papers.building import Builder
from registry.skills.papers.characters import cleaned, warnings_of
from registry.skills.papers.notices import Notices

MAX_BLOCKS: Final = 20_000
#: What a text may be parsed into at all. A row of three characters makes as many cells as its table has columns, so the
#: length of a text is no bound of what it takes to hold it.
MAX_TOKENS: Final = 300_000
MAX_COLUMNS: Final = 30
MAX_ROWS: Final = 500
#: Levels of quotes and lists; a list takes two, one for itself and one for its item.
MAX_NESTING: Final = 60

_CONTAINERS: Final = frozenset({"blockquote_open", "list_item_open", "footnote_reference_open"})
#: Rules are tried at every place of a text: looking at the clock each time would cost more than the parsing.
_LOOK_EVERY: Final = 200


def parse(text: str, check: Callable[[], None] = lambda: None) -> Document:
    """Reads a text.

    Args:
        text: Markdown; characters that no document can hold are taken out of it.
        check: called every now and then; raises when the time is over.

    Raises:
        SkillError: `too_large` for a text of more parts than can be held.
    """
    notices = Notices()
    for warning in warnings_of(text):
        notices.add(warning)
    tokens = _parser(check).parse(cleaned(text))
    blocks, notes = Builder(tokens, notices).build()
    # At its own limit the parser drops what is inside without a word.
    is_cut = any(token.type in _CONTAINERS and token.level + 1 >= MAX_NESTING for token in tokens)
    return Document(blocks, notes, notices.all(), is_cut)


def judged(document: Document) -> Document:
    """The document, when it is one that can be drawn.

    Raises:
        SkillError: `too_large` for more than 20,000 blocks, a table of more than 30 columns or 500 rows, and nesting
            deeper than anybody reads.
    """
    found = list(leaves(document))
    if len(found) > MAX_BLOCKS:
        raise SkillError("too_large", f"markdown: {len(found)} blocks, and {MAX_BLOCKS} is the most")
    if document.is_cut:
        raise SkillError("too_large", "markdown: quotes and lists nest too deep to be drawn")
    for table in found:
        if isinstance(table, Table) and (len(table.header) > MAX_COLUMNS or len(table.rows) > MAX_ROWS):
            size = f"a table has {len(table.header)} columns and {len(table.rows)} rows"
            raise SkillError("too_large", f"markdown: {size}, and {MAX_COLUMNS} by {MAX_ROWS} is the most")
    return document


def _parser(check: Callable[[], None]) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING}).enable(["table", "strikethrough"])
    footnote_plugin(parser, inline=False, move_to_end=False)
    # Which links are kept is judged later, with a warning; here each is only read as one.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    look = _clock(check)

    def at_block(state: StateBlock, _start: int, _end: int, _silent: bool) -> bool:
        look()
        if len(state.tokens) > MAX_TOKENS:
            raise SkillError("too_large", "markdown: too many paragraphs, items and cells; split the document")
        return False

    def at_inline(_state: StateInline, _silent: bool) -> bool:
        look()
        return False

    parser.block.ruler.before("table", "clock", at_block)
    parser.inline.ruler.before("text", "clock", at_inline)
    return parser


def _clock(check: Callable[[], None]) -> Callable[[], None]:
    """`check`, called at every 200th place: a text can be made so that reading it takes hours."""
    places = 0

    def look() -> None:
        nonlocal places
        places += 1
        if places % _LOOK_EVERY == 0:
            check()

    return look
