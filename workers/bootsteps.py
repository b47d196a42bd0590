"""The clock inside the worker, and an orderly leave.

On SIGTERM: claim nothing more, let steps finish, give the leases back, then leave at once: threads of the pool would
keep a normal exit waiting for ever.
"""

import logging
import os
import threading
from typing import Any

from celery import bootsteps
from celery.signals import worker_shutting_down

from orchestrator.clock import Clock
from workers.runtime import Runtime, runtime

log = logging.getLogger(__name__)


class Clockwork(bootsteps.StartStopStep):
    """Ticks in a thread of its own while the worker lives."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, parent: Any) -> None:
        threads = "thread" in type(parent.pool).__module__
        # With processes the children carry the runs; this process only ticks.
        mine = runtime(parent.concurrency if threads else 0)
        worker_shutting_down.connect(lambda **_: _leave_in_order(mine, self._done), weak=False)
        self._thread = threading.Thread(target=self._tick, args=(mine,), name="clock", daemon=True)
        self._thread.start()

    def stop(self, _parent: Any) -> None:
        self._done.set()

    def _tick(self, mine: Runtime) -> None:
        clock = Clock(mine.settings, mine.database, mine.worker_id)
        while not self._done.wait(mine.settings.limits.clock_tick_s):
            try:
                clock.tick()
            except Exception:
                log.exception("the clock missed a tick")
        try:
            clock.resign()
        except Exception as error:
            log.info("the clock left without resigning: %s", error)


def _leave_in_order(mine: Runtime, done: threading.Event) -> None:
    """Begins the end in a thread of its own: a signal handler must not wait."""

    def leave() -> None:
        mine.stop(mine.settings.grace_s)
        log.info("worker %s has left", mine.worker_id)
        for handler in logging.getLogger().handlers:
            handler.flush()
        os._exit(0)

    if not done.is_set():
        done.set()
        threading.Thread(target=leave, name="leave").start()
