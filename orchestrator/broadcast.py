"""The notifier of a system: the broker wakes workers, Redis reaches followers and the desk."""

from collections.abc import Sequence

from orchestrator import desk, events, queue
from orchestrator.records import Wake
from orchestrator.settings import Settings


class Broadcast:
    """Tells everybody, by way of the broker and Redis."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def wake(self, wakes: Sequence[Wake]) -> None:
        queue.send(self._settings, wakes)

    def advance(self, project_id: str, title: str) -> None:
        queue.advance(self._settings, project_id, title)

    def grown(self, trace_id: str, seq: int) -> None:
        events.publish(self._settings, trace_id, seq)

    def asked(self, owner_id: str, signal_ids: Sequence[str]) -> None:
        desk.changed(self._settings, owner_id, signal_ids)

    def ended(self, owner_id: str, run_id: str) -> None:
        desk.run_ended(self._settings, owner_id, run_id)
