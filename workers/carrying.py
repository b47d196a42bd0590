"""Carrying a run: it is claimed, read, and executed until it parks, ends, or is lost.

The same for a worker and for `graph run`.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from orchestrator import crashpoints
from orchestrator.records import RunRecord, Wake
from orchestrator.store import claims, loading, runs
from orchestrator.store.claims import Alike, Claim
from orchestrator.store.committer import Group
from orchestrator.store.database import Database
from registry.errors import LeaseStale, RunFailure
from registry.queues import DEFAULT
from workers.engine import ending, loop
from workers.engine.services import Services
from workers.engine.session import Session

log = logging.getLogger(__name__)

#: Around the time in which a session is executed: whoever carries it can be found, and told to stop or to leave.
Hold = Callable[[Session], AbstractContextManager[None]]


@dataclass(frozen=True)
class Carried:
    """What came of a wake-up: a word for the monitor, and the wake-ups of children that a run made."""

    word: str
    children: tuple[Wake, ...] = ()
    #: The run that made them.
    parent_id: str | None = None
    #: Digests of the definitions they are to carry out.
    by: frozenset[str] = frozenset()
    #: Seconds its run spent in calls of models and tools.
    called_s: float = 0.0


@dataclass(frozen=True)
class Claimed:
    """A run that is ours, and what was read of it with others; None: it is read by itself."""

    claim: Claim
    record: RunRecord | None = None


#: Carries a suspect on to its next checkpoint where it can do no harm; None: it proved innocent, and goes on here.
Alone = Callable[[Claim], Carried | None]

#: The run could not be claimed: somebody else has it, or it has nothing to do.
NOTHING = Carried("nothing to do")


class Carrier:
    """Carries runs of one database with one engine, under the name of one worker."""

    def __init__(
        self,
        database: Database,
        services: Services,
        worker_id: str,
        hold: Hold,
        alone: Alone | None = None,
        refill: Callable[[Sequence[str]], None] = lambda _project_ids: None,
        queues: frozenset[str] | None = None,
    ) -> None:
        """
        Args:
            alone: what is done with suspects; none: a run has this process to itself anyway.
            refill: told of projects whose claims made room in the queue for their next wake-ups.
            queues: only runs of these are claimed; none: of whichever.
        """
        self._database = database
        self._services = services
        self._worker_id = worker_id
        self._hold = hold
        self._alone = alone
        self._refill = refill
        self._queues = queues
        self._lease_ms = round(services.limits.lease_s * 1000)
        self._claims = Group(self._claim_together)
        self._alike = Group(self._alike_together)

    def carry(self, run_id: str) -> Carried:
        """Claims a run and carries it as far as it goes."""
        claimed = self.claim(run_id)
        return NOTHING if claimed is None else self.carry_claimed(claimed)

    def claim(self, run_id: str) -> Claimed | None:
        """Claims a run, together with those that other threads claim just now; None: it has nothing to do here."""
        return self._claims.hand_in(run_id)

    def claim_these(self, run_ids: Sequence[str]) -> list[Claimed]:
        """Claims several runs at once; those that somebody else has are not in it."""
        return self._claim(lambda c: claims.claim_all(c, run_ids, self._worker_id, self._lease_ms, self._queues))

    def claim_siblings(self, run_id: str, limit: int) -> list[Claimed]:
        """Claims children of the same parent that nobody has begun."""
        queues = self._queues
        return self._claim(lambda c: claims.claim_siblings(c, run_id, limit, self._worker_id, self._lease_ms, queues))

    def serves(self, wake: Wake) -> bool:
        """Whether a run that is woken may be carried here."""
        return self._queues is None or (wake.queue or DEFAULT) in self._queues

    def claim_alike(self, wanted: Alike) -> list[Claimed]:
        """Claims what may follow a root run in its slot. Of threads that ask together, one gets all there is."""
        return self._alike.hand_in(wanted)

    def carry_claimed(self, claimed: Claimed) -> Carried:
        """Carries a claimed run as far as it goes."""
        claim, run_id = claimed.claim, claimed.claim.run_id
        if self._is_poison(claim):
            return Carried(self._poisoned(claim))
        if claim.suspect and self._alone is not None and (done := self._alone(claim)) is not None:
            return done
        session = self._open(claim, claimed.record)
        if session is None:
            return Carried("failed")
        with self._hold(session):
            loop.drive(session)
        if session.status == "running" and session.leave.is_set() and not session.stopped.is_set():
            self._database.write(lambda c: runs.release_run(c, run_id, claim.fence))
            return Carried("released")
        by = frozenset(child.definition_digest for child in session.children) if session.fanned_out else frozenset()
        return Carried(session.status, session.fanned_out, run_id, by, session.called_s)

    def _claim_together(self, run_ids: Sequence[str]) -> list[Claimed | Exception | None]:
        """For threads whose wake-ups came at the same time; of two wake-ups for one run, one finds it."""
        mine = {one.claim.run_id: one for one in self.claim_these(run_ids)}
        return [mine.pop(run_id, None) for run_id in run_ids]

    def _alike_together(self, asked: Sequence[Alike]) -> list[list[Claimed] | Exception]:
        joined: dict[tuple[str, str], Alike] = {}
        for one in asked:
            key = (one.project_id, one.definition_digest)
            before = joined.get(key, one)
            marked = tuple(dict.fromkeys((*before.marked, *one.marked)))
            joined[key] = replace(one, marked=marked, limit=max(before.limit, one.limit, len(marked)))
        found = self._claim(lambda c: claims.claim_alike(c, list(joined.values()), self._worker_id, self._lease_ms))
        return [found, *([] for _ in asked[1:])]

    def _claim(self, move: Callable[[Connection], dict[str, Claim]]) -> list[Claimed]:
        taken = self._database.write(move)
        for _ in taken:
            crashpoints.reached("claimed")
        if room := sorted({claim.refills for claim in taken.values() if claim.refills}):
            self._refill(room)
        # What took a worker down may have done so by being read: a suspect is read by itself.
        sound = {claim.run_id: claim.fence for claim in taken.values() if not claim.suspect}
        records: dict[str, RunRecord] = {}
        try:
            if sound:
                with self._database.read() as connection:
                    records = loading.fresh(connection, sound)
        except Exception as error:  # each is read by itself, so that what is wrong with one is no fault of the others
            log.warning("%d claimed runs could not be read together: %s", len(sound), error)
        return [Claimed(claim, records.get(run_id)) for run_id, claim in taken.items()]

    def _is_poison(self, claim: Claim) -> bool:
        limits = self._services.limits
        if self._alone is None:
            return claim.claims > limits.run_attempts
        # The first time it had neighbours, who may have been at fault; then only deaths that it died alone count.
        begun = claim.crashes + 1
        return claim.suspect and (begun >= limits.run_attempts or claim.claims > limits.run_claims)

    def _open(self, claim: Claim, record: RunRecord | None = None) -> Session | None:
        if record is None:
            with self._database.read() as connection:
                record = loading.load(connection, claim.run_id, claim.fence)
        return loop.open_session(record, self._services)

    def _poisoned(self, claim: Claim) -> str:
        """Ends a run that took its worker down too often, before it can do so again; be it by being read."""
        seen = self._alone is not None and claim.crashes + 1 >= self._services.limits.run_attempts
        attempts = claim.crashes + 1 if seen else claim.claims - 1
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
