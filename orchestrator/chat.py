"""A conversation in the terminal: lines in, what the agent says and does out, questions asked where they come up.

The thread lives in the rows and its runs on workers. Whoever sits here may leave and come back: nothing but the
looking ends.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from orchestrator.deltas import Delta
from orchestrator.records import Event
from orchestrator.rooms import Room
from orchestrator.states import RUN_ENDED
from orchestrator.terminal import prompting
from orchestrator.terminal.rendering import answer_command
from orchestrator.terminal.talking import Talk
from orchestrator.terminal.wording import one_line
from registry.base import Json
from registry.errors import Refused, SkillError
from registry.ids import new_id

if TYPE_CHECKING:
    from orchestrator.attachments import Attachment

#: Seconds a run may wait for a worker before that is worth a word.
PATIENCE_S = 5.0
#: Refusals of a message for which its sender only has to wait.
BUSY = ("thread_busy", "pending_signal")
#: Characters of a message that become a title.
TITLE_CHARS = 60
HELP = "/answer WORDS answers what is asked; /compact sums the thread up; /stop ends what runs; /quit leaves; // says /"

Say = Callable[[dict[str, Json]], None]


@dataclass
class Turn:
    """What came of one message."""

    thread_id: str
    run_id: str
    status: str
    text: str = ""
    code: str | None = None
    message: str | None = None
    stand_in: bool = False
    cost_usd: float | None = None
    signals: list[dict[str, Json]] = field(default_factory=list)

    def to_json(self) -> dict[str, Json]:
        told = {
            "threadId": self.thread_id,
            "runId": self.run_id,
            "status": self.status,
            "text": self.text,
            "code": self.code,
            "message": self.message,
            "costUsd": self.cost_usd,
            "standIn": self.stand_in or None,
            "signals": self.signals or None,
        }
        return {key: value for key, value in told.items() if value is not None}


class Chat:
    """One seat in a thread.

    Args:
        read: the next line; raises `EOFError` when there is none. Its argument is what to ask with.
        direct: somebody sits at a terminal: questions are asked right here. Else a line that begins with `/answer`
            answers one, so that no line of a script is ever taken for a yes it was not meant to be.
        tell: takes each turn as JSON, instead of lines on the console.
        unnamed: the thread has no title yet: the first message becomes it.
        attached: files that come with the first message.
    """

    def __init__(
        self,
        room: Room,
        console: Console,
        read: Callable[[str], str],
        *,
        direct: bool = False,
        tell: Say | None = None,
        unnamed: bool = False,
        attached: "Sequence[Attachment]" = (),
    ) -> None:
        self.room, self.thread_id, self._console = room, room.id, console
        self._read, self._direct, self._tell = read, direct, tell
        self._unnamed, self._attached = unnamed, attached
        self._seen = 0
        self._all_well = True
        #: A line that was read to answer a question and was no answer: the next thing that is said.
        self._kept: str | None = None

    def run(self) -> int:
        """Talks until there are no more lines; 0 when every run completed."""
        under_way = self.room.view()["runId"]
        if under_way is not None:  # somebody left in the middle: catch up with its run from where it began
            if not self._follow(str(under_way)):
                return 1
        else:
            self._seen = self.room.last()
        for line in self._lines():
            if not self._take(line):
                return 1
        return 0 if self._all_well else 1

    def _lines(self) -> Iterator[str]:
        while True:
            line, self._kept = self._kept, None
            if line is None:
                try:
                    line = self._read("you > ")
                except EOFError:
                    return
            line = line.strip()
            if line == "/quit":
                return
            if line:
                yield line

    def _take(self, line: str) -> bool:
        """Acts on one line; False when the conversation cannot go on here."""
        if line.startswith("/") and not line.startswith("//"):
            return self._command(line)
        words, key = line.removeprefix("/"), new_id()
        while True:
            try:
                run_id = self.room.send(words, key, self._attached)
            except (Refused, SkillError) as refused:
                if refused.code not in BUSY:
                    return self._refused(refused)
                # A schedule's message was before us, or somebody else's: it is shown, and then it is our turn.
                under_way = self.room.view()["runId"]
                if under_way is not None and not self._follow(str(under_way)):
                    return False
                continue
            self._attached = ()
            if self._unnamed:
                self._unnamed = False
                self.room.rename(one_line(words, TITLE_CHARS))
            return self._follow(run_id)

    def _command(self, line: str) -> bool:
        word, _, _ = line.partition(" ")
        try:
            if word == "/compact":
                return self._follow(self.room.compact())
            if word == "/stop":
                self.room.stop()
                return True
        except Refused as refused:
            return self._refused(refused)
        words = "nothing is asked just now" if word == "/answer" else f"there is no {word[:40]}; {HELP}"
        self._say(Text(words, style="yellow"))
        self._all_well = self._all_well and self._direct
        return True

    def _refused(self, refused: Refused | SkillError) -> bool:
        self._say(Text(f"{refused.code}: {refused.message}", style="bold red"))
        if self._tell is not None:
            self._tell({"threadId": self.thread_id, "status": "refused", "code": refused.code, "message": str(refused)})
        self._all_well = False
        return self._direct

    def _follow(self, run_id: str) -> bool:
        """Shows a run until it ends; False when it waits for an answer that nobody here gives."""
        talk = Talk(run_id, str(self.room.view()["agentName"]))
        begun, attended, hinted, over = time.monotonic(), set[str](), False, False
        hear = partial(self._hear, talk) if self._tell is None and self._console.is_terminal else None
        ended = partial(_has_ended, talk)
        for batch in self.room.follow(self._seen, ended, hear):
            for event in batch:
                self._seen = event.seq
                self._show(talk, event)
            if talk.ended is not None or batch:
                continue
            status = self.room.status(run_id)
            if status in RUN_ENDED:
                # Only a look that finds nothing after the end was seen proves that there is no last line.
                talk.ended, over = (status if over else None), True
            elif not self._attend(run_id, attended):
                self._finish(talk, run_id, status)
                return False
            elif status == "queued" and not hinted and time.monotonic() - begun > PATIENCE_S:
                hinted = True
                self._say(Text("waits for a worker; officina up (or officina worker) starts one", style="yellow"))
        self._finish(talk, run_id, str(talk.ended))
        return True

    def _finish(self, talk: Talk, run_id: str, status: str) -> None:
        self._all_well = self._all_well and status == "completed"
        if self._tell is None:
            return
        turn = Turn(self.thread_id, run_id, status, talk.text, talk.code, talk.message, talk.stand_in, talk.cost_usd)
        turn.signals = [] if status in RUN_ENDED else self.room.questions(run_id)
        self._tell(turn.to_json())

    def _hear(self, talk: Talk, piece: Delta) -> None:
        """Shows what is said while it is said."""
        words = talk.hear(piece)
        if words is not None:
            self._console.print(words, soft_wrap=True, end="")
            self._console.file.flush()

    def _show(self, talk: Talk, event: Event) -> None:
        for line in talk.lines(event):
            self._say(line)
        if event.kind == "agent.handoff" and event.run_id == talk.run_id:
            talk.name = str(event.data.get("agentId"))

    def _attend(self, run_id: str, attended: set[str]) -> bool:
        """Turns to each open question once; False when the run waits for one that is not answered here."""
        for signal in self.room.questions(run_id):
            if signal["id"] in attended:
                continue
            attended.add(signal["id"])
            if not self._answer(signal) and self.room.waits(run_id):
                self._say(Text(f"waits for you: {answer_command(signal)}", style="bold yellow"))
                if not self._direct:
                    return False
        return True

    def _answer(self, signal: dict[str, Json]) -> bool:
        if self._tell is None or self._direct:
            prompting.show(signal, self._console)
        reply = prompting.ask(signal, self._console, self._read if self._direct else self._scripted)
        if reply is None:
            return False
        try:
            self.room.settle(signal["id"], reply.arguments())
        except Refused as refused:  # answered elsewhere meanwhile, or its run has ended
            self._say(Text(f"{refused.code}: {refused.message}", style="yellow"))
            return refused.code in ("already_answered", "run_ended")
        return True

    def _scripted(self, question: str) -> str:
        """The next line, if it says that it is an answer."""
        if self._kept is None:
            self._kept = self._read(question)
        if not self._kept.strip().startswith("/answer "):
            return ""
        line, self._kept = self._kept.strip(), None
        return line.removeprefix("/answer ")

    def _say(self, line: Text) -> None:
        if self._tell is None:
            self._console.print(line, soft_wrap=True)
            self._console.file.flush()
        else:
            sys.stderr.write(one_line(line.plain) + "\n")


def _has_ended(talk: Talk) -> bool:
    return talk.ended is not None
