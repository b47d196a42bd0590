"""Judging short texts that people and models write."""

import unicodedata


def one_line(text: str) -> str:
    """A text of one line, not blank: for titles, names, labels.

    Raises:
        ValueError: it holds line breaks or control characters, or nothing else than blanks.
    """
    if not text.strip():
        raise ValueError("is blank")
    if any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in text):
        raise ValueError("holds line breaks or control characters")
    return text


def not_blank(text: str) -> str:
    """A text that says something.

    Raises:
        ValueError: it is empty, or blanks only.
    """
    if not text.strip():
        raise ValueError("is blank")
    return text
