"""What a supervisor does for the rows of its workers: a dead one's runs go on at once, a silent one is noticed.

Nobody else can know so soon: a supervisor sees a process end, where the others have to wait for a lease. It works in a
thread of its own, so that a database that does not answer keeps no process from being started again.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

from orchestrator import queue
from orchestrator.settings import Settings
from orchestrator.store import runs, workers
from orchestrator.store.database import get_database

log = logging.getLogger(__name__)

#: Seconds between looks at the rows of living workers, and tries to write off a dead one.
LOOK_S = 2.0


class Caretaker:
    """Looks after the rows of the worker processes of one supervisor."""

    def __init__(self, settings: Callable[[], Settings]) -> None:
        """
        Args:
            settings: what is in force, asked when it is needed: a stack knows its broker only once that runs.
        """
        self._settings = settings
        self._host = socket.gethostname()
        self._dead: SimpleQueue[int] = SimpleQueue()
        #: Of each process: what its row last said, and since when, on our clock.
        self._seen: dict[int, tuple[int, float]] = {}
        self._silent: set[int] = set()
        self._looked = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="caretaker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends it; what it has not written off by then, leases bring back."""
        self._stop.set()
        self._dead.put(0)
        if self._thread.is_alive():
            self._thread.join(5)

    def bury(self, pid: int) -> None:
        """A process has ended: whatever it held is for others."""
        self._dead.put(pid)

    def is_silent(self, pid: int) -> bool:
        """Whether a living process has shown no sign of life for as long as the settings allow."""
        return pid in self._silent

    def _work(self) -> None:
        failed: set[int] = set()
        while not self._stop.is_set():
            try:
                dead = {self._dead.get(timeout=LOOK_S)}
            except Empty:
                dead = set()
            failed |= dead - {0}
            try:
                for pid in sorted(failed):
                    self._write_off(pid)
                    failed.discard(pid)
                self._look()
            except Exception as error:
                log.debug("the rows of the workers cannot be looked at: %s", error)

    def _write_off(self, pid: int) -> None:
        settings = self._settings()
        database = get_database(settings)
        freed = database.write(lambda c: workers.bury(c, self._host, pid))
        self._seen.pop(pid, None)
        self._silent.discard(pid)
        if freed:
            log.info("the runs of process %d go on: %d", pid, len(freed))
            queue.send(settings, database.write(lambda c: runs.unsent_wakes(c, len(freed))))

    def _look(self) -> None:
        """Compares what rows say with what they said: a row that cannot be read makes nobody silent."""
        settings = self._settings()
        with get_database(settings).read() as connection:
            found = workers.seen(connection, self._host)
        now = time.monotonic()
        if now - self._looked > 5 * LOOK_S:  # we, or the database, were away: nobody else is to blame for that
            self._seen.clear()
        self._looked = now
        for pid, said in found.items():
            before = self._seen.get(pid)
            if before is None or before[0] != said:
                self._seen[pid] = (said, now)
        self._seen = {pid: kept for pid, kept in self._seen.items() if pid in found}
        limit = max(settings.limits.silent_s, 2 * settings.limits.renew_s)
        self._silent = {pid for pid, (_, since) in self._seen.items() if now - since > limit}
