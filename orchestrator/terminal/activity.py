"""What each run does right now, folded from its events. Rows say which state a run is in; events say at what."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from orchestrator.records import Event
from orchestrator.terminal.sentences import is_stand_in
from orchestrator.terminal.wording import one_line

THINKING = "thinking"


@dataclass
class Activity:
    """The state of the fold; feed it every event of a trace, in order."""

    #: Run id -> names of the calls that are under way, by call id.
    _calls: dict[str, dict[str, str]] = field(default_factory=dict)
    _started: set[str] = field(default_factory=set)
    #: Tasks in which the stand-in spoke.
    stand_in_tasks: set[str] = field(default_factory=set)

    def take(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.run_id is None:
                continue
            self._take(event, event.run_id)

    def doing(self, run_id: str | None) -> str:
        """In words: starting, thinking, or the tools it calls."""
        if run_id is None or run_id not in self._started:
            return "starting"
        names = list(self._calls.get(run_id, {}).values())
        if not names:
            return THINKING
        first = one_line(names[0], 40)
        return first if len(names) == 1 else f"{first} and {len(names) - 1} more"

    def _take(self, event: Event, run_id: str) -> None:
        kind, data = event.kind, event.data
        if kind.startswith(("agent.", "map.")):  # a child's last words come after its end
            return
        if kind in ("run.completed", "run.failed", "run.cancelled"):
            self._calls.pop(run_id, None)
            self._started.discard(run_id)
            return
        self._started.add(run_id)
        if kind == "think" and event.task_id and is_stand_in(event):
            self.stand_in_tasks.add(event.task_id)
        elif kind == "message":  # the calls a model asks for run next
            for call in data.get("toolCalls") or []:
                self._begin(run_id, call.get("id"), call.get("name"))
        elif kind == "tool.call":
            self._begin(run_id, data.get("toolCallId"), data.get("name"))
        elif kind == "node.completed" and data.get("type") == "tool:call":
            self._calls.pop(run_id, None)
        elif kind == "tool.result":
            self._calls.get(run_id, {}).pop(str(data.get("toolCallId")), None)

    def _begin(self, run_id: str, call_id: object, name: object) -> None:
        self._calls.setdefault(run_id, {})[str(call_id)] = str(name)
