"""A conversation as lines: what the agent says and does, told from the events of its thread.

Words of models, tools and people enter as text, never as markup, with what cannot be seen written out.
"""

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from orchestrator.live import Delta
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
        #: What of the message under way has been shown while it came.
        self.said = ""

    def hear(self, delta: Delta) -> Text | None:
        """What a piece of a message is worth showing right away, in the line that is under way."""
        if delta.run_id != self.run_id or delta.kind != "message.delta" or not delta.text:
            return None
        if delta.at != len(self.said) or (not self.said and not delta.text.strip()):
            return None  # it begins anew, or a piece was lost: the message will tell
        begins = not self.said
        self.said += delta.text
        words = visible(delta.text)
        return Text.assemble((self._prefix, "bold"), words) if begins else Text(words)

    @property
    def _prefix(self) -> str:
        return f"{one_line(self.name, 40)} > "

    def _speech(self) -> Text:
        """The message, or what of it was not shown yet; where it came out another way, all of it again."""
        said, self.said = self.said, ""
        if said and self.text.startswith(said):
            return Text(visible(self.text[len(said) :]))
        return Text.assemble(("\n" if said else "", ""), (self._prefix, "bold"), visible(self.text))

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
                yield self._speech()
        elif kind == "output" and data.get("text") and data["text"] != self.text:  # a graph's own end
            self.text = str(data["text"])
            yield self._speech()
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
            yield Text.assemble("\n" if self.said else "", (one_line(words, 500), "bold red"))
            self.said = ""


def _below(words: str, style: str) -> Text:
    """A line of what is done, under what is said."""
    return Text("  " + one_line(words, HEAD * 2), style=style)


def _head(value: Json) -> str:
    return one_line(value if isinstance(value, str) else compact(value), HEAD)
