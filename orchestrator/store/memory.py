"""The store in the memory of one process: the same tables and the same moves, and nothing of it ever in a file.

SQLite without a file, on one connection that every thread takes in turn, for its reads too: a transaction sees all of
another or nothing. Its clock is the host's and can be set forward, so that nobody sleeps through what a run waits for.
A forked child has no part in it.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection, Engine, event
from sqlalchemy.pool import StaticPool

from orchestrator.records import wall_ms
from orchestrator.store import database
from orchestrator.store.kept import metadata

T = TypeVar("T")

#: The SQL function that reads its clock.
NOW = "officina_now"


class MemoryDatabase(database.Database):
    """A store that is there from the first use, schema and all, until it is disposed of or its process ends."""

    in_memory = True

    def __init__(self, url: str = "sqlite://") -> None:
        super().__init__(url)
        self._turn = threading.RLock()
        self._ahead = 0
        self._reading: Connection | None = None

    def now_ms(self) -> int:
        """Epoch milliseconds on its clock, which is also what its statements read."""
        return wall_ms() + self._ahead

    def pass_until(self, at_ms: int) -> None:
        """Sets the clock forward to a time; one that has passed changes nothing."""
        self._ahead += max(0, at_ms - self.now_ms())

    def dispose(self) -> None:
        """Forgets everything; the next use finds an empty store."""
        with self._turn:
            super().dispose()
            self._engine = None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with self._turn:
            if self._reading is not None:  # one look within another of the same thread
                yield self._reading
                return
            with super().read() as self._reading:
                try:
                    yield self._reading
                finally:
                    self._reading = None

    def _write(self, work: Callable[[Connection], T]) -> T:
        with self._turn:
            return super()._write(work)

    def _create(self) -> Engine:
        engine = database.sqlite_engine(self.url, poolclass=StaticPool)
        setattr(engine.dialect, database.CLOCK, NOW)

        @event.listens_for(engine, "connect")
        def _connect(connection: sqlite3.Connection, _record: object) -> None:
            connection.create_function(NOW, 0, self.now_ms)

        with engine.begin() as connection:
            metadata.create_all(connection, checkfirst=False)
        return engine
