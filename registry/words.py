"""Words of a text, for looking things up: in any script, without case, the same on every database.

Scripts that write no blanks (Chinese, Japanese, Thai ...) give one word a character.
"""

import re
import unicodedata
from typing import Final

_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def words(text: str) -> list[str]:
    """The words in order, with repetitions."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    spaced = _UNSPACED.sub(lambda match: f" {match[0]} ", plain)
    # Letters, digits and the marks that belong to them; an underscore parts words.
    return "".join(c if unicodedata.category(c)[0] in "LNM" else " " for c in spaced).split()


def comparable(text: str) -> str:
    """A text as it compares with others: forms of characters, case and blanks left out."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
