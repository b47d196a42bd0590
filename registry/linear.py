"""JSON Schemas that somebody else wrote, checked in bounded time: a hostile pair of schema and value holds no worker.

Patterns run on the linear engine, references stay inside of the schema and are counted, nothing is fetched.
"""

import threading
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

import jsonschema
import referencing
from jsonschema.exceptions import ValidationError

from registry.base import Json

#: References one check follows: schemas that refer to two others, which refer to two others, double at each step.
MAX_FOLLOWED: Final = 20_000
#: Keywords that refer to another part of the schema.
REFERENCES: Final = ("$ref", "$dynamicRef")
ENDLESS: Final = "refers to itself without end"
MULTIPLIED: Final = f"its references multiply: more than {MAX_FOLLOWED} would have to be followed"


class Flaw(NamedTuple):
    """Where a value breaks a schema, and how; a flaw of the schema itself has no path."""

    path: tuple[str | int, ...]
    message: str


def flaws(schema: dict[str, Json], value: Json, most: int) -> list[Flaw]:
    """The first flaws of a value; empty: it fits.

    Raises:
        Exception: what the library stumbles over in a schema that was never checked itself.
    """
    try:
        found = islice(validator(schema).iter_errors(value), most)
        return [Flaw(tuple(error.absolute_path), error.message[:300]) for error in found]
    except RecursionError:
        return [Flaw((), ENDLESS)]
    except Multiplied:
        return [Flaw((), MULTIPLIED)]
    except Unusable as error:
        return [Flaw((), str(error))]


def pattern_fault(pattern: str) -> str | None:
    """Why the linear engine cannot run a pattern; None: it can."""
    import re2

    try:
        _compiled(pattern)
    except re2.error as error:
        words = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        return f"cannot be used: {words[:200]} (no look-around, no back-references)"
    return None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


class Unusable(Exception):
    """A pattern the linear engine cannot run; whoever takes a schema in asks `pattern_fault` first."""


def _matches(pattern: str, text: str) -> bool:
    if fault := pattern_fault(pattern):
        raise Unusable(f"the pattern {pattern[:100]!r} {fault}")
    return _compiled(pattern).search(text) is not None


# The library runs patterns on the standard engine, which a hostile pair of pattern and text holds for ever. These are
# the keywords of it that do, on the linear one.


def _pattern(_validator: Any, pattern: str, instance: Json, _schema: Json) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError(f"{instance[:100]!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Json], instance: Json, _schema: Json) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, schema in patterns.items():
        for name, value in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(value, schema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, extra: Json, instance: Json, schema: dict[str, Json]) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties") or {}, schema.get("patternProperties") or {}
    for name, value in instance.items():
        if name in known or any(_matches(pattern, name) for pattern in patterns):
            continue
        if extra is False:
            yield ValidationError(f"{name[:100]!r} is not expected here")
        else:
            yield from validator.descend(value, extra, path=name)


class Multiplied(Exception):
    """Control flow: one check has followed more references than any honest pair of schema and value needs."""


class _Followed(threading.local):
    """References the check under way in this thread has followed."""

    count = 0


_followed = _Followed()


def _counting(keyword: str) -> Any:
    """The library's own reading of a reference, counted."""
    follow = jsonschema.Draft202012Validator.VALIDATORS[keyword]

    def counted(validator: Any, reference: str, instance: Json, schema: Json) -> Iterator[Any]:
        _followed.count += 1
        if _followed.count > MAX_FOLLOWED:
            raise Multiplied
        yield from follow(validator, reference, instance, schema)

    return counted


@lru_cache(maxsize=1)
def _linear() -> Any:
    keywords = {
        **{keyword: _counting(keyword) for keyword in REFERENCES},
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    }
    return jsonschema.validators.extend(jsonschema.Draft202012Validator, keywords)  # type: ignore[no-untyped-call]


def validator(schema: dict[str, Json]) -> Any:
    """A validator for one check: from here on the references it follows are counted."""
    _followed.count = 0
    return _linear()(schema, registry=referencing.Registry())
