"""Lines of a file's bytes: they end at LF, a final LF adds none, an empty file has none (spec: skills 7.7)."""

from collections.abc import Iterator
from typing import Final

#: The byte order mark some editors put before UTF-8.
BOM: Final = b"\xef\xbb\xbf"


def count(text: bytes) -> int:
    return text.count(b"\n") + (bool(text) and not text.endswith(b"\n"))


def from_line(text: bytes, first: int) -> Iterator[bytes]:
    """The lines from number `first` (from 1) on, each with its LF."""
    position = 0
    for _ in range(first - 1):
        position = text.find(b"\n", position) + 1
        if position == 0:
            return
    while position < len(text):
        end = text.find(b"\n", position) + 1 or len(text)
        yield text[position:end]
        position = end


__all__ = ["BOM", "count", "from_line"]
