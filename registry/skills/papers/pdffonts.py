"""The fonts of a PDF document: four cuts of one family and a monospaced one, shipped with us (see fonts/LICENSE).

The standard fonts of the format end at Latin-1; these have Latin, Greek, Cyrillic, Armenian, Georgian, arrows, boxes
and mathematics, and no Chinese, Japanese or Korean.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent / "fonts"
TEXT, CODE = "DejaVuSans", "DejaVuSansMono"
_CUTS: Final = (TEXT, f"{TEXT}-Bold", f"{TEXT}-Oblique", f"{TEXT}-BoldOblique", CODE)
#: What stands where the font has nothing.
REPLACEMENT: Final = "□"


@lru_cache(maxsize=1)
def load() -> Mapping[str, frozenset[int]]:
    """Makes the fonts known to the library; returns the characters each has."""
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont

    found: dict[str, frozenset[int]] = {}
    for name in _CUTS:
        font: Any = TTFont(name, str(FOLDER / f"{name}.ttf"))
        pdfmetrics.registerFont(font)
        found[name] = frozenset(font.face.charToGlyph)
    pdfmetrics.registerFontFamily(TEXT, *_CUTS[:4])
    # The monospaced cut stands for its bold and italic ones, too.
    pdfmetrics.registerFontFamily(CODE, CODE, CODE, CODE, CODE)
    return found


@lru_cache(maxsize=1)
def _everywhere() -> frozenset[int]:
    """Characters that every cut of the text font has: which cut a text is in does not matter then."""
    found = load()
    return frozenset.intersection(*(found[name] for name in _CUTS[:4]))


def fitted(text: str, missing: set[str], *, code: bool = False) -> str:
    """The text with what the font lacks replaced; those characters are added to `missing`."""
    known = load()[CODE] if code else _everywhere()
    lacking = {c for c in set(text) if ord(c) not in known and not c.isspace()}
    if not lacking:
        return text
    missing |= lacking
    return "".join(REPLACEMENT if c in lacking else c for c in text)
