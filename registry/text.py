"""Judging short texts that people and models write."""

import unicodedata
from collections.abc import Iterator

from registry.base import Json


def one_line(text: str) -> str:
    """A text of one line, not blank: for titles, names, labels.

    Raises:
        ValueError: it holds line breaks or control characters, or nothing that is seen.
    """
    not_blank(text)
    if any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in text):
        raise ValueError("holds line breaks or control characters")
    return text


def not_blank(text: str) -> str:
    """A text that says something.

    Raises:
        ValueError: it is empty, or blanks and characters without a look of their own only.
    """
    if all(character.isspace() or unicodedata.category(character) == "Cf" for character in text):
        raise ValueError("is blank")
    return text


def storable(text: str) -> str:
    """A text of any length and shape that every database keeps: PostgreSQL has no NUL in texts.

    Raises:
        ValueError: it holds one.
    """
    if "\0" in text:
        raise ValueError("holds a NUL character")
    return text


def nul_places(value: Json, at: str = "") -> Iterator[str]:
    """Where in a document a text or a name holds a NUL: a database may not take it, and nobody means it."""
    if isinstance(value, str) and "\0" in value:
        yield at
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from nul_places(item, f"{at}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            place = f"{at}.{key}" if at else str(key)
            if "\0" in str(key):
                yield place
            yield from nul_places(item, place)
