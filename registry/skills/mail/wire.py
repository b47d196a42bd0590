"""The connection to a mail server: dialled, encrypted, watched. No library call waits longer than its call may."""

import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from registry.connections import MailServer
from registry.errors import SkillError
from registry.skills.context import SkillContext

#: Seconds a server has to take the connection, inside the call's own deadline.
CONNECT_S: Final = 5.0
#: Seconds between looks at the deadline and at a cancel.
LOOK_S: Final = 0.2

T = TypeVar("T")


class Line:
    """One connection under the call's deadline: what hangs on it is cut when the call must stop."""

    def __init__(self, context: SkillContext, server: MailServer) -> None:
        self.server = server
        self.sock: socket.socket = _dial(context, server)
        self._context = context
        if server.security == "tls":
            self.encrypt()

    def encrypt(self) -> None:
        """TLS from here on; the certificate is always checked, for the name that was asked for."""
        host = self.server.host
        self.sock.settimeout(max(0.01, min(CONNECT_S, self._context.deadline.left)))
        self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=host)
        self.sock.settimeout(_seconds(self._context))

    def cut(self) -> None:
        """Wakes whoever waits for it."""
        try:
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)  # TLS stays up: nothing leaves in clear behind it
        except OSError:
            self.sock.close()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While in here, the line is cut as soon as the call is cancelled or out of time."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(min(LOOK_S, self._context.deadline.left)):
                if self._context.cancelled() or self._context.deadline.passed:
                    self.cut()
                    return

        watcher = threading.Thread(target=watch, name="mail-line", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()
            self.sock.close()


def explain(error: Exception, server: MailServer, context: SkillContext) -> SkillError:
    """What went wrong with a connection, as the result of the call says it: nothing had been sent or read."""
    try:
        context.check()
    except SkillError as stopped:
        return stopped
    host = server.host
    if isinstance(error, ssl.SSLCertVerificationError):
        return SkillError("network_error", f"the certificate of {host} is not good: {error.verify_message}")
    if isinstance(error, ssl.SSLError):
        return SkillError("network_error", f"{host} speaks no TLS that we take: {error.reason or 'no agreement'}")
    if isinstance(error, socket.gaierror):
        return SkillError("network_error", f"there is no address for the name {host}", retryable=True)
    if isinstance(error, TimeoutError):
        return SkillError("network_error", f"{host} did not answer in time", retryable=True)
    if isinstance(error, ConnectionRefusedError):
        return SkillError("network_error", f"{host} refuses connections to port {server.port}", retryable=True)
    return SkillError("network_error", f"the connection to {host} broke", retryable=True)


def _dial(context: SkillContext, server: MailServer) -> socket.socket:
    """A connected socket. The look-up of a name knows no deadline, so it has a thread of its own.

    Raises:
        OSError: there is no way to this server; `TimeoutError` when it took too long.
        SkillError: `cancelled` or `timeout`.
    """

    def connect() -> socket.socket:
        found = socket.create_connection((server.host, server.port), timeout=CONNECT_S)
        found.settimeout(_seconds(context))
        return found

    return _in_time(connect, context, late=lambda found: found.close())


def _in_time(work: Callable[[], T], context: SkillContext, *, late: Callable[[T], None]) -> T:
    answers: queue.SimpleQueue[T | Exception] = queue.SimpleQueue()
    given_up = threading.Event()

    def run() -> None:
        try:
            made = work()
        except Exception as error:
            answers.put(error)
            return
        answers.put(made)
        if given_up.is_set():
            late(made)

    threading.Thread(target=run, name="mail-dial", daemon=True).start()
    while True:
        try:
            found = answers.get(timeout=LOOK_S)
        except queue.Empty:
            try:
                context.check()
            except SkillError:
                given_up.set()
                raise
            continue
        if isinstance(found, Exception):
            raise found
        return found


def _seconds(context: SkillContext) -> float:
    """How long one read or write may take; the watch ends it sooner."""
    return max(0.01, min(60.0, context.deadline.left))


__all__ = ["Line", "explain"]
