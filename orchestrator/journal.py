"""Where the engine writes: all it needs of a store, so that it knows no table; `store_journal` has the rows."""

from collections.abc import Sequence
from typing import Protocol

from orchestrator.records import Checkpoint, Limit, Refusal, Usage, Wake


class Journal(Protocol):
    """What the engine needs of its store."""

    def save(self, checkpoint: Checkpoint) -> list[Wake]:
        """Writes all of it or nothing; returns the wake-ups of children it made, which the caller sends.

        Raises:
            LeaseStale: the run is not the caller's any more.
            Refused: a grant it would consume has been used.
        """
        ...

    def was_refused(self, run_id: str, task_id: str | None, digest: str) -> bool:
        """Whether a person said no to this very call before."""
        ...

    def reserve(self, run_id: str, call_key: str, limits: Sequence[Limit], micro: int) -> Refusal | None:
        """Reserves the worst case of a call in every window; a refusal reserves nothing."""
        ...

    def usage(self, window_id: str) -> Usage: ...

    def open_decisions(self, project_id: str | None) -> int: ...

    def open_decision(self, run_id: str, task_id: str | None, digest: str) -> str | None:
        """The open decision about this very call that nobody waits for: asked again, it is the same one."""
        ...
