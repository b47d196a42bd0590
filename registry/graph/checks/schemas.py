"""Whether a value is a JSON Schema that a run can check answers with."""

from typing import Any

from registry.base import Json
from registry.graph.values import kind


def fault(schema: Json) -> str | None:
    """What is wrong with a JSON Schema object of draft 2020-12; None when it can be used.

    References are looked up in the schema itself: one that leads nowhere, or outside, would fail the first check of an
    answer, so it is a fault now.
    """
    if not isinstance(schema, dict):
        return f"must be a JSON Schema object, found {kind(schema)}"
    import jsonschema

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
        return f"is no valid JSON Schema: {where.lstrip('.') or 'it'}: {error.message[:200]}"
    lost = _lost_reference(schema)
    return f"refers to {lost[:100]!r}, which is not in this schema" if lost is not None else None


def _lost_reference(schema: dict[str, Json]) -> str | None:
    import referencing.exceptions
    from referencing.jsonschema import DRAFT202012

    root = DRAFT202012.create_resource(schema)
    open_resources: list[tuple[Any, Any]] = [(root, referencing.Registry().resolver_with_root(root))]
    while open_resources:
        resource, resolver = open_resources.pop()
        reference = resource.contents.get("$ref") if isinstance(resource.contents, dict) else None
        if isinstance(reference, str):
            try:
                resolver.lookup(reference)
            except referencing.exceptions.Unresolvable:
                return reference
        open_resources += [(inner, resolver.in_subresource(inner)) for inner in resource.subresources()]
    return None
