"""The journal over the rows: a checkpoint is one transaction, and after its commit whoever should look is told.

Checkpoints, and ends of children, that runs of one process hand in together share a transaction. Wake-ups, followers
of the trace and the desk come after the commit: a process that dies in between costs time only.
"""

from collections.abc import Callable, Sequence

from orchestrator import crashpoints
from orchestrator.notify import Notifier
from orchestrator.records import Checkpoint, Limit, Refusal, Usage, Wake
from orchestrator.store import checkpoints, completions, endings, joins, money, signals
from orchestrator.store.committer import Committer, Group
from orchestrator.store.database import Database
from orchestrator.store.money import NoRoom
from registry.errors import LeaseStale


class StoreJournal:
    """One per process.

    Args:
        lease_ms: how long a checkpoint renews its run's lease for.
        notifier: who is told after a commit.
    """

    def __init__(self, database: Database, *, lease_ms: int, notifier: Notifier) -> None:
        self._database = database
        self._notifier = notifier
        self._committer = Committer(database, lease_ms=lease_ms, after=self._stand)
        self._ends = Group(self._end_together)
        self._completions = Group(self._complete_together)
        #: Where wake-ups go; a worker may see to some of them itself.
        self.pass_on: Callable[[Sequence[Wake]], object] = notifier.wake

    def save(self, checkpoint: Checkpoint) -> list[Wake]:
        ready: list[Wake] = []
        if checkpoint.ending is not None and checkpoint.child:
            ready = self._ends.hand_in(checkpoint)
        elif checkpoint.ending is not None and checkpoint.root and checkpoint.ending.status == "completed":
            ready = self._completions.hand_in(checkpoint)
        elif checkpoint.ending is not None:
            ready = self._database.write(lambda c: endings.end(c, checkpoint))
            self._stand([checkpoint])
        elif checkpoint.park is not None:
            ready = self._database.write(lambda c: checkpoints.park(c, checkpoint))
            self._stand([checkpoint])
        else:
            self._committer.save(checkpoint)
        made = {child.id for child in checkpoint.fanout.children} if checkpoint.fanout else set()
        if others := [wake for wake in ready if wake.run_id not in made]:
            self.pass_on(others)
        if checkpoint.signals:
            self._notifier.asked(checkpoint.owner_id, [signal.id for signal in checkpoint.signals])
        if checkpoint.ending is not None and checkpoint.asked:
            self._notifier.ended(checkpoint.owner_id, checkpoint.run_id)
        crashpoints.reached("told")
        return [wake for wake in ready if wake.run_id in made]

    def was_refused(self, run_id: str, task_id: str | None, digest: str) -> bool:
        with self._database.read() as connection:
            return signals.was_refused(connection, task_id, run_id, digest)

    def reserve(self, run_id: str, call_key: str, limits: Sequence[Limit], micro: int) -> Refusal | None:
        try:
            self._database.write(lambda c: money.reserve(c, run_id, call_key, limits, micro))
        except NoRoom as full:
            return full.refusal
        return None

    def usage(self, window_id: str) -> Usage:
        with self._database.read() as connection:
            return money.usage(connection, window_id)

    def open_decisions(self, project_id: str | None) -> int:
        if project_id is None:
            return 0
        with self._database.read() as connection:
            return signals.open_decisions(connection, project_id)

    def open_decision(self, run_id: str, task_id: str | None, digest: str) -> str | None:
        with self._database.read() as connection:
            return signals.open_decision(connection, task_id, run_id, digest)

    def _end_together(self, batch: Sequence[Checkpoint]) -> list[list[Wake] | Exception]:
        ended = self._database.write(lambda c: joins.end(c, batch))
        self._stand([checkpoint for checkpoint, ready in ended if ready is not None])
        return [LeaseStale(endings.LOST) if ready is None else ready for _, ready in ended]

    def _complete_together(self, batch: Sequence[Checkpoint]) -> list[list[Wake] | Exception]:
        ended = self._database.write(lambda c: completions.end(c, batch))
        self._stand([checkpoint for checkpoint, ready in zip(batch, ended, strict=True) if ready is not None])
        return [LeaseStale(endings.LOST) if ready is None else ready for ready in ended]

    def _stand(self, batch: Sequence[Checkpoint]) -> None:
        """These checkpoints are committed: followers of a trace are told once for all of them."""
        for checkpoint in batch:
            crashpoints.reached(_point(checkpoint))
        last = {c.trace_id: c.events[-1].seq for c in batch if c.events}
        for trace_id, seq in last.items():
            self._notifier.grown(trace_id, seq)


def _point(checkpoint: Checkpoint) -> str:
    """The crash point behind this commit."""
    if checkpoint.ending is not None:
        return "ended"
    if checkpoint.park is not None:
        return "parked"
    if any(call.status == "started" for call in checkpoint.calls):
        return "begun"
    return "noted" if checkpoint.number is None else "checkpoint"
