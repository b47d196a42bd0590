"""Long texts in pieces that can be found and read one by one."""

import re
from collections.abc import Iterator
from typing import Final

#: Characters a piece has at most.
MOST: Final = 1_200
_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n+")
#: Where a long paragraph may be parted, the best first.
_JOINTS: Final = ("\n", ". ", "! ", "? ", "。", "; ", ", ", " ")


def passages(text: str, most: int = MOST) -> list[str]:
    """The pieces of a text in order: whole paragraphs as far as they fit together, else whole sentences, else words."""
    made: list[str] = []
    for piece in _pieces(text, most):
        if made and len(made[-1]) + len(piece) + 2 <= most:
            made[-1] += f"\n\n{piece}"
        else:
            made.append(piece)
    return made


def _pieces(text: str, most: int) -> Iterator[str]:
    for paragraph in _PARAGRAPHS.split(text):
        rest = paragraph.strip()
        while len(rest) > most:
            cut = _cut(rest, most)
            yield rest[:cut].rstrip()
            rest = rest[cut:].lstrip()
        if rest:
            yield rest


def _cut(text: str, most: int) -> int:
    """Where to part a text that is too long: late, at the best joint there is."""
    for joint in _JOINTS:
        found = text.rfind(joint, most // 2, most - len(joint))
        if found >= 0:
            return found + len(joint)
    return most
