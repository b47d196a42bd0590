"""A conversation as lines: what the agent says and does, told from the events of its thread.

Words of models, tools and people enter as text, never as markup, with what cannot be seen written out.
"""

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from orchestrator.records import Event
from orchestrator.terminal.sentences import is_stand_in, sentence
from orchestrator.terminal.wording import one_line, visible
from registry.base import Json
from registry.jsontext import compact

#: Characters of a call's input, and of what it brought, in a line.
HEAD: Final = 100
#: Events of children and of what the engine does by itself that are worth a line.
_TOLD: Final = {
    "agent.spawned": "gives work to",
    "agent.completed": "has its answer from",
    "agent.failed": "got nothing from",
    "agent.handoff": "hands over to",
}
_SENTENCES: Final = ("compaction.completed", "compaction.failed", "hook.blocked", "hook.failed", "file.written")


class Talk:
    """Turns the events of one run of a thread into lines, and keeps what it said last."""

    def __init__(self, run_id: str, name: str) -> None:
        self.run_id, self.name = run_id, name
        #: How it ended: completed, failed, cancelled; None: not yet. Of a failed one its code and message.
        self.ended: str | None = None
        self.code: str | None = None
        self.message: str | None = None
        self.text = ""
        self.stand_in = False
        self.cost_usd: float | None = None

    def lines(self, event: Event) -> Iterator[Text]:
        """What an event is worth telling."""
        if event.run_id != self.run_id:
            return
        kind, data = event.kind, event.data
        if kind == "think" and is_stand_in(event) and not self.stand_in:
            self.stand_in = True
            yield Text("(the stand-in, not a model, speaks)", style="magenta")
        elif kind == "message" and data.get("role") == "assistant" and not data.get("kind"):
            self.text = str(data.get("text") or "")
            if self.text.strip():
                yield Text.assemble((f"{one_line(self.name, 40)} > ", "bold"), visible(self.text))
        elif kind == "output" and data.get("text") and data["text"] != self.text:  # a graph's own end
            self.text = str(data["text"])
            yield Text.assemble((f"{one_line(self.name, 40)} > ", "bold"), visible(self.text))
        elif kind == "tool.call":
            yield _below(f"{data.get('name')} {_head(data.get('input'))}", "dim")
        elif kind == "tool.result" and data.get("outcome") != "ok":
            yield _below(f"{data.get('name')}: {data.get('outcome')} {_head(data.get('output'))}", "yellow")
        elif kind in _TOLD:
            yield _below(f"{self.name} {_TOLD[kind]} {data.get('agentId')}", "cyan")
        elif kind in _SENTENCES:
            yield _below(f"{kind}: {sentence(event)}", "dim")
        elif kind == "run.parked" and data.get("on") not in ("signals", "children"):
            yield _below(f"waits on its {data.get('on')}", "blue")
        elif kind in ("run.completed", "run.failed", "run.cancelled"):
            yield from self._end(kind.removeprefix("run."), data)

    def _end(self, how: str, data: dict[str, Json]) -> Iterator[Text]:
        self.ended, self.code = how, data.get("code")
        self.message = data.get("message") or data.get("reason")
        self.cost_usd = data.get("costUsd")
        if how != "completed":
            words = f"{how}: " + ": ".join(str(part) for part in (self.code, self.message) if part)
            yield Text(one_line(words, 500), style="bold red")


def _below(words: str, style: str) -> Text:
    """A line of what is done, under what is said."""
    return Text("  " + one_line(words, HEAD * 2), style=style)


def _head(value: Json) -> str:
    return one_line(value if isinstance(value, str) else compact(value), HEAD)
