"""What the headers of an answer say about waiting: `Retry-After`, and the counters many providers send along."""

import re
from collections.abc import Mapping
from typing import Final

from registry.waits import LONGEST_S, retry_after

#: What providers count: `x-ratelimit-remaining-requests`, and the same for tokens.
COUNTED: Final = ("requests", "tokens")
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_UNIT_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}


def wait_of(headers: Mapping[str, str], *, refused: bool) -> float | None:
    """Seconds to wait before the next call; None: nothing is said.

    Args:
        refused: the answer is a refusal for too many calls: then a counter's reset says when the next may come, even
            where it does not say that nothing is left.
    """
    named = {name.lower(): value.strip() for name, value in headers.items()}
    asked = retry_after(named)
    return asked if asked is not None else _reset(named, refused=refused)


def _reset(named: Mapping[str, str], *, refused: bool) -> float | None:
    """Until the counters that are used up begin anew: the latest of them; of a refusal that says of none, the first."""
    resets = {what: duration(named.get(f"x-ratelimit-reset-{what}", "")) for what in COUNTED}
    empty = [wait for what, wait in resets.items() if wait is not None and _is_none(named, what)]
    if empty:
        return max(empty)
    known = [wait for wait in resets.values() if wait is not None]
    return min(known) if refused and known else None


def _is_none(named: Mapping[str, str], what: str) -> bool:
    return named.get(f"x-ratelimit-remaining-{what}") == "0"


def duration(text: str) -> float | None:
    """Seconds of `6m0s`, `250ms` or a bare number; None: it says no time that can be believed."""
    parts = _PART.findall(text)
    if parts and "".join(map("".join, parts)) == text:
        seconds = sum(float(number) * _UNIT_S[unit] for number, unit in parts)
    else:
        try:
            seconds = float(text)
        except ValueError:
            return None
    return seconds if 0 <= seconds <= LONGEST_S else None
