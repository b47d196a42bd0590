"""The end of the trace as it grows, filtered by what it is about or by words in it."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.records import Event
from orchestrator.terminal.activity import Activity
from orchestrator.terminal.scene import Scene
from orchestrator.terminal.tracing import Names, line_of, short_line
from orchestrator.terminal.wording import one_line

#: Lines kept; older ones are for `officina trace`.
KEPT: Final = 500
#: Columns below which number, task and agent of a line leave its words no room.
NARROW: Final = 96
#: Filter -> beginnings of the kinds it lets through.
FILTERS: Final[dict[str, tuple[str, ...]]] = {
    "everything": ("",),
    "story": ("",),
    "model": ("think", "message", "output"),
    "tools": ("tool.",),
    "states": ("project.", "task.", "run.", "team."),
    "questions": ("signal.",),
    "files": ("file.",),
    "problems": ("run.failed", "hook.", "mcp.failed", "tool.result", "task.status", "signal.expired", "agent.failed"),
}
#: What the story leaves out: other lines tell it.
_QUIET: Final = ("node.completed", "message", "tool.call")


@dataclass
class Tail:
    """The last lines, and which of them are wanted."""

    group: str = "story"
    words: str = ""
    _lines: deque[Event] = field(default_factory=lambda: deque(maxlen=KEPT))

    def take(self, events: Iterable[Event]) -> None:
        self._lines.extend(events)

    def turn(self) -> None:
        """The next filter."""
        groups = list(FILTERS)
        self.group = groups[(groups.index(self.group) + 1) % len(groups)]

    def draw(self, scene: Scene, activity: Activity, width: int) -> RenderableType:
        """The lines that are wanted, the last one at the end; on a narrow screen two for an event at most."""
        keys = {task.id: task.key for task in scene.tasks.values()}
        names = Names(scene.id, keys, activity.names)
        told = [(event, line_of(event, names)) for event in list(self._lines) if self._wanted(event)]
        if self.words:
            told = [(event, line) for event, line in told if self.words.lower() in line.lower()]
        if width < NARROW:
            lines = [Text(one_line(short_line(event), 2 * width - 8), style=_style(event)) for event, _ in told]
        else:
            lines = [Text(line, style=_style(event), no_wrap=True, overflow="ellipsis") for event, line in told]
        return Group(*lines) if lines else Text("nothing yet that this filter lets through", style="dim")

    def title(self) -> str:
        return f"{self.group}, with {self.words!r}" if self.words else self.group

    def _wanted(self, event: Event) -> bool:
        if self.group == "story":
            return event.kind not in _QUIET
        return event.kind.startswith(FILTERS[self.group]) and (self.group != "problems" or is_problem(event))


def is_problem(event: Event) -> bool:
    """Whether something went wrong here."""
    if event.kind == "tool.result":
        return event.data.get("outcome") != "ok"
    return event.kind != "task.status" or event.data.get("status") in ("failed", "skipped")


def _style(event: Event) -> str:
    if event.kind in ("run.failed", "agent.failed") or (event.kind == "tool.result" and is_problem(event)):
        return "red"
    return "yellow" if event.kind.startswith("signal.") else "dim" if event.kind in _QUIET else ""
