"""JSON as bytes that mean one thing: the canonical form digests are made of, and strict reading.

RFC 8785 libraries refuse integers beyond 2^53, so the canonical form here is the standard library's: sorted keys, no
blanks, UTF-8, no NaN.
"""

import hashlib
import json
import math
from typing import Any

from registry.base import Json

#: How deep objects and lists may nest wherever JSON enters (spec: engine 21, `jsonDepth`).
MAX_DEPTH = 100
# Made once: `json.dumps` makes a new one for each call.
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_canonical = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)


class JsonFault(ValueError):
    """The text is no JSON we take; the message says why."""


def compact(value: Json) -> str:
    """JSON without blanks, characters unescaped, keys in their own order."""
    return _compact.encode(value)


def canonical(value: Json) -> str:
    """Compact JSON with sorted keys: equal values give equal text."""
    return _canonical.encode(value)


def digest(value: Json) -> str:
    """sha256 over the canonical form, in hex."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


def parse(text: str | bytes, *, max_depth: int = MAX_DEPTH, twice: bool = False) -> Json:
    """Reads JSON strictly: no NaN or Infinity, no key twice in one object, no number beyond a double, bounded depth.

    Args:
        twice: takes a key that stands twice, and the last of its values; for what others answer.

    Raises:
        JsonFault: with a message that says where or what.
    """
    try:
        pairs = None if twice else _object
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=_constant, parse_float=_float)
    except RecursionError:
        raise JsonFault(f"nested deeper than {max_depth} levels") from None
    except UnicodeDecodeError as error:
        raise JsonFault(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise JsonFault(f"not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except JsonFault:
        raise
    except ValueError as error:  # an integer of more digits than Python reads
        raise JsonFault(f"not JSON: {error}") from None
    if depth(value, stop=max_depth) > max_depth:
        raise JsonFault(f"nested deeper than {max_depth} levels")
    return value


def depth(value: Json, *, stop: int = MAX_DEPTH) -> int:
    """How deep a value nests; a scalar is 0. Counts no further than one past `stop`; never recurses."""
    level, layer = 0, [value]
    while True:
        inner = [v for item in layer if isinstance(item, (dict, list)) for v in _children(item)]
        if not any(isinstance(item, (dict, list)) for item in layer):
            return level
        level += 1
        if level > stop:
            return level
        layer = inner


def has_lone_surrogate(value: Json) -> bool:
    """Whether any text or key in the value cannot be written as UTF-8."""
    try:
        compact(value).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _children(item: Any) -> Any:
    return item.values() if isinstance(item, dict) else item


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise JsonFault(f"the key {twice!r} stands twice in one object")
    return result


def _constant(word: str) -> Json:
    raise JsonFault(f"{word} is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise JsonFault("a number is beyond the range of a double")
    return value
