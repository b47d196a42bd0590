"""What every request passes before anything of it is read: host name, origin, kind and size of the body (spec: 20).

A browser that carries a session may be made to ask for anything by a page of somebody else's. Such a request is told by
its `Origin` and `Sec-Fetch-Site`, and one that reached us through a foreign name by its `Host`.
"""

import asyncio
import re
from collections.abc import MutableMapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.api.replies import problem
from orchestrator.settings import Settings

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
#: What a probe inside a cluster asks for, under whatever name.
_PROBES: Final = frozenset({"/health", "/health/ready"})
#: What brings files along.
_LARGE: Final = re.compile(r"/api/studio/(projects|knowledge|threads/[^/]+/send)|/threads(/[^/]+/send)?")
#: What keeps an answer from being taken for something else, as it goes out.
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
)


class Refusal(HTTPException):
    """A request that goes no further."""

    def __init__(self, status: int, code: str, words: str) -> None:
        super().__init__(status, words)
        self.code = code


class Gate:
    """The outermost part of the application."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._api = app, settings.api
        self._hosts = LOOPBACK | {settings.api.host.lower(), *(host.lower() for host in settings.api.hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            limit = self._judge(scope, headers)
        except Refusal as refusal:
            reply = problem(refusal.status_code, refusal.code, refusal.detail, headers={"connection": "close"})
            await reply(scope, receive, _guarded(send))
            return
        await self._app(scope, _Body(receive, limit, self._api.body_s), _guarded(send))

    def _judge(self, scope: MutableMapping[str, Any], headers: Headers) -> int:
        """The bytes its body may have.

        Raises:
            Refusal: it may not come in.
        """
        host = headers.get("host", "")
        if scope["path"] not in _PROBES and _name(host) not in self._hosts:
            words = "this server does not answer to that host name; OFFICINA_API__HOSTS lists those it does"
            raise Refusal(403, "foreign_host", words)
        # PostgreSQL could not even be asked for such a thing.
        if "\0" in scope["path"]:
            raise Refusal(404, "not_found", "nothing has an address with a NUL character")
        if b"%00" in scope["query_string"]:
            raise Refusal(400, "malformed", "the query holds a NUL character")
        large = scope["method"] == "POST" and _LARGE.fullmatch(scope["path"])
        limit = self._api.submit_bytes if large else self._api.body_bytes
        if scope["method"] in _SAFE:
            return limit
        _judge_origin(headers, host, scope["scheme"])
        length = headers.get("content-length")
        if length is not None and (not length.isdecimal() or int(length[:20]) > limit):
            raise Refusal(413, "too_large", f"the body has more than {limit} bytes")
        kind = headers.get("content-type")
        if kind is None:
            if "transfer-encoding" in headers or (length is not None and int(length[:20]) > 0):
                raise Refusal(415, "unsupported_type", "the body has to be application/json, and to say so")
        elif kind.partition(";")[0].strip().lower() != "application/json":
            raise Refusal(415, "unsupported_type", "the body has to be application/json")
        return limit


def _judge_origin(headers: Headers, host: str, scheme: str) -> None:
    origin = headers.get("origin")
    # Behind a proxy that ends TLS the page is https and we are not: its host says whose it is.
    if origin is not None and _netloc(origin) != host.lower():
        raise Refusal(403, "foreign_origin", "a page of another origin may not do this")
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise Refusal(403, "foreign_origin", "a page of another site may not do this")


def _netloc(origin: str) -> str | None:
    """Host and port of an origin; None when it is none."""
    with suppress(ValueError):
        return urlsplit(origin).netloc.lower()
    return None


@lru_cache(maxsize=256)
def _name(host: str) -> str | None:
    """The name in a Host header; None when it is none."""
    with suppress(ValueError):
        return urlsplit(f"//{host}").hostname
    return None


class _Body:
    """Receives a body of bounded size in bounded time."""

    def __init__(self, receive: Receive, limit: int, seconds: float) -> None:
        self._receive, self._left, self._limit, self._seconds = receive, limit, limit, seconds
        self._until: float | None = None
        self._whole = False

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()  # waits for the client to go away, as long as it likes
        if self._until is None:
            self._until = asyncio.get_running_loop().time() + self._seconds
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise Refusal(408, "timeout", f"the body did not arrive within {self._seconds:g} s") from None
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise Refusal(413, "too_large", f"the body has more than {self._limit} bytes")
        self._whole = not message.get("more_body", False)
        return message


def _guarded(send: Send) -> Send:
    """Adds those of `_HEADERS` that an answer does not have of its own."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", ()))
            names = {name for name, _ in own}
            message["headers"] = [*own, *(header for header in _HEADERS if header[0] not in names)]
        await send(message)

    return sending
