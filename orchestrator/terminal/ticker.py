"""The live view where there is no terminal to draw on: one line per change of state, told from the events."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from orchestrator.records import Event
from orchestrator.terminal.activity import Activity
from orchestrator.terminal.rendering import answer_command, stand_in_label
from orchestrator.terminal.scene import Scene
from orchestrator.terminal.sentences import is_stand_in
from orchestrator.terminal.wording import duration, money, one_line, size, word
from registry.base import Json


class Ticker:
    """Turns events into lines, and remembers what need not be said twice."""

    def __init__(self) -> None:
        self._names: Mapping[str, str] = {}
        self._stand_in: set[str] = set()

    def lines(self, events: Iterable[Event], names: Mapping[str, str]) -> Iterator[str]:
        """Lines of the events that change a state; `names` are task keys by id."""
        self._names = names
        for event in events:
            text = self._text(event)
            if text is not None:
                yield text

    def _text(self, event: Event) -> str | None:
        if event.kind in ("project.status", "task.status"):
            reason = event.data.get("reason")
            words = word(str(event.data.get("status"))) + (f": {reason}" if reason else "")
            return self._line(event, words)
        if event.kind == "run.failed":
            return self._line(event, f"{event.data.get('code')}: {event.data.get('message')}")
        if event.kind.startswith("signal."):
            return self._signal(event)
        if event.kind == "think" and is_stand_in(event) and event.task_id and event.task_id not in self._stand_in:
            self._stand_in.add(event.task_id)
            return self._line(event, "the stand-in plays the model")
        return None

    def _signal(self, event: Event) -> str | None:
        data = event.data
        if event.kind == "signal.raised":
            return self._line(event, f"asks: {data.get('title')}")
        if event.kind == "signal.answered":
            return self._line(event, ("rejected" if data.get("rejected") else "answered") + f" by {data.get('by')}")
        if event.kind == "signal.expired":
            return self._line(event, "nobody answered in time, or its run has ended")
        return None

    def _line(self, event: Event, words: str) -> str:
        time = datetime.fromtimestamp(event.at / 1000).astimezone().strftime("%H:%M:%S")
        name = self._names.get(event.task_id or "", "project" if event.task_id is None else event.task_id)
        return f"{time}  {one_line(name, 24):<16}  {one_line(words)}"


def waiting_line(signal: dict[str, Json]) -> str:
    """How to answer a signal that is open."""
    return f"          waits for you: {answer_command(signal)}"


def closing_lines(scene: Scene, activity: Activity, files: Iterable[dict[str, Json]]) -> Iterator[str]:
    """The end in plain words: every file with its path and size, then who spoke, cost and time."""
    for file in files:
        if not file["path"].startswith("inputs/"):
            yield f"{scene.workspace}/{one_line(file['path'], 600)}  {size(file['bytes'])}"
    label = stand_in_label(scene, activity)
    if label:
        yield label
    completed = sum(task.status == "completed" for task in scene.tasks.values())
    cost = money(scene.cost_usd, incomplete=scene.cost_incomplete)
    spent = duration((scene.ended_at or scene.now) - scene.created_at)
    yield f"{word(scene.status)}: {completed} of {len(scene.tasks)} tasks, {cost}, {spent}"
