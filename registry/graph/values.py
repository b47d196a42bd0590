"""What JSON values mean to the graph language: truth, equality, order (spec: engine 3.2). Nothing here raises."""

from typing import Any

from registry.base import Json


def truth(value: Json) -> bool:
    """False for `false`, `0`, `""` and `null`; true for all else, an empty list or object too."""
    if value is None or value is False or value == "":
        return False
    return not (_is_number(value) and value == 0)


def equal(a: Json, b: Json) -> bool:
    """By type and value: `2` equals `2.0`, `true` is not `1`, lists by item, objects by key in any order.

    Walks with a list of its own, so that a value of any depth is compared without recursion.
    """
    open_pairs = [(a, b)]
    while open_pairs:
        left, right = open_pairs.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            open_pairs.extend((value, right[key]) for key, value in left.items())
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            open_pairs.extend(zip(left, right, strict=True))
        elif not _same_scalar(left, right):
            return False
    return True


def ordered(a: Json, b: Json) -> bool:
    """Whether the two have an order: number with number, text with text. Every other pair compares as false."""
    return (_is_number(a) and _is_number(b)) or (isinstance(a, str) and isinstance(b, str))


def kind(value: Json) -> str:
    """The kind of a value in words, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, list):
        return "a list"
    return "an object" if isinstance(value, dict) else f"a {type(value).__name__}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same_scalar(a: Json, b: Json) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if _is_number(a) and _is_number(b):
        return bool(a == b)
    return type(a) is type(b) and bool(a == b)
