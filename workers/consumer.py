"""Celery's consumer, with two habits of ours: it survives what nobody can read, and it knows when it hears nothing.

A message that is no JSON, or JSON of another shape, makes kombu raise in the middle of the consumer's loop, and Celery
takes that for its own end. Here it counts as a broken connection: the message is gone, the consumer connects again.
"""

import logging
import threading
import time
from typing import Any

from celery.signals import task_received
from celery.worker.consumer import Consumer as CeleryConsumer
from sqlalchemy import select

from orchestrator import queue
from orchestrator.settings import Settings
from orchestrator.store import routing
from orchestrator.store.database import Database
from orchestrator.store.tables import runs

log = logging.getLogger(__name__)

#: Wake-ups a queued run has been sent before it is evidence that somebody does not listen.
IGNORED = 3


class Consumer(CeleryConsumer):
    """One that nonsense in the queue does not end."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known: tuple[type[BaseException], ...] = self.connection_errors  # type: ignore[has-type]
        self.connection_errors = (*known, ValueError, TypeError, KeyError, AttributeError)


class Ears:
    """Whether this worker is deaf: it has room, runs have been woken again and again, and it has heard nothing.

    A connection can look alive on both sides and deliver nothing (a broker that restarted, a link cut half). Only the
    rows show it, so they are asked; a broker that cannot be reached makes nobody deaf.
    """

    def __init__(self, settings: Settings, database: Database, queues: frozenset[str]) -> None:
        self._settings = settings
        self._mine = routing.within(queues)
        self._database = database
        self._lock = threading.Lock()
        self._heard = self._asked = time.monotonic()
        self._since: float | None = None
        task_received.connect(self._hear, weak=False)

    def deaf(self) -> bool:
        """Looks, at most a few times within the time that makes a worker deaf."""
        now, long = time.monotonic(), self._settings.limits.deaf_s
        if now - self._asked < long / 6:
            return False
        self._asked = now
        with self._lock:
            quiet = now - self._heard > long / 2
        if not quiet or not self._others_wait() or not self._broker_answers():
            self._since = None
            return False
        self._since = self._since or now
        return now - self._since >= long / 2

    def _hear(self, **_: Any) -> None:
        with self._lock:
            self._heard = time.monotonic()

    def _others_wait(self) -> bool:
        waiting = select(runs.c.id).where(runs.c.status == "queued", runs.c.wakes >= IGNORED, self._mine).limit(1)
        with self._database.read() as connection:
            return connection.execute(waiting).first() is not None

    def _broker_answers(self) -> bool:
        try:
            with queue.sender(self._settings).connection_for_write() as connection:
                connection.ensure_connection(max_retries=1, timeout=2)
        except Exception as error:
            log.debug("the broker does not answer: %s", error)
            return False
        return True
