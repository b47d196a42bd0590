"""The pool of threads, which says when a slot is free.

A worker takes a message only when it has a slot for it (`worker_disable_prefetch`): what it held beside those would
wait behind runs that think, while another worker has nothing to do. Celery's event loop looks whether there is room
before it waits, and nothing of its own wakes it when a thread ends; so the pool does.
"""

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from celery import bootsteps
from celery.concurrency.thread import TaskPool


class Threads(TaskPool):
    """Celery's own, with a word to whoever wants to know of a free slot."""

    #: Called in the thread that has ended a job, after all that belongs to the job.
    freed: Callable[[], None] | None = None

    def on_apply(self, *args: Any, **kwargs: Any) -> Any:
        result = super().on_apply(*args, **kwargs)
        result.f.add_done_callback(self._told)
        return result

    def _told(self, _job: object) -> None:
        if self.freed is not None:
            self.freed()


class FreeSlots(bootsteps.StartStopStep):
    """Wakes the event loop of a consumer for each slot that is freed."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, consumer: Any) -> None:
        if consumer.hub is None or not isinstance(consumer.pool, Threads):
            return
        # Sockets, because writing to one that is closed fails: the number of a pipe may be somebody else's by then.
        self._ear, self._mouth = socket.socketpair()
        for end in (self._ear, self._mouth):
            end.setblocking(False)
        consumer.hub.add_reader(self._ear, self._hear)
        consumer.pool.freed = self._tell

    def stop(self, consumer: Any) -> None:
        if consumer.hub is None or getattr(consumer.pool, "freed", None) is None:
            return
        consumer.pool.freed = None
        consumer.hub.remove(self._ear)
        self._ear.close()
        self._mouth.close()

    def _tell(self) -> None:
        with suppress(OSError):  # so many words that it is awake anyway, or it has gone
            self._mouth.send(b".")

    def _hear(self) -> None:
        with suppress(OSError):
            self._ear.recv(4_096)
