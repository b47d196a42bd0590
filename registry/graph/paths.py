"""The slots an expression reads, and the paths that read them (spec: engine 3.1, 3.2)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, Literal

from registry.base import Json
from registry.errors import OfficinaError
from registry.graph.values import kind

#: Stands where nothing stands: a slot that this run does not have, a key that is not there.
ABSENT: Final[Any] = type("Absent", (), {"__repr__": lambda self: "ABSENT", "__bool__": lambda self: False})()

ROOTS: Final = ("input", "state", "output", "resume", "item", "index")

#: How many characters of an expression a message shows around the fault.
_SHOWN = 72


class ExpressionError(OfficinaError):
    """An expression does not parse (`expr_syntax`) or reads what is not there (`unknown_path`).

    Attributes:
        code: `expr_syntax` or `unknown_path`.
        reason: what is wrong, in one line.
        column: where, in characters of the whole text, from 1.
        message: the reason, and under it the text with a caret at the column.
    """

    def __init__(self, code: Literal["expr_syntax", "unknown_path"], reason: str, text: str, column: int) -> None:
        super().__init__(f"{reason}\n{_pointed(text, column)}", code=code)
        self.reason = reason
        self.text = text
        self.column = column


@dataclass(slots=True)
class Slots:
    """What an expression sees. `item` and `index` exist only inside an item run of a map."""

    input: Json = None
    state: Json = field(default_factory=dict)
    output: Json = None
    resume: Json = None
    item: Json = ABSENT
    index: Json = ABSENT


@dataclass(frozen=True, slots=True)
class Path:
    """One path as written: its root, its steps (a text is a key, an integer an index) and where it begins."""

    root: str
    steps: tuple[str | int, ...] = ()
    column: int = 1

    @property
    def state_key(self) -> str | None:
        """The state key it reads first, or None when it reads no key of the state."""
        first = self.steps[0] if self.root == "state" and self.steps else None
        return first if isinstance(first, str) else None

    @property
    def has_negative_index(self) -> bool:
        return any(isinstance(step, int) and step < 0 for step in self.steps)

    def is_same(self, root: str, *steps: str | int) -> bool:
        return self.root == root and self.steps == steps

    def reader(self) -> Callable[[Slots], Json]:
        """A function that reads the path; ABSENT when there is nothing to read."""
        slot, steps = attrgetter(self.root), self.steps

        def read(slots: Slots) -> Json:
            value = slot(slots)
            for step in steps:
                value = _step(value, step)
            return value

        return read

    def explain(self, slots: Slots) -> str:
        """Why reading the path finds nothing, naming the step that fails and the kind of value it met."""
        value, read = getattr(slots, self.root), f"${self.root}"
        if value is ABSENT:
            return f"{read} exists only inside an item run of a map"
        for step in self.steps:
            after = _step(value, step)
            if after is ABSENT:
                return _refusal(read, value, step)
            value, read = after, read + _written(step)
        return f"{read} has no length: it is {kind(value)}"


def _step(value: Json, step: str | int) -> Json:
    if isinstance(step, str):
        return value.get(step, ABSENT) if isinstance(value, dict) else ABSENT
    return value[step] if isinstance(value, list) and 0 <= step < len(value) else ABSENT


def _refusal(read: str, value: Json, step: str | int) -> str:
    if isinstance(step, str):
        return f"{read} has no key {step!r}" if isinstance(value, dict) else f"{read} is {kind(value)}, not an object"
    if not isinstance(value, list):
        return f"{read} is {kind(value)}, not a list"
    return f"{read} has {len(value)} items, none at index {step}" if step >= 0 else f"{read}: an index counts from 0"


def _written(step: str | int) -> str:
    return f".{step}" if isinstance(step, str) and step.isidentifier() else f"[{step!r}]"


def _pointed(text: str, column: int) -> str:
    """The text on one line, cut to what fits around the column, and a caret under it."""
    line = "".join(character if character.isprintable() else " " for character in text)
    first = max(0, column - 1 - _SHOWN // 2)
    head, tail = "…" if first else "", "…" if first + _SHOWN < len(line) else ""
    return f"  {head}{line[first : first + _SHOWN]}{tail}\n  {' ' * (len(head) + column - 1 - first)}^"
