"""A transport for each call under way, kept for the next call.

A pool of connections looks at all of them for each request, twice, and asks the system about those that lie idle: with
250 calls under way that is several times the work of the call itself. Here a call takes the transport that was used
last, whose pool holds one connection, and nobody looks at the others; those that lie idle for too long are closed as
later calls end.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

import httpx2


class Transports(httpx2.BaseTransport):
    """Safe from any thread; as many connections as there are calls at once.

    Args:
        make: a transport that needs no more than one connection.
        idle_s: seconds after which one that nobody used is closed.
    """

    def __init__(self, make: Callable[[], httpx2.BaseTransport], idle_s: float) -> None:
        self._make = make
        self._idle_s = idle_s
        self._lock = threading.Lock()
        #: With the time since when each lies idle; the one used last is at the end.
        self._idle: deque[tuple[float, httpx2.BaseTransport]] = deque()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        mine = self._take()
        try:
            response = mine.handle_request(request)
        except BaseException:
            self._give_back(mine)
            raise
        assert isinstance(response.stream, httpx2.SyncByteStream)
        response.stream = _Held(response.stream, lambda: self._give_back(mine))
        return response

    def close(self) -> None:
        with self._lock:
            gone = [transport for _, transport in self._idle]
            self._idle.clear()
        for transport in gone:
            transport.close()

    def _take(self) -> httpx2.BaseTransport:
        with self._lock:
            if self._idle:
                return self._idle.pop()[1]
        return self._make()

    def _give_back(self, transport: httpx2.BaseTransport) -> None:
        now = time.monotonic()
        gone: list[httpx2.BaseTransport] = []
        with self._lock:
            self._idle.append((now, transport))
            while now - self._idle[0][0] > self._idle_s:
                gone.append(self._idle.popleft()[1])
        for one in gone:
            one.close()


class _Held(httpx2.SyncByteStream):
    """A body whose end gives its transport back, once."""

    def __init__(self, plain: httpx2.SyncByteStream, give_back: Callable[[], None]) -> None:
        self._plain = plain
        self._give_back: Callable[[], None] | None = give_back

    def __iter__(self) -> Iterator[bytes]:
        yield from self._plain

    def close(self) -> None:
        give_back, self._give_back = self._give_back, None
        try:
            self._plain.close()
        finally:
            if give_back is not None:
                give_back()
