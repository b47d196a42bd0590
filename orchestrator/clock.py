"""The clock: one ticker that finds rows which should move and do not (promise 1).

It runs in every worker, and a lease elects one at a time. A tick is bounded, repairs only through the ordinary moves,
and may run doubled without harm. At rest a tick is one small read.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, exists, or_, select

from orchestrator import crashpoints, desk, pruning, queue
from orchestrator.records import Wake
from orchestrator.settings import Settings
from orchestrator.store import actions, leases, requests, retention, runs, schedules, signals, stuck, unserved, workers
from orchestrator.store.database import Database, now_ms
from orchestrator.store.tables import runs as runs_table
from orchestrator.store.tables import signals as signals_table

log = logging.getLogger(__name__)

NAME = "clock"
#: Rows one tick moves of a kind.
BATCH = 200
#: Milliseconds the election holds at most; renewed at half of it.
LEASE_MS = 10_000
#: Seconds between looks whether Redis shows what the rows say.
DESK_S = 10
#: Seconds between looks for what is kept too long.
FORGET_S = 600
#: Pieces of old projects that one such look takes away.
PIECES = 5
#: Seconds between looks for waits that are over though no move said so.
STUCK_S = 30

#: Whether a run's time has come, a question's is over, or an answered action or a call asked for over HTTP waits.
_DUE = select(
    or_(
        exists().where(runs_table.c.due_at <= now_ms()),
        exists().where(signals_table.c.status == "open", signals_table.c.expires_at <= now_ms()),
        exists().where(
            *(signals_table.c.carry_on, signals_table.c.status == "answered", ~signals_table.c.rejected),
            signals_table.c.execution.in_(("none", "started")),
        ),
        requests.any_due().exists(),
    )
)


@dataclass
class Repairs:
    """What a tick moved; in healthy operation close to nothing."""

    leases: int = 0
    timers: int = 0
    stuck: int = 0
    signals: int = 0
    wakes: int = 0
    cards: int = 0
    schedules: int = 0
    requests: int = 0

    @property
    def any(self) -> bool:
        """Whether anything was moved."""
        return any(vars(self).values())


class Clock:
    """Ticks for one worker; does nothing while another holds the lease."""

    def __init__(self, settings: Settings, database: Database, holder: str) -> None:
        self._settings = settings
        self._database = database
        self._holder = holder
        # No longer than a run's lease: a worker that dies may have been the clock as well.
        self._lease_ms = min(LEASE_MS, round(settings.limits.lease_s * 1000))
        self._mine_until = 0.0
        self._desk_at = 0.0
        self._stuck_at = 0.0
        self._forget_at = 0.0

    def tick(self) -> Repairs:
        """One look; a fault of one kind of repair does not keep the others from running."""
        done = Repairs()
        if not self._elected():
            return done
        if self._anything_due():
            for repair in (
                *(self._leases, self._timers, self._signals, self._wakes),
                *(self._actions, self._schedules, self._requests),
            ):
                try:
                    repair(done)
                except Exception:
                    log.exception("the clock could not repair %s", repair.__name__.strip("_"))
        if time.monotonic() >= self._stuck_at:
            self._stuck_at = time.monotonic() + STUCK_S
            self._stuck(done)
        if time.monotonic() >= self._forget_at:
            self._forget_at = time.monotonic() + FORGET_S
            self._forget()
        if time.monotonic() >= self._desk_at:
            self._desk_at = time.monotonic() + DESK_S
            done.cards = desk.refresh_all(self._settings)
        if done.any:
            log.info("clock: %s", done)
        return done

    def resign(self) -> None:
        """Lets another clock take over at once."""
        self._database.write(lambda c: leases.resign(c, NAME, self._holder))
        self._mine_until = 0.0

    def _elected(self) -> bool:
        if time.monotonic() < self._mine_until:
            return True
        if not self._database.write(lambda c: leases.elect(c, NAME, self._holder, self._lease_ms)):
            return False
        self._mine_until = time.monotonic() + self._lease_ms / 2000
        crashpoints.reached("elected")
        return True

    def _anything_due(self) -> bool:
        """One look at rest, and one at the schedules."""
        with self._database.read() as connection:
            return bool(connection.execute(_DUE).scalar()) or schedules.any_due(connection)

    def _leases(self, done: Repairs) -> None:
        done.leases = len(self._database.write(lambda c: runs.expire_leases(c, BATCH)))
        if done.leases:
            crashpoints.reached("taken_back")
            self._send(lambda c: runs.unsent_wakes(c, BATCH))

    def _timers(self, done: Repairs) -> None:
        done.timers = len(self._database.write(lambda c: runs.wake_due(c, BATCH)))
        if done.timers:
            crashpoints.reached("due")
            self._send(lambda c: runs.unsent_wakes(c, BATCH))

    def _stuck(self, done: Repairs) -> None:
        with self._database.read() as connection:
            if not stuck.find(connection, 1):
                return
        done.stuck = len(self._database.write(lambda c: stuck.wake(c, BATCH)))
        if done.stuck:
            self._send(lambda c: runs.unsent_wakes(c, BATCH))

    def _forget(self) -> None:
        """What agents kept beside their runs and is past its time; some at a time, so that nobody waits for it."""
        keeping = self._settings.keeping
        try:
            gone = self._database.write(lambda c: retention.forget(c, keeping.recall_days, keeping.agenda_days, BATCH))
        except Exception:
            log.exception("the clock could not forget what is past its time")
            return
        try:
            more = pruning.prune_some(self._settings, PIECES)
        except Exception:
            log.exception("the clock could not prune what is past its time")
            return
        if more or gone >= BATCH:
            self._forget_at = 0.0

    def _signals(self, done: Repairs) -> None:
        closed = self._database.write(lambda c: signals.expire_due(c, BATCH))
        done.signals = len(closed)
        if closed:
            crashpoints.reached("expired")
        for signal in closed:
            queue.send(self._settings, signal.wakes)
            desk.changed(self._settings, signal.owner_id, [signal.signal_id])

    def _wakes(self, done: Repairs) -> None:
        """Sends again what nobody claimed, no more than there are slots idle: the rest would only queue up twice.
        To a queue that nobody serves nothing is sent again."""
        with self._database.read() as connection:
            idle, served = workers.idle_slots(connection), workers.served(connection)
            bare = unserved.any_due(connection, served)
        done.wakes = self._send(lambda c: runs.overdue_wakes(c, min(idle, BATCH), served)) if idle else 0
        for alert in self._database.write(lambda c: unserved.postpone(c, served, BATCH)) if bare else ():
            desk.changed(self._settings, alert.owner_id, [alert.signal_id])
            log.warning("project %s: no worker serves a queue it waits in", alert.project_id)

    def _actions(self, done: Repairs) -> None:
        """Answered actions that nobody began, and those whose worker fell silent in the middle."""
        with self._database.read() as connection:
            waiting = actions.waiting(connection, BATCH)
        for project_id, where in waiting:
            queue.advance(self._settings, project_id, "answered actions", where)
        silent_ms = round(self._settings.limits.lease_s * 1000)
        if self._database.write(lambda c: actions.give_up(c, BATCH, silent_ms)):
            self._desk_at = 0.0
        done.signals += len(waiting)

    def _schedules(self, done: Repairs) -> None:
        with self._database.read() as connection:
            if not schedules.any_due(connection):
                return
        from orchestrator import firing  # the catalogue is read for it, which a clock at rest need not pay

        done.schedules = firing.fire_due(self._settings, self._database, BATCH)

    def _requests(self, done: Repairs) -> None:
        """Calls asked for over HTTP that nobody claimed, or whose worker fell silent."""
        again = self._database.write(lambda c: requests.look_after(c, BATCH))
        done.requests = queue.call(self._settings, again)

    def _send(self, move: Callable[[Connection], list[Wake]]) -> int:
        ready = self._database.write(move)
        if ready:
            crashpoints.reached("rewoken")
        return queue.send(self._settings, ready)
