"""The words of the cases: paths into a report, and what must stand there.

A path is keys and indexes (`output.content`, `messages[2].role`), `[*]` or a filter `[kind=think,data.closing=true]`
for all elements that match, and a last `#` for a length. Values compare by type and value; null also means "not there".
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

MISSING: Any = object()


def faults(report: Any, expect: dict[str, Any]) -> list[str]:
    """What differs, a line each."""
    found = ((path, look(report, path), want) for path, want in expect.items())
    return [f"{path}: {_shown(got)}, not {_shown(want)}" for path, got, want in found if not fits(got, want)]


def look(value: Any, path: str) -> Any:
    """What stands at a path: a list as soon as the path means several."""
    many = False
    for step in _steps(path):
        if step == "#":
            value, many = (len(value) if isinstance(value, (list, dict, str)) else MISSING), False
        elif step == "[*]" or "=" in step:
            value, many = [one for one in (value if isinstance(value, list) else []) if _matches(one, step)], True
        elif many and not step.startswith("["):
            value = [_one(each, step) for each in value]
        else:
            value, many = _one(value, step), False
    return [None if each is MISSING else each for each in value] if many else value


def fits(got: Any, want: Any) -> bool:
    """Whether what was found is what must stand there."""
    if isinstance(want, dict) and len(want) == 1 and (word := next(iter(want))).startswith("$"):
        return _WORDS[word](got, want[word])
    if want is None:
        return got is None or got is MISSING
    return got is not MISSING and same(got, want)


def same(a: Any, b: Any) -> bool:
    """Equal by type and value: 2 is 2.0, true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


def _steps(path: str) -> Iterator[str]:
    """Dots inside brackets part nothing."""
    for part in re.findall(r"(?:[^.\[]|\[[^\]]*\])+", path):
        yield from re.findall(r"\[[^\]]*\]|[^\[]+", part)


def _one(value: Any, step: str) -> Any:
    if not step.startswith("["):
        return value.get(step, MISSING) if isinstance(value, dict) else MISSING
    index = int(step[1:-1])
    return value[index] if isinstance(value, list) and -len(value) <= index < len(value) else MISSING


def _matches(value: Any, step: str) -> bool:
    if step == "[*]":
        return True
    return all(_text(look(value, key)) == want for key, want in (word.split("=", 1) for word in step[1:-1].split(",")))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is MISSING else json.dumps(value)


def _holds(got: Any, part: Any) -> bool:
    return part in got if isinstance(got, str) else any(same(each, part) for each in got)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda got, want: isinstance(got, (int, float)) and compare(got, want)


_WORDS: dict[str, Callable[[Any, Any], bool]] = {
    "$absent": lambda got, yes: (got is MISSING) is yes,
    "$startsWith": lambda got, text: isinstance(got, str) and got.startswith(text),
    "$contains": lambda got, part: isinstance(got, (str, list)) and _holds(got, part),
    "$lacks": lambda got, part: isinstance(got, (str, list)) and not _holds(got, part),
    "$anyOrder": lambda got, all_: isinstance(got, list) and sorted(map(_text, got)) == sorted(map(_text, all_)),
    "$distinct": lambda got, yes: isinstance(got, list) and (len(set(map(_text, got))) == len(got)) is yes,
    "$in": lambda got, some: any(same(got, each) for each in some),
    "$subset": lambda got, part: isinstance(got, dict) and all(fits(got.get(k, MISSING), v) for k, v in part.items()),
    "$gt": _ordered(lambda a, b: a > b),
    "$gte": _ordered(lambda a, b: a >= b),
    "$lt": _ordered(lambda a, b: a < b),
    "$lte": _ordered(lambda a, b: a <= b),
}


def _shown(value: Any) -> str:
    text = "nothing" if value is MISSING else json.dumps(value, ensure_ascii=False)
    return text if len(text) < 300 else f"{text[:300]}..."
