"""JSON types, required fields and unknown fields: small shapes that describe a definition, and report what differs.

A shape is a function of a value and its path. `own` stands where a code of its own reports the field.
"""

from collections.abc import Callable, Mapping, Sequence

from registry.base import Json
from registry.graph.checks.draft import is_integer, is_positive
from registry.graph.findings import Findings, quoted
from registry.graph.limits import GraphLimits

Shape = Callable[[Json, str, Findings], None]
#: A bound of the language, or one that the installation sets.
Bound = int | Callable[[GraphLimits], int]


def _bound(bound: Bound | None, found: Findings) -> int | None:
    return bound(found.limits) if callable(bound) else bound


def own(value: Json, path: str, found: Findings) -> None:
    """Anything here: another check judges it, or it is free-form."""


def text(*, shortest: int = 0, longest: Bound | None = None) -> Shape:
    def check(value: Json, path: str, found: Findings) -> None:
        most = _bound(longest, found)
        if isinstance(value, str) and shortest <= len(value) and (most is None or len(value) <= most):
            return
        wanted = "a text"
        if most is not None:
            wanted += f" of {shortest} to {most} characters" if shortest else f" of at most {most} characters"
        elif shortest:
            wanted += " that is not empty"
        if not isinstance(value, str):
            found.shape(path, wanted, value)
        else:
            found.add("definition_shape", path, f"must be {wanted}, found {len(value)}")

    return check


def boolean(value: Json, path: str, found: Findings) -> None:
    if not isinstance(value, bool):
        found.shape(path, "true or false", value)


def integer(low: int) -> Shape:
    def check(value: Json, path: str, found: Findings) -> None:
        if not is_integer(value, low):
            found.shape(path, f"a whole number of at least {low}", value)

    return check


def number(low: float | None = None, high: float | None = None) -> Shape:
    wanted = "a number" if low is None or high is None else f"a number from {low} to {high}"

    def check(value: Json, path: str, found: Findings) -> None:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not fits or (low is not None and value < low) or (high is not None and value > high):
            found.shape(path, wanted, value)

    return check


def positive(value: Json, path: str, found: Findings) -> None:
    if not is_positive(value):
        found.shape(path, "a number above 0", value)


def choice(*options: str) -> Shape:
    def check(value: Json, path: str, found: Findings) -> None:
        if value not in options:
            found.shape(path, "one of " + ", ".join(options), value)

    return check


def nothing_or(shape: Shape) -> Shape:
    """The shape, or null."""

    def check(value: Json, path: str, found: Findings) -> None:
        if value is not None:
            shape(value, path, found)

    return check


def text_or(shape: Shape, kind: type, wanted: str) -> Shape:
    """A text, or a value of the kind that the shape looks into."""

    def check(value: Json, path: str, found: Findings) -> None:
        if isinstance(value, kind):
            shape(value, path, found)
        elif not isinstance(value, str):
            found.shape(path, f"a text or {wanted}", value)

    return check


def many(shape: Shape, wanted: str, *, most: Bound | None = None) -> Shape:
    """A list; `wanted` says of what."""

    def check(value: Json, path: str, found: Findings) -> None:
        if not isinstance(value, list):
            found.shape(path, f"a list of {wanted}", value)
            return
        bound = _bound(most, found)
        if bound is not None and len(value) > bound:
            found.add("definition_shape", path, f"must be a list of at most {bound} {wanted}, found {len(value)}")
        for index, item in enumerate(value):
            shape(item, f"{path}[{index}]", found)

    return check


def mapping(shape: Shape, wanted: str) -> Shape:
    """An object with keys of the writer's own choice."""

    def check(value: Json, path: str, found: Findings) -> None:
        if not isinstance(value, dict):
            found.shape(path, f"an object of {wanted}", value)
            return
        for key, item in value.items():
            shape(item, f"{path}.{key}", found)

    return check


def record(fields: Mapping[str, Shape], required: tuple[str, ...] = ()) -> Shape:
    """An object with these fields and no others; keys starting `x-` are notes of other tools."""
    known = list(fields)

    def check(value: Json, path: str, found: Findings) -> None:
        if not isinstance(value, dict):
            found.shape(path, "an object", value)
            return
        for key, item in value.items():
            if key in fields:
                fields[key](item, joined(path, key), found)
            elif not str(key).startswith("x-"):
                found.add(
                    "unknown_field", joined(path, key), f"unknown field {quoted(str(key))}{hint(found, key, known)}"
                )
        for key in required:
            if key not in value:
                found.add("definition_shape", joined(path, key), "is required and missing")

    return check


def joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else str(key)


def hint(found: Findings, key: str, known: Sequence[str]) -> str:
    """The nearest known field; without one all of them when they are few."""
    close = found.nearest(key, known)
    if close or not known or len(known) > 12:
        return close or "; notes of your own begin with x-"
    return "; known here: " + ", ".join(known)
