"""Carrying a run: it is claimed, read, and executed until it parks, ends, or is lost.

The same for a worker and for `graph run`.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from orchestrator import crashpoints
from orchestrator.records import Wake
from orchestrator.store import loading, runs
from orchestrator.store.database import Database
from orchestrator.store.runs import Claim
from registry.errors import LeaseStale, RunFailure
from workers.engine import ending, loop
from workers.engine.services import Services
from workers.engine.session import Session

log = logging.getLogger(__name__)

#: Around the time in which a session is executed: whoever carries it can be found, and told to stop or to leave.
Hold = Callable[[Session], AbstractContextManager[None]]


@dataclass(frozen=True)
class Carried:
    """What came of a wake-up: a word for the monitor, and the wake-ups of children it made."""

    word: str
    children: tuple[Wake, ...] = ()


#: Carries a suspect on to its next checkpoint where it can do no harm; None: it proved innocent, and goes on here.
Alone = Callable[[Claim], Carried | None]

#: The run could not be claimed: somebody else has it, or it has nothing to do.
NOTHING = Carried("nothing to do")


class Carrier:
    """Carries runs of one database with one engine, under the name of one worker."""

    def __init__(
        self, database: Database, services: Services, worker_id: str, hold: Hold, alone: Alone | None = None
    ) -> None:
        """
        Args:
            alone: what is done with suspects; none: a run has this process to itself anyway.
        """
        self._database = database
        self._services = services
        self._worker_id = worker_id
        self._hold = hold
        self._alone = alone
        self._lease_ms = round(services.limits.lease_s * 1000)

    def carry(self, run_id: str) -> Carried:
        """Claims a run and carries it as far as it goes."""
        claim = self._database.write(lambda c: runs.claim(c, run_id, self._worker_id, self._lease_ms))
        if claim is None:
            return NOTHING
        crashpoints.reached("claimed")
        if self._is_poison(claim):
            return Carried(self._poisoned(claim))
        if claim.suspect and self._alone is not None and (done := self._alone(claim)) is not None:
            return done
        session = self._open(claim)
        if session is None:
            return Carried("failed")
        with self._hold(session):
            loop.drive(session)
        if session.status == "running" and session.leave.is_set() and not session.stopped.is_set():
            self._database.write(lambda c: runs.release_run(c, run_id, claim.fence))
            return Carried("released")
        return Carried(session.status, session.fanned_out)

    def _is_poison(self, claim: Claim) -> bool:
        limits = self._services.limits
        if self._alone is None:
            return claim.claims > limits.run_attempts
        # The first time it had neighbours, who may have been at fault; then only deaths that it died alone count.
        begun = claim.crashes + 1
        return claim.suspect and (begun >= limits.run_attempts or claim.claims > limits.run_claims)

    def _open(self, claim: Claim) -> Session | None:
        with self._database.read() as connection:
            record = loading.load(connection, claim.run_id, claim.fence)
        return loop.open_session(record, self._services)

    def _poisoned(self, claim: Claim) -> str:
        """Ends a run that took its worker down too often, before it can do so again; be it by being read."""
        attempts = claim.claims - 1 if self._alone is None else max(claim.crashes + 1, 1)
        words = f"the run was begun {attempts} times without reaching a checkpoint; its worker died or fell silent"
        failure = RunFailure("poison", words, attempts=attempts)
        try:
            session = self._open(claim)
            if session is not None:
                ending.fail(session, failure)
        except LeaseStale:
            return "nothing to do"
        except Exception:
            log.exception("run %s cannot be read", claim.run_id)
            ending.abandon(claim.run_id, claim.fence, self._services, failure)
        return "poison"
