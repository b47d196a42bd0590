"""The journal over the rows: a checkpoint is one transaction, and after its commit whoever should look is told.

Wake-ups, followers of the trace and the desk come after the commit: a process that dies in between costs time only.
"""

from collections.abc import Sequence

from orchestrator import crashpoints
from orchestrator.notify import Notifier
from orchestrator.records import Checkpoint, Limit, Refusal, Usage, Wake
from orchestrator.store import checkpoints, endings, money, signals
from orchestrator.store.committer import Committer
from orchestrator.store.database import Database
from orchestrator.store.money import NoRoom


class StoreJournal:
    """One per process.

    Args:
        lease_ms: how long a checkpoint renews its run's lease for.
        notifier: who is told after a commit.
    """

    def __init__(self, database: Database, *, lease_ms: int, notifier: Notifier) -> None:
        self._database = database
        self._notifier = notifier
        self._committer = Committer(database, lease_ms=lease_ms)

    def save(self, checkpoint: Checkpoint) -> list[Wake]:
        ready: list[Wake] = []
        if checkpoint.ending is not None:
            ready = self._database.write(lambda c: endings.end(c, checkpoint))
        elif checkpoint.park is not None:
            ready = self._database.write(lambda c: checkpoints.park(c, checkpoint))
        else:
            self._committer.save(checkpoint)
        crashpoints.reached(_point(checkpoint))
        made = {child.id for child in checkpoint.fanout.children} if checkpoint.fanout else set()
        self._notifier.wake([wake for wake in ready if wake.run_id not in made])
        self._tell(checkpoint)
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

    def _tell(self, checkpoint: Checkpoint) -> None:
        if checkpoint.events:
            self._notifier.grown(checkpoint.trace_id, checkpoint.events[-1].seq)
        self._notifier.asked(checkpoint.owner_id, [signal.id for signal in checkpoint.signals])
        if checkpoint.ending is not None:
            self._notifier.ended(checkpoint.owner_id, checkpoint.run_id)


def _point(checkpoint: Checkpoint) -> str:
    """The crash point behind this commit."""
    if checkpoint.ending is not None:
        return "ended"
    if checkpoint.park is not None:
        return "parked"
    if any(call.status == "started" for call in checkpoint.calls):
        return "begun"
    return "noted" if checkpoint.number is None else "checkpoint"
