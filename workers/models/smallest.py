"""The smallest value that fits a JSON Schema: what the stand-in answers where a structured answer is wanted.

Each branch is built from what the schema demands and judged by the validator itself, so that nothing is handed out that
does not fit. A schema too clever for this (a pattern, a condition) has no value here: its script must name one.
"""

from collections.abc import Iterator
from itertools import islice

from registry import schemas
from registry.base import Json
from registry.jsontext import compact

#: Parts visited, levels followed through references, items a list may be asked to hold.
MAX_PARTS, MAX_LEVELS, MAX_ITEMS = 2_000, 24, 1_000

#: Texts tried where a pattern or a format stands in the way.
TEXTS = ("a", "A", "0", "1", "a1", "aa", "1.0.0", "stand-in", "Stand-in", "2026-01-01", "00:00", "#000000", "en", "/a")
FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "stand-in@example.com",
    "uri": "https://example.com/",
    "hostname": "example.com",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "ipv4": "192.0.2.1",
}


def smallest(schema: dict[str, Json]) -> Json:
    """A smallest value of a schema, the same each time.

    Raises:
        LookupError: when none of the values tried fits.
    """
    try:
        found = _Values(schema).fitting(schema, 0, 1)
    except (TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        found = []  # keywords of a kind no schema has: as good as no value
    if not found:
        raise LookupError("no small value fits the schema")
    return found[0]


def fits(schema: dict[str, Json], value: Json) -> bool:
    """Whether the value is valid; a schema that cannot be used fits nothing."""
    return _Values(schema).fits(schema, value)


class _Values:
    """Candidates of a schema, smaller ones first; local references are read in the whole schema."""

    def __init__(self, root: dict[str, Json]) -> None:
        self._root = root
        self._parts = 0
        self._validator = schemas.validator(root)

    def fitting(self, schema: Json, level: int, count: int) -> list[Json]:
        """The first values of a part that fit that part."""
        return list(islice((value for value in self.of(schema, level) if self.fits(schema, value)), count))

    def fits(self, schema: Json, value: Json) -> bool:
        """Whether a value is valid under a part of the schema; a part that cannot be used fits nothing."""
        try:
            return bool(self._validator.evolve(schema=schema).is_valid(value))
        except Exception:  # a broken schema raises whatever its validator stumbles over
            return False

    def of(self, schema: Json, level: int) -> Iterator[Json]:
        self._parts += 1
        if level > MAX_LEVELS or self._parts > MAX_PARTS:
            return
        if not isinstance(schema, dict):
            yield from [None] if schema is not False else []
            return
        schema = self._merged(schema)
        if "const" in schema:
            yield schema["const"]
        elif isinstance(schema.get("enum"), list):
            yield from sorted(schema["enum"], key=lambda value: len(compact(value)))
        elif branches := schema.get("anyOf") or schema.get("oneOf"):
            rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
            yield from self._branches([_and(rest, branch) for branch in branches if isinstance(branch, dict)], level)
        else:
            yield from self._typed(schema, level)
        yield from [schema["default"]] if "default" in schema else []
        yield from schema["examples"] if isinstance(schema.get("examples"), list) else []

    def _merged(self, schema: dict[str, Json]) -> dict[str, Json]:
        """References and `allOf` folded into the schema itself."""
        for _ in range(MAX_LEVELS):
            self._parts += 1
            if self._parts > MAX_PARTS:
                break
            if isinstance(schema.get("$ref"), str):
                rest = {key: value for key, value in schema.items() if key != "$ref"}
                schema = _and(self._target(schema["$ref"]), rest)
            elif isinstance(schema.get("allOf"), list):
                parts = [part for part in schema["allOf"] if isinstance(part, dict)]
                schema = {key: value for key, value in schema.items() if key != "allOf"}
                for part in parts:
                    schema = _and(schema, self._merged(part))
            else:
                break
        return schema

    def _target(self, reference: str) -> dict[str, Json]:
        found: Json = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            found = found.get(step) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}

    def _branches(self, branches: list[dict[str, Json]], level: int) -> Iterator[Json]:
        found = [value for branch in branches for value in self.fitting(branch, level + 1, 2)]
        yield from sorted(found, key=lambda value: len(compact(value)))

    def _typed(self, schema: dict[str, Json], level: int) -> Iterator[Json]:
        kinds = schema.get("type", _implied(schema))
        if isinstance(kinds, list):
            yield from self._branches([{**schema, "type": kind} for kind in kinds], level)
        elif kinds == "object":
            yield from self._objects(schema, level)
        elif kinds == "array":
            yield from self._lists(schema, level)
        elif kinds == "string":
            yield from _texts(schema)
        elif kinds in ("integer", "number"):
            yield from _numbers(schema)
        elif kinds == "boolean":
            yield from (False, True)
        else:
            yield None

    def _objects(self, schema: dict[str, Json], level: int) -> Iterator[Json]:
        known = schema.get("properties") or {}
        names = [name for name in schema.get("required") or [] if isinstance(name, str)]
        extra = [name for name in known if name not in names]
        names += extra[: max(0, (schema.get("minProperties") or 0) - len(names))]
        parts = [self.fitting(known.get(name, {}), level + 1, 1) for name in names]
        if all(parts):
            yield {name: part[0] for name, part in zip(names, parts, strict=True)}

    def _lists(self, schema: dict[str, Json], level: int) -> Iterator[Json]:
        wanted = min(schema.get("minItems") or 0, MAX_ITEMS)
        heads = [
            value for head in (schema.get("prefixItems") or [])[:wanted] for value in self.fitting(head, level + 1, 1)
        ]
        missing = wanted - len(heads)
        tail = self.fitting(schema.get("items", {}), level + 1, missing)
        yield heads + tail[:1] * missing
        yield heads + tail
        if schema.get("contains") is not None:
            yield heads + tail[:1] * (missing - 1) + self.fitting(schema["contains"], level + 1, 1)


def _and(left: dict[str, Json], right: dict[str, Json]) -> dict[str, Json]:
    """Two schemas that must both hold, as far as required names, properties and bounds go."""
    both = {**left, **right}
    for key in ("properties", "required"):
        if key in left and key in right:
            mine, other = left[key], right[key]
            both[key] = {**mine, **other} if isinstance(mine, dict) else list(dict.fromkeys([*mine, *other]))
    return both


def _implied(schema: dict[str, Json]) -> str:
    """The type that the keywords speak of when none is named."""
    if schema.keys() & {"properties", "required", "minProperties"}:
        return "object"
    if schema.keys() & {"items", "minItems", "prefixItems", "contains"}:
        return "array"
    return "string" if schema.keys() & {"minLength", "pattern", "format"} else "null"


def _texts(schema: dict[str, Json]) -> Iterator[str]:
    least = min(schema.get("minLength") or 0, 100_000)
    named = FORMATS.get(schema.get("format") or "")
    if not named:
        yield "a" * least
    for text in [named] if named else TEXTS:
        yield text + "a" * (least - len(text))
        yield text + "0" * (least - len(text))


def _numbers(schema: dict[str, Json]) -> Iterator[Json]:
    step = schema.get("multipleOf") or 1
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    yield 0
    for edge in (low, high):
        if isinstance(edge, (int, float)):
            near = edge // step * step
            yield from (edge, near, near + step, near - step)
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        yield (low + high) / 2
