"""HTML of strangers as text: lines, lists, targets of links. Nothing in it is loaded or run."""

import html
import re
from typing import Final

#: Characters that are looked at.
MAX_CHARS: Final = 250_000
#: Open tags within each other, and characters of one tag, up to which a real parser is let near: beyond them its
#: time grows with the square of the input (20,000 nested blocks take seconds, 100,000 a minute).
MAX_DEPTH: Final = 300
MAX_TAG: Final = 20_000

_OPENING = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]{0,15})")
#: Tags that nest nothing, or that the next of their kind closes.
_FLAT: Final = frozenset(
    {
        *("area", "base", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta", "option"),
        *("p", "param", "source", "td", "th", "tr", "track", "wbr"),
    }
)
_LONG_TAG = re.compile(rf"<[^<>]{{{MAX_TAG}}}")
_DATA_URL = re.compile(r"data:[^\"'<>\s]{200,}")
_HIDDEN = re.compile(r"<(script|style|title|head)\b[^<>]*>[^<]*", re.IGNORECASE)
_BLANKS = re.compile(r"\s+")
_LINK = re.compile(r'<a href="([^"<>]*)">([^<>]*)</a>')
_BREAK = re.compile(r"</?(?:br|p|div|tr|h[1-6]|blockquote|pre|hr|ul|ol)(?: [^<>]*)?/?>", re.IGNORECASE)
_ITEM = re.compile(r"<li(?: [^<>]*)?>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_MANY_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_SHAPING: Final = frozenset(
    {*("a", "br", "p", "div", "tr", "td", "li", "ul", "ol", "blockquote", "pre", "hr"), *(f"h{n}" for n in range(1, 7))}
)


def to_text(page: str) -> str:
    """What a person would read of the page."""
    page = _DATA_URL.sub("", page[:MAX_CHARS])
    shaped = _HIDDEN.sub("", page) if is_hostile(page) else _cleaned(page)
    text = _LINK.sub(_link, _BLANKS.sub(" ", shaped))
    text = _BREAK.sub("\n", _ITEM.sub("\n- ", text).replace("</td>", " "))
    text = html.unescape(_TAG.sub("", text))
    return _MANY_LINES.sub("\n\n", re.sub(r" *\n *", "\n", text)).strip()


def is_hostile(page: str) -> bool:
    """Whether a parser would take too long over it."""
    return _LONG_TAG.search(page) is not None or _deep(page)


def _cleaned(page: str) -> str:
    """The page with no other tags than those that shape its text, each of them well-formed."""
    import nh3

    return nh3.clean(
        page,
        tags=set(_SHAPING),
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto"},
        link_rel=None,
        clean_content_tags={"script", "style", "title"},
    )


def _deep(page: str) -> bool:
    depth = 0
    for found in _OPENING.finditer(page):
        if found[2].lower() not in _FLAT:
            depth = max(0, depth - 1) if found[1] else depth + 1
            if depth > MAX_DEPTH:
                return True
    return False


def _link(found: re.Match[str]) -> str:
    target, words = found[1], found[2]
    return words if not target or target in words else f"{words} ({target})"


__all__ = ["is_hostile", "to_text"]
