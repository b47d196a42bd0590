"""A form made of a JSON Schema, and the payload made of what was filled in.

What a form can ask becomes a field; whatever it cannot is asked for as JSON. The schema itself is checked where every
answer is (`orchestrator.signals`): here text only becomes the type that a field has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from registry.base import Json
from registry.errors import Refused
from registry.jsontext import JsonFault, parse

Kind = Literal["text", "long", "number", "integer", "truth", "choice", "choices", "json"]

#: Fields one form may have; a larger schema is answered as JSON.
MOST: Final = 30
#: The name of the one field of a schema that is no object.
WHOLE: Final = "answer"


@dataclass(frozen=True)
class Field:
    name: str
    label: str
    kind: Kind
    required: bool
    help: str | None = None
    #: Of a choice: what is written beside each, and what it stands for.
    options: Sequence[tuple[str, Json]] = ()
    #: What stands in it at first; of a choice its place in the list.
    value: str = ""


def fields(schema: Mapping[str, Json]) -> list[Field]:
    """The fields of a form for a schema; none when it takes no answer but an empty object."""
    properties = schema.get("properties")
    if schema.get("type") == "object" and isinstance(properties, dict) and len(properties) <= MOST:
        needed = schema.get("required") or []
        return [_field(name, one, name in needed) for name, one in properties.items()]
    if schema.get("type") in ("string", "number", "integer", "boolean"):
        return [_field(WHOLE, dict(schema), True)]
    return [Field(WHOLE, "Answer, as JSON", "json", True, value="{}")]


def payload(schema: Mapping[str, Json], given: Mapping[str, Json]) -> Json:
    """What was filled in, as the schema's types; fields left empty that may be are left out.

    Args:
        given: field name -> text, or a list of texts of a field with several choices.

    Raises:
        Refused: `resume_validation_failed`, naming the field.
    """
    asked = fields(schema)
    if [field.name for field in asked] == [WHOLE] and not _is_object(schema):
        return _value(asked[0], given.get(WHOLE))
    found = {}
    for field in asked:
        value = _value(field, given.get(field.name))
        if value is not _NOTHING:
            found[field.name] = value
    return found


_NOTHING: Final[Any] = object()


def _is_object(schema: Mapping[str, Json]) -> bool:
    return schema.get("type") == "object" and isinstance(schema.get("properties"), dict)


def _field(name: str, schema: Json, required: bool) -> Field:
    known = schema if isinstance(schema, dict) else {}
    facts: dict[str, Any] = {
        "name": name,
        "label": str(known.get("title") or name),
        "required": required,
        "help": str(known["description"]) if known.get("description") else None,
    }
    items = known.get("items")
    if isinstance(known.get("enum"), list):
        options = _options(known["enum"])
        chosen = [str(place) for place, (_, value) in enumerate(options) if value == known.get("default")]
        return Field(kind="choice", options=options, value=chosen[0] if chosen else "", **facts)
    if known.get("type") == "array" and isinstance(items, dict) and isinstance(items.get("enum"), list):
        return Field(kind="choices", options=_options(items["enum"]), **facts)
    if known.get("type") == "string":
        short = known.get("format") or (known.get("maxLength") or 1_000) <= 100
        return Field(kind="text" if short else "long", value=_default(known), **facts)
    plain: dict[str, Kind] = {"boolean": "truth", "integer": "integer", "number": "number"}
    return Field(kind=plain.get(str(known.get("type")), "json"), value=_default(known), **facts)


def _default(schema: Mapping[str, Json]) -> str:
    value = schema.get("default")
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _options(values: Sequence[Json]) -> list[tuple[str, Json]]:
    return [(str(value), value) for value in values]


def _value(field: Field, given: Json) -> Json:
    if field.kind == "choices":
        chosen = given if isinstance(given, list) else [given] if given else []
        return [_chosen(field, one) for one in chosen] if chosen or field.required else _NOTHING
    text = given if isinstance(given, str) else ""
    if field.kind == "truth":
        return text == "true" if text or field.required else _NOTHING
    if not text.strip():
        return "" if field.required and field.kind in ("text", "long") else _NOTHING if not field.required else None
    if field.kind == "choice":
        return _chosen(field, text)
    if field.kind in ("text", "long"):
        return text
    return _parsed(field, text)


def _chosen(field: Field, place: Json) -> Json:
    """A choice by its place in the list: values of a schema may be of any type."""
    if isinstance(place, str) and place.isdecimal() and int(place[:6]) < len(field.options):
        return field.options[int(place[:6])][1]
    raise Refused(f"{field.label[:60]!r}: choose one of the list", code="resume_validation_failed")


def _parsed(field: Field, text: str) -> Json:
    try:
        value = parse(text.encode("utf-8", "surrogatepass"))
    except JsonFault as fault:
        wanted = "JSON" if field.kind == "json" else "a number"
        raise Refused(f"{field.label[:60]!r} has to be {wanted}: {fault}", code="resume_validation_failed") from None
    return value
