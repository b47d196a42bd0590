"""The clock inside the worker, events for monitors in parcels, and an orderly leave.

On SIGTERM: claim nothing more, let steps finish, give the leases back, then leave at once: threads of the pool would
keep a normal exit waiting for ever.
"""

import gc
import logging
import os
import threading
from typing import Any

from celery import bootsteps
from celery.signals import worker_shutting_down

from orchestrator.clock import Clock
from orchestrator.queue import known_name
from orchestrator.settings import get_settings
from workers import allocator, alone, standby
from workers.consumer import Ears
from workers.runtime import Runtime, runtime, serve
from workers.sandbox.process import find_sandbox
from workers.threads import Threads

log = logging.getLogger(__name__)

#: Seconds a leaving worker waits for its clock.
RESIGN_S = 5


#: Looks of a clock within a lease, at least.
LOOKS = 8

#: Seconds between parcels of events for monitors.
EVENTS_S = 0.2


def prepare(options: dict[str, Any], **_: Any) -> None:
    """What is done while a worker has one thread, so that no process of its pool or of a suspect needs to repeat it."""
    if "thread" in str(options.get("pool")):
        standby.open_server()  # where this is Celery's own command line
        alone.get_ready(get_settings())
    else:
        find_sandbox()


class Parcels(bootsteps.StartStopStep):
    """Sends task events a few times a second: a message for each of them costs more than carrying a short run."""

    requires = ("celery.worker.consumer.events:Events",)

    def start(self, consumer: Any) -> None:
        dispatcher = consumer.event_dispatcher
        if consumer.hub is None or dispatcher is None:
            return
        dispatcher.on_send_buffered, dispatcher.buffer_limit = None, 1_000
        self._timer = consumer.hub.call_repeatedly(EVENTS_S, dispatcher.flush)

    def stop(self, _consumer: Any) -> None:
        timer = getattr(self, "_timer", None)
        if timer is not None:
            timer.cancel()


class Clockwork(bootsteps.StartStopStep):
    """Ticks in a thread of its own while the worker lives."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._queues = frozenset(known_name(name) for name in parent.app.amqp.queues.consume_from)
        serve(self._queues)  # before the pool forks

    def start(self, parent: Any) -> None:
        threads = isinstance(parent.pool, Threads)
        allocator.share_arenas()
        # With processes the children carry the runs; this process only ticks.
        mine = runtime(parent.concurrency if threads else 0, shared=threads)
        mine.retire = lambda reason: self._retire(mine, reason)
        ears = Ears(mine.settings, mine.database, self._queues)
        gc.collect()
        allocator.give_back()
        gc.freeze()  # what is loaded by now stays: later collections need not walk all of it each time
        self._thread = threading.Thread(target=self._tick, args=(mine, ears), name="clock", daemon=True)
        self._thread.start()
        worker_shutting_down.connect(lambda **_: self._leave_in_order(mine), weak=False)

    def stop(self, _parent: Any) -> None:
        self._done.set()

    def _tick(self, mine: Runtime, ears: Ears) -> None:
        clock = Clock(mine.settings, mine.database, mine.worker_id)
        limits = mine.settings.limits
        # Where leases are short, one that ran out should not wait for longer than it held.
        while not self._done.wait(min(limits.clock_tick_s, limits.lease_s / LOOKS)):
            try:
                clock.tick()
                if mine.has_room and ears.deaf():
                    mine.retire(f"it heard nothing for {mine.settings.limits.deaf_s:g} s while runs wait")
            except Exception:
                log.exception("the clock missed a tick")
        try:
            clock.resign()
        except Exception as error:
            log.info("the clock left without resigning: %s", error)

    def _retire(self, mine: Runtime, reason: str) -> None:
        if not self._done.is_set():
            log.error("worker %s makes room for a fresh one: %s", mine.worker_id, reason)
            self._leave_in_order(mine)

    def _leave_in_order(self, mine: Runtime) -> None:
        """Begins the end in a thread of its own: a signal handler must not wait."""
        if not self._done.is_set():
            self._done.set()
            threading.Thread(target=self._leave, args=(mine,), name="leave").start()

    def _leave(self, mine: Runtime) -> None:
        try:
            mine.stop(mine.settings.grace_s)
            log.info("worker %s has left", mine.worker_id)
            if self._thread is not None:
                self._thread.join(RESIGN_S)  # until the clock has resigned, so that another ticks at once
        except Exception:
            log.exception("worker %s left without saying so", mine.worker_id)
        finally:
            for handler in logging.getLogger().handlers:
                handler.flush()
            os._exit(0)
