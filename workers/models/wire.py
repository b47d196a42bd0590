"""HTTP to a model that can be left: reads end at the call's deadline, or soon after the run was cancelled.

A model may think for a minute without sending a byte. The plain client would sit in one read for that long; here the
wait is cut into slices, and between them a cancelled run hangs up, so that its slot is free and the model stops too.
"""

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

from workers.models.transports import Transports

#: Seconds between looks whether a waiting call should stop, and the longest connect.
LOOK_S, CONNECT_S = 0.5, 10.0
#: Bytes an answer may have on the wire, and those one read asks for: whoever waits holds a buffer of that size.
MAX_BYTES, READ_BYTES = 16 * 1024 * 1024, 16 * 1024
#: Seconds a connection is kept for the next call.
IDLE_S = 30.0


class HungUp(Exception):
    """Control flow: the run was cancelled while its call waited."""


class TooLong(Exception):
    """The answer has more bytes than an answer may have."""


@dataclass
class Watch:
    """One call under way."""

    #: On the monotonic clock.
    until: float
    cancelled: Callable[[], bool]
    received: int = 0

    @property
    def left(self) -> float:
        return max(0.001, self.until - time.monotonic())


_current: ContextVar[Watch | None] = ContextVar("officina_model_call", default=None)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Every read of this thread inside belongs to this call."""
    token = _current.set(watch)
    try:
        yield
    finally:
        _current.reset(token)


def transport(base_url: str) -> httpx2.BaseTransport:
    """Connections to one model server, as many as there are calls at once. Proxies of the environment are honoured."""
    return Transports(partial(_Transport, _proxy(base_url)), IDLE_S)


def http_client(transport: httpx2.BaseTransport) -> httpx2.Client:
    """A client of these connections, as the SDK wants it; redirects are not followed."""
    return httpx2.Client(transport=transport, trust_env=False, follow_redirects=False)


@lru_cache(maxsize=1)
def trusted() -> ssl.SSLContext:
    """Whom connections trust; read once, and shared by a process and all it forks: it costs more than a call."""
    return httpx2.create_ssl_context()


def broken() -> type[Exception]:
    """What a connection raises that breaks off while an answer is read from it."""
    return httpx2.HTTPError


def timeout(watch: Watch) -> httpx2.Timeout:
    return httpx2.Timeout(watch.left, connect=min(CONNECT_S, watch.left))


def _proxy(base_url: str) -> str | None:
    parts = urlsplit(base_url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


class _Transport(httpx2.HTTPTransport):
    """One connection."""

    def __init__(self, proxy: str | None) -> None:
        one = httpx2.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=IDLE_S)
        super().__init__(proxy=proxy, limits=one, verify=trusted())
        # httpx2 hands no backend through; its pools take one, with a proxy or without.
        self._pool._network_backend = _Backend()


class _Backend(httpcore2.NetworkBackend):
    """Connections whose streams look at the call they serve."""

    def __init__(self) -> None:
        self._plain = httpcore2.SyncBackend()

    def connect_tcp(self, *arguments: Any, **options: Any) -> httpcore2.NetworkStream:
        return _Stream(self._plain.connect_tcp(*arguments, **options))

    def connect_unix_socket(self, *arguments: Any, **options: Any) -> httpcore2.NetworkStream:
        return _Stream(self._plain.connect_unix_socket(*arguments, **options))


class _Stream(httpcore2.NetworkStream):
    def __init__(self, plain: httpcore2.NetworkStream) -> None:
        self._plain = plain

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        watch = _current.get()
        if watch is None:
            return self._plain.read(max_bytes, timeout)
        while True:
            if watch.cancelled():
                raise HungUp
            if time.monotonic() >= watch.until:
                raise httpcore2.ReadTimeout("the deadline of the call has passed")
            try:
                data = self._plain.read(min(max_bytes, READ_BYTES), min(LOOK_S, watch.left))
            except httpcore2.ReadTimeout:
                continue
            watch.received += len(data)
            if watch.received > MAX_BYTES:
                raise TooLong
            return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._plain.write(buffer, timeout)

    def close(self) -> None:
        self._plain.close()

    def start_tls(self, *arguments: Any, **options: Any) -> httpcore2.NetworkStream:
        return _Stream(self._plain.start_tls(*arguments, **options))

    def get_extra_info(self, info: str) -> Any:
        return self._plain.get_extra_info(info)
