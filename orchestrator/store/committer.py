"""Group commit: the checkpoints that runs of one process hand in while a commit is under way share the next one.

The first thread to arrive writes for all that wait (leader and followers); no thread of its own, and no waiting when
nobody else writes. A transaction that fails for one checkpoint's sake is tried again one by one, so that neighbours
never pay for it.
"""

import threading
from collections import deque
from dataclasses import dataclass, field

from orchestrator.records import Checkpoint
from orchestrator.store import checkpoints
from orchestrator.store.database import Database
from registry.errors import LeaseStale

#: Checkpoints one transaction takes at most: bounds how long row locks are held.
GROUP = 64


@dataclass
class _Entry:
    checkpoint: Checkpoint
    #: Set when the entry is committed, or when its thread is to lead the next group.
    turn: threading.Event = field(default_factory=threading.Event)
    committed: bool = False
    error: BaseException | None = None


class Committer:
    """Writes mid-run checkpoints of one process."""

    def __init__(self, database: Database, *, lease_ms: int) -> None:
        self._database = database
        self._lease_ms = lease_ms
        self._waiting: deque[_Entry] = deque()
        self._lock = threading.Lock()
        self._led = False

    def save(self, checkpoint: Checkpoint) -> None:
        """Returns when the checkpoint is committed.

        Raises:
            LeaseStale: the run is not this worker's any more.
        """
        entry = _Entry(checkpoint)
        with self._lock:
            self._waiting.append(entry)
            follow, self._led = self._led, True
        if follow:
            entry.turn.wait()
        if not entry.committed:
            self._lead()
        if entry.error is not None:
            raise entry.error

    def _lead(self) -> None:
        """Commits one group, the leader's own entry in it, and appoints the next leader."""
        with self._lock:
            group = [self._waiting.popleft() for _ in range(min(GROUP, len(self._waiting)))]
        try:
            self._commit(group)
        finally:
            with self._lock:
                self._led = bool(self._waiting)
                heir = self._waiting[0] if self._waiting else None
            if heir is not None:
                heir.turn.set()

    def _commit(self, group: list[_Entry]) -> None:
        try:
            self._write(group)
        except Exception as error:
            if len(group) == 1:
                group[0].error = error
            else:
                for entry in group:
                    self._commit([entry])
        except BaseException:  # this thread is being torn down: what it led for others does not stand either
            for entry in group:
                entry.error = LeaseStale("the worker stopped before the checkpoint was written")
            raise
        finally:
            for entry in group:
                entry.committed = True
                entry.turn.set()

    def _write(self, group: list[_Entry]) -> None:
        batch = [entry.checkpoint for entry in group]
        stale = self._database.write(lambda c: checkpoints.write(c, batch, lease_ms=self._lease_ms))
        for entry in group:
            if (entry.checkpoint.run_id, entry.checkpoint.fence) in stale:
                entry.error = LeaseStale("the run was taken over or cancelled")
