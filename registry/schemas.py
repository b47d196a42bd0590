"""Checking values against JSON Schemas that other people wrote: draft 2020-12, in bounded time, nothing ever fetched.

What does it is loaded with the first of them: most commands meet none, and it costs as much as all of typer.
"""

from typing import TYPE_CHECKING

from registry.base import Json

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

    from registry.linear import Flaw


def flaws(schema: dict[str, Json], value: Json, *, most: int = 1) -> "list[Flaw]":
    """Where a value breaks a schema, the first of them; empty: it fits. A reference that leads out of the schema is an
    error when it is met."""
    from registry import linear

    return linear.flaws(schema, value, most)


def validator(schema: dict[str, Json]) -> "Draft202012Validator":
    """Checks values against a schema, in one go: what it follows is counted from here on."""
    from registry import linear

    found: Draft202012Validator = linear.validator(schema)
    return found


def at(path: tuple[str | int, ...]) -> str:
    """A path as people read it: `tasks[2].key`; empty for the whole value."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
