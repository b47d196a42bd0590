"""Which commands an agent's settings let through without asking, and which they refuse (spec: engine 15).

Neither list is a wall: the sandbox is. The allow list saves a person from being asked about `git status`; the block
list catches mistakes, and one who wants to get past it can.
"""

import re
import shlex
from fnmatch import fnmatchcase
from typing import Annotated, Final

from pydantic import AfterValidator, StringConstraints

#: Letters that mean themselves to every shell, in every place: anything else may start or join other commands.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:,@%+= -]+")
#: What a shell takes away, or takes for the end of a word.
_QUOTES: Final = re.compile(r"[\"'\\]")
_BREAKS: Final = re.compile(r"[\s;&|()<>{}`$!#]+")


def _words(text: str) -> str:
    if not text.split():
        raise ValueError("is blank")
    return text


#: The first words of a command, as in `git status`; `*` in a word stands for any letters.
Words = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_words)]


def is_allowed(command: str, allowlist: tuple[str, ...]) -> bool:
    """Whether a command is one that needs no yes: plain words that begin as an entry does."""
    if not _PLAIN.fullmatch(command):
        return False
    words = shlex.split(command)
    # `A=b c` runs c, with something changed that the entry says nothing about.
    if not words or "=" in words[0]:
        return False
    return any(_begins(words, entry.split()) for entry in allowlist)


def is_blocked(command: str, blocklist: tuple[str, ...]) -> bool:
    """Whether the words of an entry follow one another anywhere in a command, behind quotes and paths too."""
    words = _BREAKS.sub(" ", _QUOTES.sub("", command)).split()
    names = [word.rpartition("/")[2] for word in words]
    return any(
        _begins([first, *words[at + 1 :]], entry.split())
        for entry in blocklist
        for at in range(len(words))
        for first in (words[at], names[at])
    )


def _begins(words: list[str], entry: list[str]) -> bool:
    return len(words) >= len(entry) and all(map(fnmatchcase, words, entry))


__all__ = ["Words", "is_allowed", "is_blocked"]
