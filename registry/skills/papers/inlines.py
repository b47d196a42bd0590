"""What stands inside one line of a text: styles, links, pictures, references to footnotes."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote, urlsplit

from markdown_it.token import Token

from registry.errors import SkillError
from registry.skills.papers.blocks import Break, Inline, Mark, Picture, Span
from registry.skills.papers.characters import cleaned
from registry.skills.papers.notices import Notices, shown
from registry.skills.paths import normalise

MAX_URL: Final = 2048
#: A host name in ASCII, or an address.
_HOST: Final = re.compile(r"[A-Za-z0-9._:-]+")


@dataclass(frozen=True)
class _Style:
    """How deep the text at hand stands in each style; links do not nest."""

    strong: int = 0
    em: int = 0
    s: int = 0
    href: str | None = None

    def span(self, text: str, *, code: bool = False) -> Span:
        return Span(text, self.strong > 0, self.em > 0, self.s > 0, code, self.href)


def read(tokens: Sequence[Token], notices: Notices) -> tuple[Inline, ...]:
    """The inlines of one line."""
    return tuple(_merged(_inlines(tokens, notices)))


def _inlines(tokens: Sequence[Token], notices: Notices) -> Iterator[Inline]:
    style = _Style()
    for token in tokens:
        match token.type:
            case "text" | "text_special":
                yield style.span(_flowing(token.content))
            case "code_inline":
                yield style.span(_flowing(token.content), code=True)
            case "softbreak":
                yield style.span(" ")
            case "hardbreak":
                yield Break()
            case "link_open":
                style = replace(style, href=_link(str(token.attrs.get("href", "")), notices))
            case "link_close":
                style = replace(style, href=None)
            case "image":
                yield _picture(token, style, notices)
            case "footnote_ref":
                yield Mark(int(token.meta["id"]) + 1)
            case "strong_open" | "em_open" | "s_open" | "strong_close" | "em_close" | "s_close":
                style = replace(style, **{token.tag: getattr(style, token.tag) + token.nesting})


def _merged(inlines: Iterator[Inline]) -> Iterator[Inline]:
    """Neighbours of one style become one span: a parser cuts a text wherever it looked for markup."""
    held: Span | None = None
    for inline in inlines:
        if isinstance(inline, Span) and held is not None and replace(held, text="") == replace(inline, text=""):
            held = replace(held, text=held.text + inline.text)
            continue
        if held is not None and held.text:
            yield held
        held = inline if isinstance(inline, Span) else None
        if not isinstance(inline, Span):
            yield inline
    if held is not None and held.text:
        yield held


def _flowing(text: str) -> str:
    # Character references may bring in what was taken out of the text, and line breaks.
    return cleaned(text).replace("\n", " ").replace("\r", " ").replace("\t", " ")


def _link(url: str, notices: Notices) -> str | None:
    if _can_be_followed(url):
        return url
    notices.add(f"the link to {shown(url)} became text: only http, https and mailto links are kept")
    return None


def _can_be_followed(url: str) -> bool:
    if len(url) > MAX_URL or not url.isascii() or cleaned(url) != url:
        return False
    try:
        parts = urlsplit(url)
        if parts.scheme == "mailto":
            return "@" in parts.path
        # Looking at the port is what judges it.
        host_is_one = _HOST.fullmatch(parts.hostname or "") is not None
        return parts.scheme in ("http", "https") and host_is_one and parts.port != 0
    except ValueError:
        return False


def _picture(token: Token, style: _Style, notices: Notices) -> Inline:
    source = str(token.attrs.get("src", ""))
    alt = _alternative(token)
    reason = _why_not(source)
    if reason is None:
        try:
            return Picture(normalise(unquote(source)), alt)
        except SkillError as error:
            reason = error.message
    notices.add(f"the image {shown(source)} became its alternative text: {reason}")
    return style.span(alt or "[image]")


def _alternative(token: Token) -> str:
    pieces = (
        _flowing(child.content) if child.content else " " * (child.type == "softbreak")
        for child in token.children or ()
    )
    return "".join(pieces).strip()


def _why_not(source: str) -> str | None:
    scheme, colon, _ = source.partition(":")
    if source.startswith("//") or (colon and len(scheme) > 1 and scheme.isalnum()):
        return "only images of the workspace are shown, and nothing is fetched"
    return None
