"""Looking up a name: once, both families, within a deadline the system's resolver knows nothing of."""

import queue
import socket
import threading
from collections.abc import Callable
from typing import Final

from registry.skills.urls import Address, literal

#: Names that may be under look-up at once in this process: one that hangs costs its thread until the system gives up.
MAX_WAITING: Final = 64
LOOK_S: Final = 0.25

#: Name in, addresses out; raises `OSError` when there are none.
Resolver = Callable[[str], list[str]]

_slots = threading.BoundedSemaphore(MAX_WAITING)


class LookupFault(Exception):
    """The name has no address, or nobody said so in time; the message says which."""


def system(name: str) -> list[str]:
    """Every A and AAAA address of a name, as this machine's resolver sees it."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def addresses(name: str, resolver: Resolver, *, left: Callable[[], float], check: Callable[[], None]) -> list[Address]:
    """The addresses of a name.

    Args:
        left: seconds until the answer is too late.
        check: called while waiting; what it raises ends the wait.

    Raises:
        LookupFault: no address, or no answer in time.
    """
    if not _slots.acquire(blocking=False):
        raise LookupFault("too many names are being looked up at once")
    answers: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put(resolver(name))
        except Exception as error:  # a resolver may raise UnicodeError, too
            answers.put(error)
        finally:
            _slots.release()

    threading.Thread(target=work, name="lookup", daemon=True).start()
    while True:
        check()
        try:
            found = answers.get(timeout=max(0.001, min(LOOK_S, left())))
            break
        except queue.Empty:
            if left() <= 0:
                raise LookupFault(f"looking up {name} took too long") from None
    if isinstance(found, Exception) or not found:
        raise LookupFault(f"there is no address for the name {name}")
    return [_address(text, name) for text in found]


def _address(text: str, name: str) -> Address:
    address = literal(text)
    if address is None:
        raise LookupFault(f"the look-up of {name} gave something that is no address")
    return address
