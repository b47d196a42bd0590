"""Small helpers that many tests share."""

import time
from collections.abc import Callable
from typing import TypeVar

import psutil

T = TypeVar("T")


def eventually(condition: Callable[[], T], seconds: float = 10, every: float = 0.02) -> T:
    """Waits until `condition` gives something true and returns that; fails with its last word after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(
                f"not within {seconds} s: {getattr(condition, '__qualname__', condition)} gave {found!r}"
            )
        time.sleep(every)


def alive(pid: int) -> bool:
    """Whether a process still runs; one that only waits to be buried does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
