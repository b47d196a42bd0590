"""Judging short texts that people and models write."""

import unicodedata


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
