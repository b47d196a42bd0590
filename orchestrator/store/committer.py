"""Group commit: what threads of one process hand in while a transaction is under way shares the next one.

The first thread to arrive works for all that wait (leader and followers); no thread of its own, and no waiting when
nobody else writes. A transaction that fails for one entry's sake is tried again one by one, so that neighbours never
pay for it.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from orchestrator.records import Checkpoint
from orchestrator.store import checkpoints
from orchestrator.store.database import Database
from registry.errors import LeaseStale

T = TypeVar("T")
R = TypeVar("R")

#: Entries one transaction takes at most: bounds how long row locks are held.
GROUP = 64


@dataclass
class _Entry(Generic[T, R]):
    item: T
    #: Set when the entry is committed, or when its thread is to lead the next group.
    turn: threading.Event = field(default_factory=threading.Event)
    committed: bool = False
    result: R | None = None
    error: BaseException | None = None


class Group(Generic[T, R]):
    """Work of one kind, done together.

    Args:
        together: does the work of several in one transaction; gives for each its result, or the error that is its own.
    """

    def __init__(self, together: Callable[[Sequence[T]], Sequence[R | Exception]]) -> None:
        self._together = together
        self._waiting: deque[_Entry[T, R]] = deque()
        self._lock = threading.Lock()
        self._led = False

    def hand_in(self, item: T) -> R:
        """Returns when the work is committed; raises what became of it otherwise."""
        entry: _Entry[T, R] = _Entry(item)
        with self._lock:
            self._waiting.append(entry)
            follow, self._led = self._led, True
        if follow:
            entry.turn.wait()
        if not entry.committed:
            self._lead()
        if entry.error is not None:
            raise entry.error
        return entry.result  # type: ignore[return-value]  # committed without an error

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

    def _commit(self, group: list[_Entry[T, R]]) -> None:
        try:
            for entry, result in zip(group, self._together([entry.item for entry in group]), strict=True):
                if isinstance(result, Exception):
                    entry.error = result
                else:
                    entry.result = result
        except Exception as error:
            if len(group) == 1:
                group[0].error = error
            else:
                for entry in group:
                    self._commit([entry])
        except BaseException:  # this thread is being torn down: what it led for others does not stand either
            for entry in group:
                entry.error = LeaseStale("the worker stopped before this was written")
            raise
        finally:
            for entry in group:
                entry.committed = True
                entry.turn.set()


class Committer(Group[Checkpoint, None]):
    """Writes mid-run checkpoints of one process.

    Args:
        after: told once a group is committed which of its checkpoints stand, in the thread that led it.
    """

    def __init__(
        self, database: Database, *, lease_ms: int, after: Callable[[Sequence[Checkpoint]], None] = lambda _: None
    ) -> None:
        super().__init__(self._write)
        self._database = database
        self._lease_ms = lease_ms
        self._after = after

    def save(self, checkpoint: Checkpoint) -> None:
        """Returns when the checkpoint is committed.

        Raises:
            LeaseStale: the run is not this worker's any more.
        """
        self.hand_in(checkpoint)

    def _write(self, batch: Sequence[Checkpoint]) -> list[Exception | None]:
        stale = self._database.write(lambda c: checkpoints.write(c, batch, lease_ms=self._lease_ms))
        lost = [(c.run_id, c.fence) in stale for c in batch]
        self._after([c for c, gone in zip(batch, lost, strict=True) if not gone])
        return [LeaseStale("the run was taken over or cancelled") if gone else None for gone in lost]
