"""A small memory of answers that stay good for a while; per process, the oldest forgotten first."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Cache(Generic[V]):
    def __init__(self, *, seconds: float, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._most = most
        self._now = now
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        with self._lock:
            found = self._kept.get(key)
            if found is None or found[0] <= self._now():
                self._kept.pop(key, None)
                return None
            return found[1]

    def put(self, key: Hashable, value: V) -> None:
        with self._lock:
            self._kept[key] = (self._now() + self._seconds, value)
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
