"""What a reader should know about a document that could not be made just as it was sent."""

from typing import Final

#: More than this nobody reads; the rest is counted.
MAX_NOTICES: Final = 50
_SHOWN: Final = 80


class Notices:
    """Warnings, each said once."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}
        self._left_out = 0

    def add(self, text: str) -> None:
        if text in self._said:
            return
        if len(self._said) >= MAX_NOTICES:
            self._left_out += 1
            return
        self._said[text] = None

    def all(self) -> list[str]:
        more = [f"and {self._left_out} more warnings"] if self._left_out else []
        return [*self._said, *more]


def shown(text: str) -> str:
    """A text of someone else's, fit to stand in a warning: short, in quotes, nothing invisible in it."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
