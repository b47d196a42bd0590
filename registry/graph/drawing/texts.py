"""Texts in a drawing: how wide they will be, where they break, and what may not stand in them.

Nobody measures fonts here: widths are those of common sans-serif and monospaced faces, on the generous side.
"""

import re
import unicodedata
from collections.abc import Sequence
from math import fsum
from typing import Final

#: Share of the font size that a character of a monospaced face takes.
MONO: Final = 0.61
_NARROW: Final = frozenset("ijltfrI1.,:;!|'`()[]{} -/\\\"")
_WIDE: Final = frozenset("mwMWOQG@%&—…→")
#: Characters that are looked at: more never fit.
_LONGEST: Final = 2_000
#: Where an expression breaks best: before an operator that joins two conditions.
_JOINT: Final = re.compile(r"\s+(?=&&|\|\|)")


def plain(text: str) -> str:
    """One line of what can be seen: no controls, no marks that turn the reading direction, no half characters."""
    return " ".join("".join(" " if c.isspace() else c for c in text if c.isspace() or not _unseen(c)).split())


def _unseen(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co")


def width(text: str, size: float, *, mono: bool = False, bold: bool = False) -> float:
    """How wide a text gets at a font size."""
    if text.isascii() and mono:
        return len(text) * size * MONO
    # Exact, so that every release of Python gives the same picture.
    return fsum(_share(c, mono=mono) for c in text) * size * (1.07 if bold else 1.0)


def _share(character: str, *, mono: bool) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if unicodedata.combining(character):
        return 0.0
    if mono:
        return MONO
    if character in _NARROW:
        return 0.36
    if character in _WIDE:
        return 0.92
    return 0.72 if character.isupper() else 0.58


def cut(text: str, room: float, size: float, *, mono: bool = False, bold: bool = False) -> str:
    """The text, or as much of its beginning as fits, with an ellipsis."""
    kept = text[:_LONGEST]
    if len(kept) == len(text) and width(text, size, mono=mono, bold=bold) <= room:
        return text
    while kept and width(kept + "…", size, mono=mono, bold=bold) > room:
        kept = kept[: -max(1, len(kept) // 16)]
    return kept.rstrip() + "…"


def wrap(text: str, room: float, size: float, *, most: int, mono: bool = False) -> list[str]:
    """Lines that fit; at most `most`, the last one cut. Breaks at blanks, and inside a word that is too long."""
    return _joined(text[:_LONGEST].split(" "), " ", room, size, most=most, mono=mono)


def wrap_expression(text: str, room: float, size: float, *, most: int) -> list[str]:
    """An expression in lines, broken before `&&` and `||` first, then at blanks, then anywhere."""
    lines: list[str] = []
    for part in _JOINT.split(text[:_LONGEST]):
        lines += wrap(part, room, size, most=most + 1, mono=True)
        if len(lines) > most:
            return [*lines[: most - 1], cut(lines[most - 1] + "…", room, size, mono=True)]
    return lines


def _joined(words: Sequence[str], joint: str, room: float, size: float, *, most: int, mono: bool) -> list[str]:
    lines = [""]
    for word in words:
        longer = lines[-1] + joint + word if lines[-1] else word
        if width(longer, size, mono=mono) <= room:
            lines[-1] = longer
            continue
        if lines[-1]:
            lines.append("")
        while width(word, size, mono=mono) > room and len(lines) <= most:
            fits = _fitting(word, room, size, mono=mono)
            lines[-1], word = word[:fits], word[fits:]
            lines.append("")
        lines[-1] = word
        if len(lines) > most:
            break
    lines = [line for line in lines if line]
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], cut(lines[most - 1] + "…", room, size, mono=mono)]


def _fitting(word: str, room: float, size: float, *, mono: bool) -> int:
    """How many characters of a word fit, at least one."""
    used, count = 0.0, 0
    for character in word:
        used += width(character, size, mono=mono)
        if used > room:
            break
        count += 1
    return max(1, count)
