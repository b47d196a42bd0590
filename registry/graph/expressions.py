"""The expression language of graphs: compile once, evaluate often (spec: engine 3).

    compile("$output.finishReason = 'tool-calls'").evaluate(Slots(output={"finishReason": "stop"}))   # False

Only texts that a person wrote into a definition are ever compiled. What comes from the state, a model or a tool is
data, also when it begins with `$`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from registry.base import Json
from registry.graph import grammar
from registry.graph.paths import ABSENT, ExpressionError, Path, Slots
from registry.graph.values import equal, truth
from registry.jsontext import compact

#: Compiled expressions kept; a definition rarely holds more than a few dozen.
_KEPT: Final = 2048

#: `{$`, then everything up to the next `}`.
_PART: Final = re.compile(r"\{(\$[^}]*)\}")


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression. It holds no state: threads may share it."""

    text: str
    _term: grammar.Term = field(repr=False)

    def evaluate(self, slots: Slots) -> Json:
        """The value. It may be a part of the slots themselves, so whoever changes it copies it first.

        Raises:
            ExpressionError: `unknown_path`.
        """
        try:
            return self._term.evaluate(slots)
        except grammar.Unread as unread:
            path = unread.path
            raise ExpressionError("unknown_path", path.explain(slots), self.text, path.column) from None

    def holds(self, slots: Slots) -> bool:
        """The truth of the value; an error is false, as for an edge's `when`."""
        try:
            return truth(self._term.evaluate(slots))
        except grammar.Unread:
            return False

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every path in it, those inside `exists` and `length` too."""
        return self._term.paths

    @property
    def path(self) -> Path | None:
        """The path when the expression is nothing but one path; a parenthesis makes it more than that."""
        return self._term.path

    @property
    def literal(self) -> str | None:
        """The text when the expression is nothing but one text, in parentheses or not."""
        return self._term.text

    @property
    def state_key(self) -> str | None:
        """The key when the expression is exactly one state key, as `messages` of a model node has to be."""
        path = self.path
        return path.state_key if path and len(path.steps) == 1 else None


@lru_cache(maxsize=_KEPT)
def compile(text: str) -> Expression:  # noqa: A001 -- the word people look for, used as expressions.compile
    """Compiles an expression; the latest ones are kept.

    Raises:
        ExpressionError: `expr_syntax`.
    """
    return Expression(text, grammar.parse(text))


def is_expression(text: Json) -> bool:
    """Whether a value written in a definition is an expression: a text that starts with `$` and not with `$$`."""
    return isinstance(text, str) and text.startswith("$") and not text.startswith("$$")


def evaluate_value(value: Json, slots: Slots, *, literal_on_error: bool = False) -> Json:
    """A value of a definition with every expression in it, at any depth, replaced by what it gives.

    A text that starts with `$$` loses its first `$`. Keys are kept as they are.

    Args:
        literal_on_error: a text that fails stays as written, as in `core:end.output`.

    Raises:
        ExpressionError: the first text that does not parse or reads what is not there.
    """
    if isinstance(value, dict):
        return {key: evaluate_value(item, slots, literal_on_error=literal_on_error) for key, item in value.items()}
    if isinstance(value, list):
        return [evaluate_value(item, slots, literal_on_error=literal_on_error) for item in value]
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    if value.startswith("$$"):
        return value[1:]
    try:
        return compile(value).evaluate(slots)
    except ExpressionError:
        if literal_on_error:
            return value
        raise


def evaluate_patch(value: Json, slots: Slots) -> Json:
    """A value of a patch: as `evaluate_value`, and `{$...}` parts of the other texts are filled in as plain text.

    Raises:
        ExpressionError: as `evaluate_value`. A part that fails stays as written instead.
    """
    if isinstance(value, dict):
        return {key: evaluate_patch(item, slots) for key, item in value.items()}
    if isinstance(value, list):
        return [evaluate_patch(item, slots) for item in value]
    if isinstance(value, str) and not value.startswith("$"):
        return render(value, slots, plain=True)
    return evaluate_value(value, slots)


def render(text: str, slots: Slots, plain: bool) -> str:
    """The text with each `{$...}` part replaced; a part that fails stays, and what is inserted is not scanned again.

    Args:
        plain: texts go in bare, as in patches; else with their quotes, as in prompts. Other values are compact JSON.
    """

    def filled(match: re.Match[str]) -> str:
        try:
            value = compile(match[1]).evaluate(slots)
        except ExpressionError:
            return match[0]
        return value if plain and isinstance(value, str) else compact(value)

    return _PART.sub(filled, text)


def parts(text: str) -> Iterator[str]:
    """The expressions of the `{$...}` parts of a text, in order."""
    return (match[1] for match in _PART.finditer(text))


__all__ = [
    "ABSENT",
    "Expression",
    "ExpressionError",
    "Path",
    "Slots",
    "compile",
    "equal",
    "evaluate_patch",
    "evaluate_value",
    "is_expression",
    "parts",
    "render",
    "truth",
]
