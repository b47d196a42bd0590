"""What each run does right now, and since when, folded from its events. Rows say which state a run is in; events say at
what, and how it came there."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from orchestrator.deltas import Delta
from orchestrator.records import Event
from orchestrator.states import RUN_ENDED
from orchestrator.terminal.sentences import is_stand_in
from orchestrator.terminal.wording import one_line
from registry.base import Json
from registry.jsontext import compact

THINKING = "thinking"
#: Characters kept of what a run says while it says it.
SAID: Final = 4_000
#: Characters of one argument in a line.
_ARGUMENT: Final = 40


@dataclass(frozen=True)
class Stretch:
    """A time in which a run did one thing: queued, work, you, timer, gate, children, backoff, turn."""

    what: str
    start: int
    #: None: it goes on.
    end: int | None = None


@dataclass
class Run:
    """One run as its events tell it. Times are epoch milliseconds."""

    id: str
    task_id: str | None
    agent_id: str | None
    parent_id: str | None = None
    #: Its place among the calls or items of its parent, from 0; None: a root run.
    position: int | None = None
    status: str = "queued"
    waiting_on: str | None = None
    #: When its timer rings.
    until: int | None = None
    #: Why it parked, as its graph says.
    reason: str | None = None
    attempt: int = 1
    #: Its code and message, where it failed.
    fault: str | None = None
    node: str | None = None
    #: Calls under way by their id, in words.
    calls: dict[str, str] = field(default_factory=dict)
    children: list[str] = field(default_factory=list)
    stretches: list[Stretch] = field(default_factory=list)
    #: The answer under way, as far as it was heard; and the characters of it that came before.
    said: str = ""
    heard: int = 0

    @property
    def ended(self) -> bool:
        return self.status in RUN_ENDED

    @property
    def since(self) -> int:
        """When it came into the state it is in."""
        return self.stretches[-1].end or self.stretches[-1].start if self.stretches else 0

    @property
    def began(self) -> int:
        return self.stretches[0].start if self.stretches else 0

    def move(self, what: str | None, at: int) -> None:
        """It does something else from now on; None: it is over."""
        if self.stretches and self.stretches[-1].end is None:
            last = self.stretches[-1]
            if last.what == what:
                return
            self.stretches[-1] = Stretch(last.what, last.start, max(last.start, at))
        if what is not None:
            self.stretches.append(Stretch(what, at))

    def doing(self) -> str:
        """In words: thinking, or the tools it calls."""
        told = list(self.calls.values())
        if not told:
            return THINKING
        return told[0] if len(told) == 1 else f"{told[0]} and {len(told) - 1} more"


@dataclass
class Activity:
    """The state of the fold; feed it every event of a trace, in order."""

    #: By id, in the order they were made.
    runs: dict[str, Run] = field(default_factory=dict)
    #: What agents are called, by id, as the team was told and children were announced.
    names: dict[str, str] = field(default_factory=dict)
    #: Tasks in which the stand-in spoke.
    stand_in_tasks: set[str] = field(default_factory=set)

    def take(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.kind == "team.assembled":
                members = event.data.get("members") or []
                self.names |= {str(one.get("agentId")): str(one.get("name")) for one in members}
            elif event.run_id is not None:
                self._take(event, event.run_id)

    def hear(self, delta: Delta) -> None:
        """Takes a piece of an answer while it is said."""
        run = self.runs.get(delta.run_id)
        if run is None or run.ended:
            return
        if delta.at == 0:
            run.said, run.heard = "", 0
        missing = "…" if delta.at > run.heard else ""  # a piece was lost, or we came in the middle
        run.said = (run.said + missing + delta.text)[-SAID:]
        run.heard = delta.at + len(delta.text)

    def doing(self, run_id: str | None) -> str:
        """In words: starting, thinking, or the tools it calls."""
        run = self.runs.get(run_id or "")
        return run.doing() if run is not None and run.status not in ("queued", *RUN_ENDED) else "starting"

    def name(self, run: Run) -> str:
        """What the agent of a run is called."""
        return self.names.get(run.agent_id or "", run.agent_id or "an agent")

    def roots(self, task_id: str | None) -> list[Run]:
        """The root runs of a task in the order they were made."""
        return [run for run in self.runs.values() if run.task_id == task_id and run.parent_id is None]

    def _take(self, event: Event, run_id: str) -> None:
        kind, data = event.kind, event.data
        run = self.runs.get(run_id)
        if run is None:
            run = self.runs[run_id] = Run(run_id, event.task_id, event.agent_id, data.get("parentRunId"))
            run.move("queued" if kind == "run.started" and run.parent_id else "work", event.at)
        if kind in ("agent.spawned", "map.item.started"):
            self._child(run, event)
        elif kind.startswith(("agent.", "map.")):  # a child's last words come after its end
            if kind == "agent.handoff" and data.get("agentId"):
                run.agent_id = str(data["agentId"])
            return
        elif kind.startswith("run."):
            _move(run, kind, data, event.at)
            return
        run.node = event.node_id or run.node
        if run.status == "queued":
            run.status = "running"
        if kind == "think" and event.task_id and is_stand_in(event):
            self.stand_in_tasks.add(event.task_id)
        _work(run, kind, data)

    def _child(self, parent: Run, event: Event) -> None:
        child_id = event.data.get("childRunId")
        if not child_id or child_id in self.runs:
            return
        child = Run(str(child_id), parent.task_id, event.data.get("agentId") or parent.agent_id, parent.id)
        child.position = event.data.get("index")
        if child.agent_id and event.data.get("agentName"):  # made for this project: no team knows it
            self.names.setdefault(child.agent_id, str(event.data["agentName"]))
        child.move("queued", event.at)
        self.runs[child.id] = child
        parent.children.append(child.id)


def _move(run: Run, kind: str, data: dict[str, Any], at: int) -> None:
    how = kind.removeprefix("run.")
    if how in ("started", "resumed", "retrying"):
        run.status, run.waiting_on, run.until, run.reason = "running", None, None, None
        run.attempt = int(data.get("attempt") or run.attempt)
        run.move("work", at)
    elif how == "parked":
        run.status, run.waiting_on = str(data.get("status") or "waiting"), data.get("on")
        run.until, run.reason = data.get("until"), data.get("reason")
        run.move("you" if run.waiting_on == "signals" else str(run.waiting_on), at)
    elif how in RUN_ENDED:
        run.status, run.said, run.heard = how, "", 0
        run.calls.clear()
        told = [str(data[name]) for name in ("code", "message", "reason") if data.get(name)]
        run.fault = ": ".join(told) if how == "failed" and told else None
        run.move(None, at)


def _work(run: Run, kind: str, data: dict[str, Any]) -> None:
    if kind == "message":  # the calls a model asks for run next
        if data.get("role") == "assistant":
            run.said, run.heard = "", 0
        for call in data.get("toolCalls") or []:
            run.calls[str(call.get("id"))] = call_words(call.get("name"), call.get("args"))
    elif kind == "tool.call":
        run.calls[str(data.get("toolCallId"))] = call_words(data.get("name"), data.get("input"))
    elif kind == "node.completed" and data.get("type") == "tool:call":
        run.calls.clear()
    elif kind == "tool.result":
        run.calls.pop(str(data.get("toolCallId")), None)


def call_words(name: object, arguments: Json) -> str:
    """A call in a line: files.read path=notes.md."""
    words = one_line(name, 40)
    if not isinstance(arguments, dict):
        return words
    told = [f"{one_line(key, 20)}={_argument(value)}" for key, value in list(arguments.items())[:3]]
    more = ["…"] if len(arguments) > 3 else []
    return " ".join([words, *told, *more])


def _argument(value: Json) -> str:
    return one_line(value if isinstance(value, str) else compact(value), _ARGUMENT)
