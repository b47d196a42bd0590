"""Forks processes for a worker that has threads, from one that has everything imported and nothing open.

A process with threads must not fork: the copy would hold locks that nobody lets go. So the worker makes a copy of
itself while it still has one thread, and that copy forks on order. The standard library's fork server does the same,
and each process it forks imports everything once more: seconds of a processor, just when a worker has died.

The copy is made before the worker imports anything, and gets ready when it is told or first needed: two processes that
share their pages at first share few of them after a minute, because Python counts references in the objects
themselves. One that stood by with everything imported would hold as much memory as a worker.
"""

import gc
import os
import signal
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any, Final, NoReturn

#: The order to get ready.
READY: Final = "ready"


@dataclass(frozen=True)
class Forked:
    """A process made on order, and the end of a pipe to it. When it ends, the pipe does; when the pipe is closed, it
    should: `end_with` does that."""

    pid: int
    pipe: Connection


class ForkServer:
    """A copy of this process that forks on order; it ends with the process that made it."""

    def __init__(self, live: Callable[..., None], ready: Callable[[], None] = lambda: None) -> None:
        """Forks now.

        Args:
            live: what a forked process does: called with the arguments of the order and its end of the pipe.
            ready: what is done once, before the first of them is made: it leaves one thread and opens nothing.

        Raises:
            RuntimeError: this process has threads already.
        """
        if threading.active_count() > 1:
            raise RuntimeError("a fork server is made before the first thread")
        self._pipe, orders = Pipe()
        self._lock = threading.Lock()
        self.pid = os.fork()
        if self.pid == 0:
            self._pipe.close()
            _obey(orders, live, ready)
        orders.close()

    def fork(self, *arguments: Any) -> Forked:
        """Makes a process.

        Raises:
            OSError: it cannot be made, or the server is gone.
        """
        mine, theirs = Pipe()
        try:
            with self._lock:
                self._pipe.send(arguments)
                send_handle(self._pipe, theirs.fileno(), self.pid)
                answer = self._heard()
        except OSError:
            mine.close()
            raise
        finally:
            theirs.close()
        return Forked(answer, mine)

    def get_ready(self) -> None:
        """Tells it that it will soon be needed; returns at once."""
        with suppress(OSError):  # gone, which whoever needs it finds out
            if self._lock.acquire(blocking=False):  # whoever has it is being served
                try:
                    self._pipe.send(READY)
                finally:
                    self._lock.release()

    def end(self, process: Forked) -> None:
        """Kills the process if it is alive, and forgets it. The server does it, who alone knows whose number it is."""
        process.pipe.close()
        with self._lock, suppress(OSError):  # gone with all it made
            self._pipe.send(process.pid)
            self._heard()

    def _heard(self) -> int:
        try:
            answer = self._pipe.recv()
        except EOFError:
            raise BrokenPipeError("the fork server is gone") from None
        if isinstance(answer, OSError):
            raise answer
        return int(answer)


def end_with(pipe: Connection) -> None:
    """Kills this process when the other end of its pipe is closed: its worker gave it up, or is gone."""

    def watch() -> None:
        with suppress(EOFError, OSError):
            while True:
                pipe.recv_bytes()
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="tether", daemon=True).start()


def _obey(orders: Connection, live: Callable[..., None], ready: Callable[[], None]) -> NoReturn:
    """The life of the server: an order with arguments and a pipe makes a process, one with a number ends it."""
    for number in (signal.SIGINT, signal.SIGTERM):  # meant for the worker, which decides and ends the pipe
        signal.signal(number, signal.SIG_IGN)
    made: set[int] = set()
    is_ready = False
    while True:
        try:
            order = orders.recv()
            if not is_ready:
                _get_ready(ready)
                is_ready = True
            if order == READY:
                continue
            if isinstance(order, int):
                orders.send(_ended(order, made))
            else:
                orders.send(_made(order, recv_handle(orders), orders, live, made))
        except (EOFError, OSError):
            break
    for pid in made:
        _ended(pid, set(made))
    os._exit(0)


def _get_ready(ready: Callable[[], None]) -> None:
    try:
        ready()
    except Exception:  # each process it makes will say the same
        traceback.print_exc()
    gc.collect()
    gc.freeze()  # what is imported stays; a collection would touch, and so copy, all of it in every process


def _made(
    arguments: tuple[Any, ...], handle: int, orders: Connection, live: Callable[..., None], made: set[int]
) -> int | OSError:
    try:
        pid = os.fork()
    except OSError as error:
        os.close(handle)
        return error
    if pid:
        os.close(handle)
        made.add(pid)
        return pid
    status = 1
    try:
        orders.close()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        live(*arguments, Connection(handle))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _ended(pid: int, made: set[int]) -> int:
    if pid in made:  # not waited for yet, so the number is still its own
        made.discard(pid)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return pid
