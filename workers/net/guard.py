"""The guard: makes a request, checks every hop, and gives back no more than was asked for (spec: skills 4).

One look-up a hop; every address of the name has to be public; the connection goes to the checked address while Host and
SNI keep the name. Redirects are followed here, by hand. Proxies, netrc and the environment play no part.
"""

import logging
import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NoReturn
from urllib.parse import urljoin

import httpcore2

from registry.errors import SkillError
from registry.skills.network import Incoming, NetworkFault, Outgoing
from registry.skills.urls import Address, Url, literal, parse_url
from workers.net import addresses, decoding, lookup
from workers.net.streams import CONNECT_S, Backend, HungUp, OwnMachine, TooLate, Watch

# Their debug lines hold whole headers.
for _name in ("httpcore2", "httpx2"):
    logging.getLogger(_name).setLevel(logging.INFO)

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
USER_AGENT: Final = "Officina"
#: Headers the guard writes itself, whatever a request brings.
OWN_HEADERS: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "te", "expect", "upgrade"}
)
#: What still goes along when a redirect leads to another origin; anything else may be a credential.
HARMLESS_HEADERS: Final = frozenset(
    {"accept", "accept-language", "content-type", "content-language", "user-agent", "cache-control", "range"}
)


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    return httpcore2.default_ssl_context()


class Guard:
    """The `Network` port. Safe from any thread; keeps no connection between requests."""

    def __init__(
        self,
        *,
        allow: Iterable[tuple[str, int]] = (),
        refuse: Iterable[tuple[str, int]] = (),
        resolver: lookup.Resolver = lookup.system,
        tls: Callable[[], ssl.SSLContext] = _trusted,
    ) -> None:
        """
        Args:
            allow: host and port pairs that may be private; for tests, from the operator's settings alone.
            refuse: pairs that are our own services: never reached, allowed or not.
        """
        self._allow = frozenset(allow)
        self._refuse = frozenset(refuse)
        self._resolver = resolver
        self._tls = tls

    def send(self, request: Outgoing, *, cancelled: Callable[[], bool] = lambda: False) -> Incoming:
        """See `Network.send`."""
        watch = Watch(time.monotonic() + request.timeout_s, cancelled)
        try:
            return _Exchange(self, request, watch).run()
        except NetworkFault:
            raise
        except SkillError as error:
            raise NetworkFault(error.code, error.message, sent=watch.sent > 0, details=error.details) from None
        except HungUp:
            raise NetworkFault("cancelled", "the call was cancelled while it waited", sent=watch.sent > 0) from None
        except TooLate:
            words = f"no complete answer within {request.timeout_s:g} s"
            _fail("timeout", words, request, watch)
        except httpcore2.TimeoutException as error:
            _fail("timeout", f"{_host(request)}: {error}", request, watch)
        except (httpcore2.NetworkError, httpcore2.ProtocolError, lookup.LookupFault) as error:
            _fail("network_error", f"{_host(request)} cannot be reached: {str(error)[:200]}", request, watch)
        except decoding.BrokenCoding as error:
            raise NetworkFault("remote_error", f"the answer is broken: {error}", sent=True) from None
        except decoding.UnknownCoding as error:
            raise NetworkFault("unsupported_type", f"the answer is compressed as {error}", sent=True) from None

    def checked(self, url: Url, watch: Watch) -> list[Address]:
        """The addresses a URL may be reached at.

        Raises:
            NetworkFault: `network_blocked`.
            LookupFault: there are none.
        """
        if (url.host, url.port) in self._refuse:
            raise _blocked(url, "it is a service of Officina itself", watch)
        allowed = self.allows(url)
        if not allowed and (reason := addresses.refusal(url)):
            raise _blocked(url, reason, watch)
        address = literal(url.host)
        until = time.monotonic() + CONNECT_S
        found = (
            [address]
            if address
            else lookup.addresses(
                url.host, self._resolver, left=lambda: min(until - time.monotonic(), watch.left), check=watch.check
            )
        )
        inside = None if allowed else addresses.private(found)
        if inside is not None:
            # The name alone: which address it has inside is not the caller's business.
            raise _blocked(url, "an address of it is not public", watch)
        return found

    def allows(self, url: Url) -> bool:
        """Whether the operator lets this host and port be private."""
        return (url.host, url.port) in self._allow

    def tls(self) -> ssl.SSLContext:
        return self._tls()


