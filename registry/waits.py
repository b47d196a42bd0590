"""What the other side of an HTTP request says of when to come again."""

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

#: The longest wait that is believed, in seconds.
LONGEST_S: Final = 86_400.0


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the other side asks to wait, from `retry-after-ms` or `Retry-After` (seconds or a date)."""
    named = {name.lower(): value.strip() for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(named[name]) / unit
        except (KeyError, ValueError):
            continue
        return seconds if 0 <= seconds <= LONGEST_S else None
    try:
        until = parsedate_to_datetime(named["retry-after"]).timestamp()
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    return min(max(0.0, until - time.time()), LONGEST_S)
