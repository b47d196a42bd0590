"""Who is told once rows are committed: workers by wake-ups, followers of a trace, the desk.

Nothing waits for it and nothing depends on it: what was not told is found by whoever looks (promise 1). A store that
only one process uses, and which looks by itself, has nobody to tell.
"""

from collections.abc import Sequence
from typing import Protocol

from orchestrator.records import Wake


class Notifier(Protocol):
    """What the store's callers say after a commit; none of it raises."""

    def wake(self, wakes: Sequence[Wake]) -> None:
        """These runs are queued."""
        ...

    def advance(self, project_id: str, title: str) -> None:
        """Somebody should look at a whole project."""
        ...

    def grown(self, trace_id: str, seq: int) -> None:
        """A trace has new lines, the last of this number; 0: of whichever."""
        ...

    def asked(self, owner_id: str, signal_ids: Sequence[str]) -> None:
        """These signals were raised, answered or closed."""
        ...

    def ended(self, owner_id: str, run_id: str) -> None:
        """A run ended, and its questions with it."""
        ...


class Silence:
    """Tells nobody."""

    def wake(self, wakes: Sequence[Wake]) -> None: ...

    def advance(self, project_id: str, title: str) -> None: ...

    def grown(self, trace_id: str, seq: int) -> None: ...

    def asked(self, owner_id: str, signal_ids: Sequence[str]) -> None: ...

    def ended(self, owner_id: str, run_id: str) -> None: ...