@dataclass
class _Exchange:
    """One request on its way through redirects."""

    guard: Guard
    request: Outgoing
    watch: Watch
    hops: list[Url] = field(default_factory=list)

    def run(self) -> Incoming:
        started = time.monotonic()
        method, body = self.request.method, self.request.body
        headers = {k: v for k, v in self.request.headers.items() if k.lower() not in OWN_HEADERS}
        url = parse_url(self.request.url)
        while True:
            self.watch.check()
            self.request.on_hop(url)
            self.hops.append(url)
            status, received, content = self._once(url, method, headers, body)
            target = self._redirect(url, status, received)
            if target is None:
                kept, truncated = content
                elapsed = round((time.monotonic() - started) * 1000)
                return Incoming(status, url, received, kept, truncated, elapsed, tuple(self.hops))
            if target.origin != url.origin:
                headers = {k: v for k, v in headers.items() if k.lower() in HARMLESS_HEADERS}
            if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
                method, body = "GET", None
                headers = {k: v for k, v in headers.items() if not k.lower().startswith("content-")}
            url = target

    def _once(
        self, url: Url, method: str, headers: dict[str, str], body: bytes | None
    ) -> tuple[int, list[tuple[str, str]], tuple[bytes, bool]]:
        connect_until = time.monotonic() + CONNECT_S
        found = self.guard.checked(url, self.watch)
        backend = Backend(found, self.watch, connect_until, inside=self.guard.allows(url))
        origin = httpcore2.Origin(url.scheme.encode(), url.host.encode(), url.port)
        context = self.guard.tls() if url.scheme == "https" else None
        connection = httpcore2.HTTPConnection(origin, ssl_context=context, network_backend=backend)
        try:
            response = self._answer(connection, url, _request(url, method, headers, body))
            received = [(k.decode("latin-1").lower(), v.decode("latin-1")) for k, v in response.headers]
            if self._follows(response.status, received):
                return response.status, received, (b"", False)
            coding = next((value for name, value in received if name == "content-encoding"), "")
            pieces = decoding.decoded(response.stream, coding) if method != "HEAD" else iter(())  # type: ignore[arg-type]
            return response.status, received, self._kept(pieces)
        finally:
            connection.close()

    def _answer(self, connection: httpcore2.HTTPConnection, url: Url, request: httpcore2.Request) -> httpcore2.Response:
        try:
            return connection.handle_request(request)
        except OwnMachine:
            raise _blocked(url, "its address is one of this machine", self.watch) from None

    def _kept(self, pieces: Iterable[bytes]) -> tuple[bytes, bool]:
        """The body up to the cap; nothing beyond it is even unpacked."""
        most = self.request.max_bytes
        kept = bytearray()
        for piece in pieces:
            self.watch.check()
            kept += piece
            if len(kept) > most:
                if self.request.whole:
                    words = f"the answer has more than {most} bytes once unpacked"
                    raise NetworkFault("too_large", words, sent=True)
                return bytes(kept[:most]), True
        return bytes(kept), False

    def _follows(self, status: int, headers: list[tuple[str, str]]) -> bool:
        return self.request.redirects > 0 and status in REDIRECTS and any(name == "location" for name, _ in headers)

    def _redirect(self, url: Url, status: int, headers: list[tuple[str, str]]) -> Url | None:
        """Where the answer leads, when that is followed.

        Raises:
            NetworkFault: it leads where nothing may go, or on and on.
        """
        if not self._follows(status, headers):
            return None
        if len(self.hops) > self.request.redirects:
            words = f"{url.host} redirects more than {self.request.redirects} times"
            raise NetworkFault("remote_error", words, sent=True)
        location = next(value for name, value in headers if name == "location")
        try:
            # Servers mean UTF-8 where they send more than ASCII.
            text = location.encode("latin-1").decode("utf-8", "replace").strip(" \t")
            target = parse_url(urljoin(str(url), text))
        except (SkillError, ValueError) as error:
            words = error.message if isinstance(error, SkillError) else "the URL is broken"
            raise NetworkFault(
                "network_blocked", f"{url.host} redirects to where no skill goes: {words}", sent=True
            ) from None
        if url.scheme == "https" and target.scheme == "http" and not self.request.downgrade:
            raise NetworkFault("network_blocked", f"{url.host} redirects from https to http", sent=True)
        return target


def _request(url: Url, method: str, headers: dict[str, str], body: bytes | None) -> httpcore2.Request:
    """The request as it goes out: one connection, one answer."""
    own = {"Host": url.place, "Accept-Encoding": decoding.ACCEPTED, "Connection": "close"}
    named = {name.lower() for name in headers}
    if "user-agent" not in named:
        own["User-Agent"] = USER_AGENT
    if "accept" not in named:
        own["Accept"] = "*/*"
    if body is not None or method in ("POST", "PUT", "PATCH"):
        own["Content-Length"] = str(len(body or b""))
    lines = [(k.encode("ascii"), v.encode("utf-8")) for k, v in (own | headers).items()]
    address = httpcore2.URL(
        scheme=url.scheme.encode(), host=url.host.encode(), port=url.port, target=url.target.encode()
    )
    return httpcore2.Request(method.encode(), address, headers=lines, content=body)


def _host(request: Outgoing) -> str:
    return parse_url(request.url).host


def _blocked(url: Url, reason: str, watch: Watch) -> NetworkFault:
    return NetworkFault("network_blocked", f"{url.host} may not be reached: {reason}", sent=watch.sent > 0)


def _fail(code: str, words: str, request: Outgoing, watch: Watch) -> NoReturn:
    again = not (request.once and watch.sent)
    raise NetworkFault(code, words, retryable=again, sent=watch.sent > 0) from None
