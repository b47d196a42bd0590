"""A server at an address: every connection goes where the network guard has looked, every answer is bounded."""

import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import httpcore2
import httpx2
from httpcore2 import AnyIOBackend
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from registry.errors import SkillError
from registry.mcp import Server
from registry.skills.network import MIB
from registry.skills.urls import Address, parse_url
from workers.net.guard import Guard
from workers.net.lookup import LookupFault
from workers.net.streams import CONNECT_S, MAX_TRIED, HungUp, TooLate, Watch

#: Bytes of one answer, a stream of events too.
MAX_ANSWER: Final = 16 * MIB
#: Seconds between two bytes of a stream that may be silent for long.
SILENT_S: Final = 300.0


@asynccontextmanager
async def streams(server: Server, guard: Guard) -> AsyncIterator[tuple[Any, Any]]:
    """Messages of a server, and where messages to it go."""
    config = server.config
    url = str(config.url)

    def client(headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers={**(headers or {}), **config.headers, "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(30.0, connect=CONNECT_S, read=SILENT_S),
            transport=Guarded(guard),
            trust_env=False,
            follow_redirects=False,
        )

    if server.kind == "sse":
        async with sse_client(url, httpx_client_factory=client) as pair:
            yield pair[0], pair[1]
    else:
        async with client() as made, streamable_http_client(url, http_client=made) as pair:
            yield pair[0], pair[1]


class Guarded(httpx2.AsyncHTTPTransport):
    """Looks at each request's address before it goes out, and connects to the address that was looked at."""

    def __init__(self, guard: Guard) -> None:
        super().__init__(verify=guard.tls(), trust_env=False)
        self._guard = guard
        self._pins: dict[tuple[str, int], tuple[list[Address], bool]] = {}
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=guard.tls(), network_backend=_Pinned(self._pins), max_connections=8
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            url = parse_url(str(request.url))
            watch = Watch(time.monotonic() + CONNECT_S, lambda: False)
            found = await anyio.to_thread.run_sync(self._guard.checked, url, watch, abandon_on_cancel=True)
        except SkillError as error:
            raise httpx2.ConnectError(error.message) from None
        except (LookupFault, TooLate, HungUp) as error:
            raise httpx2.ConnectError(str(error) or "looking up its name took too long") from None
        self._pins[(url.host, url.port)] = found, self._guard.allows(url)
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.ReadError("the answer is compressed though that was not asked for")
        response.stream = _Bounded(response.stream)
        return response


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with an error where it is too long."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_ANSWER
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise httpx2.ReadError(f"the answer has more than {MAX_ANSWER // MIB} MiB")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Pinned(httpcore2.AsyncNetworkBackend):
    """Connects to the addresses that were looked at, whatever name it is asked for."""

    def __init__(self, pins: dict[tuple[str, int], tuple[list[Address], bool]]) -> None:
        self._pins = pins
        self._net = AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        found, inside = self._pins.get((host.strip("[]"), port), ([], False))
        failure: Exception = httpcore2.ConnectError("no address")
        for address in found[:MAX_TRIED]:
            try:
                stream = await self._net.connect_tcp(str(address), port, timeout=timeout)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
                continue
            here, there = (stream.get_extra_info(name) for name in ("client_addr", "server_addr"))
            if not inside and here and there and here[0] == there[0]:
                await stream.aclose()
                raise httpcore2.ConnectError("its address is one of this machine")
            return stream
        raise failure

    async def connect_unix_socket(self, *arguments: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        raise httpcore2.ConnectError("only TCP goes out")

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)
