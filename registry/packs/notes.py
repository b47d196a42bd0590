"""What packs share: texts a model may keep, and notes of lines within a budget."""

from collections.abc import Iterable
from typing import Annotated, Final, TypeVar

from pydantic import AfterValidator, StringConstraints

from registry.errors import SkillError
from registry.fencing import fenced
from registry.text import not_blank, one_line, storable

P = TypeVar("P")

#: Characters a token is counted as, as everywhere before a call.
CHARS_A_TOKEN: Final = 4

#: What stands for the rest of a line, and characters left of a budget that are not worth another.
CUT: Final = " [...]"
LEAST: Final = 40

#: A text that says something and that every database keeps.
Kept = Annotated[
    str, StringConstraints(min_length=1, max_length=4000), AfterValidator(not_blank), AfterValidator(storable)
]
#: A name of one line.
Key = Annotated[str, StringConstraints(min_length=1, max_length=80), AfterValidator(one_line)]
#: A query: words, however many; there is no syntax to it.
Words = Annotated[str, StringConstraints(min_length=1, max_length=200_000), AfterValidator(not_blank)]


def wired(port: P | None) -> P:
    """The port a tool needs.

    Raises:
        SkillError: `tool_failed` where nothing is kept at all.
    """
    if port is None:
        raise SkillError("tool_failed", "nothing is kept here: this call has no notebook")
    return port


def within(lines: Iterable[tuple[str, bool]], budget_tokens: int) -> str | None:
    """Lines, the most important first, as far as the budget goes; those from outside stand together as data.

    Args:
        lines: each with whether text from outside may be in it.
    """
    room = budget_tokens * CHARS_A_TOKEN
    own, outside = list[str](), list[str]()
    for line, untrusted in lines:
        cut = len(line) > room
        (outside if untrusted else own).append(line[:room] + CUT if cut else line)
        room -= len(line) + 1
        if cut or room < LEAST:
            break
    parts = ["\n".join(own)] if own else []
    if outside:
        parts.append(fenced("\n".join(outside)))
    return "\n".join(parts) or None
