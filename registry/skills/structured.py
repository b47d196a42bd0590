"""JSON Schemas that a model wrote, and answers that should fit them: judged without fetching and in bounded time.

Patterns run on the linear engine, references stay inside of the schema, and everything is counted before it is used.
"""

from collections.abc import Iterator
from typing import Any, Final

import jsonschema
import referencing
from jsonschema.exceptions import SchemaError
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from registry.base import Json
from registry.errors import Detail
from registry.jsontext import JsonFault, compact, parse
from registry.linear import ENDLESS, MULTIPLIED, REFERENCES, Multiplied, flaws, pattern_fault, validator

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
MAX_BYTES: Final = 32 * 1024
#: Schemas within schemas, and properties in all of them together.
MAX_DEPTH: Final = 12
MAX_PROPERTIES: Final = 200
MAX_MESSAGES: Final = 10
#: What is wrong with a schema rather than a value.
_OF_THE_SCHEMA: Final = (ENDLESS, MULTIPLIED)
#: Keywords whose value is a schema, a list of schemas, schemas by name. Everything else is data.
_ONE: Final = (
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_MANY: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_UNEVALUATED: Final = ("unevaluatedItems", "unevaluatedProperties")
_NAMED: Final = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")


def schema_faults(schema: dict[str, Json]) -> list[Detail]:
    """What keeps a schema from being used; empty: nothing."""
    if schema.get("type") != "object":
        return [Detail("schema.type", 'the root has to be of type "object"')]
    if (size := len(compact(schema).encode())) > MAX_BYTES:
        return [Detail("schema", f"has {size} bytes, and {MAX_BYTES} is the most")]
    if str(schema.get("$schema", DIALECT)).rstrip("#") != DIALECT:
        return [Detail("schema.$schema", "has to be JSON Schema 2020-12")]
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return [Detail(_at(error.absolute_path), error.message[:300])]
    except RecursionError:  # in a pattern, which the library gives to the standard engine to look at
        return [Detail("schema", "has a pattern that nests too deep")]
    return [*_counted(schema), *_patterns(schema), *_references(schema)][:MAX_MESSAGES]


def answer_faults(schema: dict[str, Json], value: Json) -> list[Detail]:
    """Where a value breaks a schema that was found good."""
    found = flaws(schema, value, MAX_MESSAGES)
    return [Detail("schema" if f.message in _OF_THE_SCHEMA else _at(f.path, "value"), f.message) for f in found]


def read_answer(text: str) -> tuple[Json, str | None]:
    """The JSON of an answer: all of it, else its first fenced block, else what stands between its outermost braces."""
    fault = "is empty"
    for candidate in _candidates(text):
        try:
            return parse(candidate), None
        except JsonFault as error:
            fault = str(error)
    return None, f"the answer {fault}" if fault == "is empty" else f"the answer is {fault}"


def _candidates(text: str) -> Iterator[str]:
    if text.strip():
        yield text.strip()
    parts = text.split("```")
    if len(parts) >= 3:
        head, _, rest = parts[1].partition("\n")
        yield rest if head.strip().isalnum() or not head.strip() else parts[1]
    begin, end = text.find("{"), text.rfind("}")
    if 0 <= begin < end:
        yield text[begin : end + 1]


def _subschemas(schema: Json, path: str = "schema", depth: int = 1) -> Iterator[tuple[dict[str, Json], str, int]]:
    """Every schema in a schema, with its path and how deep it lies."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH + 1:
        return
    yield schema, path, depth
    for key in _ONE:
        yield from _subschemas(schema.get(key), f"{path}.{key}", depth + 1)
    for key in _MANY:
        for place, one in enumerate(schema.get(key) or ()):
            yield from _subschemas(one, f"{path}.{key}[{place}]", depth + 1)
    for key in _NAMED:
        for name, one in (schema.get(key) or {}).items():
            yield from _subschemas(one, f"{path}.{key}.{name[:60]}", depth + 1)


def _counted(schema: dict[str, Json]) -> list[Detail]:
    parts = list(_subschemas(schema))
    if too_deep := next((path for _, path, depth in parts if depth > MAX_DEPTH), None):
        return [Detail(too_deep, f"lies deeper than {MAX_DEPTH} schemas")]
    number = sum(len(part.get("properties") or {}) for part, _, _ in parts)
    if number > MAX_PROPERTIES:
        return [Detail("schema", f"has {number} properties, and {MAX_PROPERTIES} is the most")]
    return []


def _patterns(schema: dict[str, Json]) -> Iterator[Detail]:
    parts = list(_subschemas(schema))
    for part, path, _ in parts:
        patterns = {"pattern": part["pattern"]} if "pattern" in part else {}
        patterns |= {f"patternProperties.{name[:60]}": name for name in part.get("patternProperties") or {}}
        for keyword, pattern in patterns.items():
            if fault := pattern_fault(pattern):
                yield Detail(f"{path}.{keyword}", fault)
    both = [path for part, path, _ in parts if "unevaluatedProperties" in part]
    if both and any("patternProperties" in part for part, _, _ in parts):
        yield Detail(both[0], "unevaluatedProperties cannot stand beside patternProperties here")


def _uncounted(parts: list[tuple[dict[str, Json], str, int]]) -> Detail | None:
    """The library follows references for two keywords by a way of its own, which nothing here counts."""
    blind = [f"{path}.{word}" for part, path, _ in parts for word in _UNEVALUATED if word in part]
    refers = any(word in part for part, _, _ in parts for word in REFERENCES)
    return Detail(blind[0], "cannot stand in a schema with references here") if blind and refers else None


def _references(schema: dict[str, Json]) -> Iterator[Detail]:
    parts = list(_subschemas(schema))
    if blind := _uncounted(parts):
        yield blind
        return
    resolver = referencing.Registry().with_resource("", DRAFT202012.create_resource(schema)).resolver()
    for part, path, _ in parts:
        for keyword in ("$id", "$anchor", "$dynamicAnchor", "$vocabulary"):
            if keyword in part:
                yield Detail(f"{path}.{keyword}", "is not taken here; refer by path, such as #/$defs/name")
        for keyword in REFERENCES:
            if keyword in part and (words := _lost(part[keyword], resolver)):
                yield Detail(f"{path}.{keyword}", words)
    try:
        validator(schema).is_valid({})
    except RecursionError:
        yield Detail("schema", ENDLESS)
    except Multiplied:
        yield Detail("schema", MULTIPLIED)
    except Exception:  # a reference into the middle of nowhere; each was told above
        return


def _lost(reference: Json, resolver: Any) -> str | None:
    """Why a reference cannot be followed; None: it can."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return "has to stay inside of the schema: it begins with #"
    try:
        found = resolver.lookup(reference).contents
    except Unresolvable:
        return f"{reference[:100]!r} points nowhere"
    return None if isinstance(found, (dict, bool)) else f"{reference[:100]!r} points at no schema"


def _at(path: Any, root: str = "schema") -> str:
    return root + "".join(f"[{step}]" if isinstance(step, int) else f".{str(step)[:60]}" for step in path)


__all__ = ["answer_faults", "pattern_fault", "read_answer", "schema_faults"]
