"""Does for the runs of one process what queue, clock and desk do for workers: whose turn it is, time, answers.

Rows decide here as everywhere; there is only nobody to be woken. Runs go one after the other: the root, or, while a run
waits for its children, the first of these that has not ended, and so on down.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select

from orchestrator.notify import Silence
from orchestrator.signals import answer_in
from orchestrator.states import RUN_ENDED, SIGNAL_OF_PARK
from orchestrator.store import runs
from orchestrator.store.memory import MemoryDatabase
from orchestrator.store.tables import runs as runs_table
from orchestrator.store.tables import signals as signals_table
from registry.base import Json
from registry.errors import Refused
from workers.carrying import NOTHING, Carrier
from workers.engine.services import Services
from workers.engine.session import Session


@dataclass(frozen=True)
class Front:
    """The run whose turn it is, and when the first fan-out above it runs out of time."""

    run: Row[Any]
    until: int | None


class Conductor:
    """Carries a root run and everything below it as far as the script goes."""

    def __init__(self, database: MemoryDatabase, services: Services, root_id: str, answers: list[Json]) -> None:
        self._database = database
        self._root_id = root_id
        self._answers = answers
        self._until: int | None = None
        self._carrier = Carrier(database, services, "graph run", self._holding)
        #: The root as it was when it was last executed.
        self.root: Session | None = None

    def carry_on(self) -> str | None:
        """Goes on until nothing here can make a run go on; returns the code of a refused answer."""
        while (front := self._front()) is not None:
            if front.until is not None and front.until <= self._database.now_ms():
                self._let_time_pass(front.until)
            elif front.run.status == "queued":
                self._until = front.until
                if self._carrier.carry(front.run.id) == NOTHING:
                    return None  # as it cannot be claimed, it would be its turn for ever
            elif (signal_id := self._asked(front.run)) is not None and self._answers:
                try:
                    answer_in(self._database, Silence(), signal_id, payload=self._answers.pop(0), by="script")
                except Refused as refused:
                    return refused.code
            elif front.run.status == "waiting" and front.run.due_at is not None:
                self._let_time_pass(front.run.due_at)
            else:
                return None
        return None

    def _front(self) -> Front | None:
        until: int | None = None
        query = select(runs_table).where(runs_table.c.id == self._root_id)
        with self._database.read() as connection:
            while (run := connection.execute(query).first()) is not None:
                if run.waiting_on != "children" or run.status in RUN_ENDED:
                    return None if run.status in RUN_ENDED else Front(run, until)
                if run.due_at is not None:
                    until = run.due_at if until is None else min(until, run.due_at)
                below = (runs_table.c.parent_id == run.id) & runs_table.c.status.not_in(sorted(RUN_ENDED))
                query = select(runs_table).where(below).order_by(runs_table.c.position).limit(1)
        return None

    def _asked(self, run: Row[Any]) -> str | None:
        """The oldest question the run waits for."""
        if run.status != "needs_input" and run.waiting_on != "gate":
            return None
        mine = (
            signals_table.c.run_id == run.id,
            signals_table.c.status == "open",
            signals_table.c.kind.in_(sorted(SIGNAL_OF_PARK)),
            ~signals_table.c.carry_on,
        )
        query = select(signals_table.c.id).where(*mine).order_by(signals_table.c.created_at, signals_table.c.id)
        with self._database.read() as connection:
            return connection.execute(query.limit(1)).scalar()

    def _let_time_pass(self, until: int) -> None:
        self._database.pass_until(until)
        self._database.write(lambda c: runs.wake_due(c, 1_000))

    @contextmanager
    def _holding(self, session: Session) -> Iterator[None]:
        """A run below a fan-out whose time is over stops, as it does on a worker that was told so."""
        if session.record.id == self._root_id:
            self.root = session
        if self._until is None:
            yield
            return
        alarm = threading.Timer((self._until - self._database.now_ms()) / 1000, session.stopped.set)
        alarm.daemon = True
        alarm.start()
        try:
            yield
        finally:
            alarm.cancel()
