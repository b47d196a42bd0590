"""How values read to people: text made harmless, money, time, size, and a glyph and a word for each state.

Everything a model, a file or a page wrote is data: what could move a cursor, hide or reorder text never reaches a
terminal as it is.
"""

import unicodedata
from typing import Final

#: Unicode categories that draw nothing or redraw something else: controls, formats (bidi, zero width, tags),
#: half characters, line and paragraph separators.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})

_JOINERS: Final = "\u200c\u200d"

#: State -> (glyph, glyph where only ASCII can be written, word).
STATES: Final = {
    "planning": ("◌", "~", "planning"),
    "pending": ("○", ".", "pending"),
    "queued": ("◌", "~", "queued"),
    "running": ("●", "*", "running"),
    "needs_input": ("◆", "?", "needs you"),
    "waiting": ("◷", "w", "waiting"),
    "completed": ("✓", "+", "completed"),
    "partial": ("◐", "/", "partial"),
    "failed": ("✗", "x", "failed"),
    "skipped": ("↷", ">", "skipped"),
    "cancelled": ("⊘", "-", "cancelled"),
}


def word(status: str) -> str:
    """A state as people say it."""
    return STATES.get(status, ("", "", status))[2]


def glyph(status: str, *, plain: bool = False) -> str:
    """A state as one character; `plain` for terminals that write ASCII only."""
    found = STATES.get(status, ("·", ".", status))
    return found[1] if plain else found[0]


def one_line(text: object, most: int = 500) -> str:
    """Text on one line: blanks folded, what cannot be seen written out, the end cut with an ellipsis.

    Only what joins letters and emoji (U+200C, U+200D) is left out: it is common, and hides nothing.
    """
    kept = "".join(c for c in str(text)[: most * 4] if c not in _JOINERS)
    folded = visible(" ".join(kept.split()))
    return folded if len(folded) <= most else folded[: most - 1].rstrip() + "…"


def visible(text: str) -> str:
    """The text whole, with every character that cannot be seen written as ⟦U+202E⟧; line feeds and tabs stay."""
    return "".join(f"⟦U+{ord(c):04X}⟧" if c not in "\n\t" and _unseen(c) else c for c in text)


def unseen(text: str) -> int:
    """How many characters `visible` writes out."""
    return sum(c not in "\n\t" and _unseen(c) for c in text)


def money(usd: float, *, incomplete: bool = False) -> str:
    """USD with the digits that matter; a sum that misses an unknown price is only a lower bound."""
    if incomplete:
        return f"at least {_amount(usd)} USD" if usd else "unknown cost"
    return f"{_amount(usd)} USD"


def duration(ms: float) -> str:
    """0.4 s, 12 s, 3:05 min, 1:02:03 h."""
    seconds = max(0.0, ms / 1000)
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02} min"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02} h"


def clock(ms: float) -> str:
    """The same for a narrow column: 0.4 s, 12 s, 3:05, 1:02:03."""
    return duration(ms).removesuffix(" min").removesuffix(" h")


def countdown(ms: float) -> str:
    """What is left: 6 d 23 h, 1:02:03, 12 s."""
    hours = int(ms // 3_600_000)
    return f"{hours // 24} d {hours % 24} h" if hours >= 24 else clock(ms)


def size(count: int) -> str:
    """Bytes in the unit that gives a short number."""
    if count < 1000:
        return f"{count} bytes" if count != 1 else "1 byte"
    number = float(count)
    for unit in ("kB", "MB"):
        number /= 1000
        if number < 999.5:
            return f"{number:.1f} {unit}"
    return f"{number / 1000:.1f} GB"


def several(count: int, noun: str) -> str:
    """1 task, 2 tasks."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _amount(usd: float) -> str:
    return f"{usd:.2f}" if usd == 0 or usd >= 1 else f"{usd:.4f}"


def _unseen(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN
