"""Connections to an address that was checked, under one deadline for all they do.

The client above knows names; the socket goes to the address and never asks anyone again. Waits are cut into slices, so
that a cancelled call hangs up and a peer that drips bytes cannot outlast the deadline.
"""

import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpcore2

from registry.skills.urls import Address

LOOK_S: Final = 0.25
#: Seconds from the look-up to the end of the TLS handshake.
CONNECT_S: Final = 5.0
#: Addresses of one name that are tried, one after the other.
MAX_TRIED: Final = 4


class TooLate(Exception):
    """Control flow: the deadline of the request has passed."""


class OwnMachine(Exception):
    """The address, public as it is, is one of this machine: its services are not for skills."""


class HungUp(Exception):
    """Control flow: the call was cancelled while it waited."""


@dataclass
class Watch:
    """One request under way, over all its hops."""

    #: On the monotonic clock.
    until: float
    cancelled: Callable[[], bool]
    #: Bytes of requests that were handed to the network.
    sent: int = 0

    @property
    def left(self) -> float:
        return self.until - time.monotonic()

    def check(self) -> None:
        if self.cancelled():
            raise HungUp
        if self.left <= 0:
            raise TooLate


class Backend(httpcore2.NetworkBackend):
    """Connects to the checked addresses, whatever name it is asked for."""

    def __init__(self, addresses: Sequence[Address], watch: Watch, connect_until: float, *, inside: bool) -> None:
        """
        Args:
            inside: whether this very machine may be reached.
        """
        self._addresses = addresses[:MAX_TRIED]
        self._inside = inside
        self._watch = watch
        self._connect_until = min(connect_until, watch.until)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        failure: Exception = httpcore2.ConnectError("no address")
        for number, address in enumerate(self._addresses):
            self._watch.check()
            left = self._connect_until - time.monotonic()
            if left <= 0:
                break
            try:
                # A share for each address still to try: one that swallows packets leaves time for the next.
                sock = _connect(address, port, left / (len(self._addresses) - number))
                if not self._inside and sock.getsockname()[0] == sock.getpeername()[0]:
                    sock.close()
                    raise OwnMachine
                return Stream(sock, self._watch, self._connect_until)
            except TimeoutError:
                failure = httpcore2.ConnectTimeout("no answer to the connection")
            except OSError as error:
                failure = httpcore2.ConnectError(error.strerror or "cannot connect")
        raise failure

    def connect_unix_socket(self, *arguments: Any, **options: Any) -> httpcore2.NetworkStream:
        raise httpcore2.ConnectError("only TCP goes out")


def _connect(address: Address, port: int, timeout: float) -> socket.socket:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout)
        sock.connect((str(address), port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        sock.close()
        raise
    return sock


class Stream(httpcore2.NetworkStream):
    """A socket whose every operation ends at the deadline, or soon after a cancel."""

    def __init__(self, sock: socket.socket, watch: Watch, connect_until: float) -> None:
        self._sock = sock
        self._watch = watch
        self._connect_until = connect_until

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        while True:
            self._slice()
            try:
                return self._sock.recv(max_bytes)
            except TimeoutError:
                continue
            except OSError as error:
                raise httpcore2.ReadError(error.strerror or "the connection broke") from None

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        rest = memoryview(buffer)
        while rest:
            self._slice()
            try:
                self._watch.sent += 1  # counted before: after a failure nobody knows what left
                rest = rest[self._sock.send(rest) :]
            except TimeoutError:
                continue
            except OSError as error:
                raise httpcore2.WriteError(error.strerror or "the connection broke") from None

    def _slice(self) -> None:
        self._watch.check()
        self._sock.settimeout(max(0.001, min(LOOK_S, self._watch.left)))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        # One total time for the whole handshake; cut into slices it could not be taken up again on every platform.
        self._sock.settimeout(max(0.001, self._connect_until - time.monotonic()))
        try:
            secured = ssl_context.wrap_socket(self._sock, server_hostname=server_hostname)
        except TimeoutError:
            self.close()
            raise httpcore2.ConnectTimeout("the TLS handshake took too long") from None
        except (OSError, ValueError) as error:
            self.close()
            raise httpcore2.ConnectError(_tls_words(error)) from None
        return Stream(secured, self._watch, self._connect_until)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.close()

    def get_extra_info(self, info: str) -> Any:
        if info == "ssl_object":
            return self._sock if isinstance(self._sock, ssl.SSLSocket) else None
        return None


def _tls_words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    return f"TLS failed: {getattr(error, 'reason', None) or getattr(error, 'strerror', None) or 'no reason given'}"
