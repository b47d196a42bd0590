"""Elements of a Word document, made directly: the library's own helpers search the whole document at every step."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from docx.oxml.ns import qn
from lxml import etree  # type: ignore[import-untyped]

Element = Any

_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_qn = cache(qn)


def element(tag: str, *children: Element | None, **attributes: str | int) -> Element:
    """An element of the main namespace; attribute names have it too, and None is no child."""
    made = etree.Element(_qn(f"w:{tag}"))
    for name, value in attributes.items():
        made.set(_qn(f"w:{name}"), str(value))
    made.extend([child for child in children if child is not None])
    return made


def paragraph(style: str | None, *properties: Element | None, runs: Iterable[Element] = ()) -> Element:
    """A paragraph; `properties` are in the order of the format: numbering, borders, spacing, indents, alignment."""
    kept = [one for one in (element("pStyle", val=style) if style else None, *properties) if one is not None]
    made = element("p", element("pPr", *kept) if kept else None)
    made.extend(list(runs))
    return made


def numbered(number: int, level: int) -> Element:
    return element("numPr", element("ilvl", val=level), element("numId", val=number))


def indented(left: int, hanging: int = 0) -> Element | None:
    """In twentieths of a point."""
    if not left and not hanging:
        return None
    return element("ind", left=left, hanging=hanging) if hanging else element("ind", left=left)


def run(text: str, *properties: Element | None) -> Element:
    """A run of text; tabs and line breaks in it become elements of their own."""
    kept = [one for one in properties if one is not None]
    made = element("r", element("rPr", *kept) if kept else None)
    for count, line in enumerate(text.split("\n")):
        if count:
            made.append(element("br"))
        for position, piece in enumerate(line.split("\t")):
            if position:
                made.append(element("tab"))
            if piece:
                made.append(_text(piece))
    return made


def _text(text: str) -> Element:
    made = element("t")
    made.text = text
    if text[0] == " " or text[-1] == " ":
        made.set(_SPACE, "preserve")
    return made
