"""Checking values against JSON Schemas that other people wrote: draft 2020-12, and nothing is ever fetched for one.

jsonschema is loaded with the first of them: most commands meet none, and it costs as much as all of typer.
"""

from typing import TYPE_CHECKING

from registry.base import Json

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


def validator(schema: dict[str, Json]) -> "Draft202012Validator":
    """Checks values against a schema; a reference that leads out of it is an error when it is met."""
    import jsonschema
    import referencing

    return jsonschema.Draft202012Validator(schema, registry=referencing.Registry())
