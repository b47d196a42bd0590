"""Whether a value is a JSON Schema that a run can check answers with."""

from typing import Any

from registry.base import Json
from registry.graph.values import kind


def fault(schema: Json) -> str | None:
    """What is wrong with a JSON Schema object of draft 2020-12; None when it can be used.

    References are looked up in the schema itself: one that leads nowhere, or outside, would fail the first check of an
    answer, so it is a fault now. So is a pattern that only a backtracking engine can run, which an answer could hold.
    """
    if not isinstance(schema, dict):
        return f"must be a JSON Schema object, found {kind(schema)}"
    import jsonschema

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
        return f"is no valid JSON Schema: {where.lstrip('.') or 'it'}: {error.message[:200]}"
    return _unusable(schema)


def _unusable(schema: dict[str, Json]) -> str | None:
    """What no check of a value could do: follow a reference that leads nowhere, run a pattern in bounded time."""
    import referencing.exceptions
    from referencing.jsonschema import DRAFT202012

    from registry.linear import pattern_fault

    root = DRAFT202012.create_resource(schema)
    open_resources: list[tuple[Any, Any]] = [(root, referencing.Registry().resolver_with_root(root))]
    while open_resources:
        resource, resolver = open_resources.pop()
        part = resource.contents if isinstance(resource.contents, dict) else {}
        try:
            if isinstance(part.get("$ref"), str):
                resolver.lookup(part["$ref"])
        except referencing.exceptions.Unresolvable:
            return f"refers to {part['$ref'][:100]!r}, which is not in this schema"
        for pattern in (*(part.get("patternProperties") or {}), *([part["pattern"]] if "pattern" in part else [])):
            if fault := pattern_fault(pattern):
                return f"has the pattern {pattern[:100]!r}, which {fault}"
        open_resources += [(inner, resolver.in_subresource(inner)) for inner in resource.subresources()]
    return None
