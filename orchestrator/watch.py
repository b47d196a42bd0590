"""Watching a project to its end: a live page on a terminal, plain lines elsewhere, and asking a person on the way."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, Protocol

from rich.console import Console
from rich.text import Text

from orchestrator import deltas, following, views
from orchestrator.deltas import Delta
from orchestrator.records import Event
from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from orchestrator.terminal import prompting, scene
from orchestrator.terminal.activity import Activity
from orchestrator.terminal.scene import Scene
from orchestrator.terminal.screens import JsonLines, Lines, Page, Screen
from registry.base import Json
from registry.errors import Refused, Unavailable

#: Seconds between two looks at the rows, however fast events come; and how many times a look's own duration.
PACE_S, PACE_FACTOR = 0.12, 5
#: Seconds between two tries while the studio does not answer: doubled each time, from the first to the last.
FIRST_S, LAST_S = 0.5, 5.0
#: How a command ends that was left early, as shells have it.
LEFT: Final = 130

Hear = Callable[[Delta], None]


class Source(Protocol):
    """What is looked at: rows here, or a studio elsewhere. Where it does not answer it raises `Unavailable`."""

    def scene(self, before: Scene | None) -> Scene: ...

    def live(self, after: int, hear: Hear) -> Iterator[list[Event]]:
        """Events with a higher number as they come; an empty list is a heartbeat. Ends when the project has ended and
        all is told. What agents say while they say it goes to `hear`.
        """
        ...

    def files(self) -> list[Json]: ...

    def settle(self, signal_id: str, said: dict[str, Json]) -> None:
        """Answers a signal."""
        ...


class Rows:
    """A project of a database that this process reaches."""

    def __init__(self, settings: Settings, project_id: str) -> None:
        self._settings, self._id = settings, project_id

    def scene(self, before: Scene | None) -> Scene:
        with get_database(self._settings).read() as connection:
            return scene.read(connection, self._id, self._settings, before.plan if before else None)

    def live(self, after: int, hear: Hear) -> Iterator[list[Event]]:
        def heard(message: str) -> None:
            delta = deltas.read(message)
            if delta is not None:
                hear(delta)

        return following.live(self._settings, self._id, after, heard)

    def files(self) -> list[Json]:
        with get_database(self._settings).read() as connection:
            return views.file_list(connection, self._id)

    def settle(self, signal_id: str, said: dict[str, Json]) -> None:
        from orchestrator.signals import answer

        answer(self._settings, signal_id, **said, by=self._settings.owner)


def watch(project_id: str, settings: Settings, *, ask: bool = False, yes: bool = False) -> int:
    """Shows a project of the settings' rows until it has ended, as a part of something else: Ctrl-C is that one's."""
    return _Watcher(Rows(settings, project_id), ask=ask, yes=yes).run()


def look(source: Source, *, ask: bool = False, plain: bool = False, tell: Callable[[Json], None] | None = None) -> int:
    """Shows the project until it has ended, or until the person leaves: then it goes on, and that is said.

    Args:
        source: the project.
        ask: on a terminal, show each open question as it comes and ask for its answer here.
        plain: lines instead of the live page even on a terminal.
        tell: takes everything as JSON, instead of a page or lines.

    Returns:
        0 when the project completed, 1 when it did not, 130 when it was left.
    """
    watcher = _Watcher(source, ask=ask, plain=plain, tell=tell)
    try:
        return watcher.run()
    except KeyboardInterrupt:
        seen = watcher.scene
        words = (
            f"the project goes on without you; officina watch {seen.id} comes back, officina cancel {seen.id} ends it"
        )
        Console(stderr=True, highlight=False, emoji=False, markup=False).print(Text(words), soft_wrap=True)
        return LEFT


class _Watcher:
    """Feeds a screen with what the rows and the events say, and takes answers where it may.

    Args:
        yes: answer "Do it" to every decision without asking, and say so.
    """

    def __init__(
        self,
        source: Source,
        *,
        ask: bool = False,
        yes: bool = False,
        plain: bool = False,
        tell: Callable[[Json], None] | None = None,
    ) -> None:
        self.source = source
        console = Console(highlight=False, emoji=False, markup=False)
        person = console.is_terminal and sys.stdin.isatty()
        self.screen: Screen
        if tell is not None:
            self.screen = JsonLines(tell, console)
        elif console.is_terminal and not plain:
            self.screen = Page(console, self._answer if person and not yes else None)
        else:
            self.screen = Lines(console)
        self.answer = prompting.answerer(ask=ask and person and tell is None, yes=yes)
        self.activity = Activity()
        self.scene = source.scene(None)
        self._next_look = time.monotonic()
        self._after = 0
        self._away_since: float | None = None
        self._heard: set[str] = set()
        self._attended: set[str] = set()

    def run(self) -> int:
        with self.screen.shown(self.scene, self.activity):
            self._insist(self._follow)
            self._insist(self._look)
        files = self.source.files()
        self.screen.close(self.scene, self.activity, files)
        return 0 if self.scene.status == "completed" else 1

    def _insist(self, work: Callable[[], None]) -> None:
        """Does it, however often the studio does not answer, and says meanwhile that it does not."""
        delay = FIRST_S
        while True:
            try:
                work()
                return
            except Unavailable as error:
                if self._away_since is None:
                    self._away_since, delay = time.monotonic(), FIRST_S
                # Drivers add advice in lines of its own; the page has room for what happened.
                said = error.message.partition("\n")[0]
                self.screen.trouble(f"{said}; what you see is from before, and it is tried again")
            time.sleep(delay)
            delay = min(delay * 2, LAST_S)

    def _follow(self) -> None:
        for batch in self.source.live(self._after, self._hear):
            self._take(batch)

    def _look(self) -> None:
        self.scene = self.source.scene(self.scene)
        if self._away_since is not None:
            self._away_since = None
            self.screen.trouble("")

    def _hear(self, delta: Delta) -> None:
        self.activity.hear(delta)
        self.screen.hear(delta)

    def _take(self, batch: list[Event]) -> None:
        seen = {task.id for task in self.scene.tasks.values()}
        if any(event.task_id is not None and event.task_id not in seen for event in batch):
            self._look()  # a planner made tasks since: they are told by their keys
        self.activity.take(batch)
        self.screen.tell(batch, self.scene)
        self._after = batch[-1].seq if batch else self._after
        self._heard |= {str(event.data.get("signalId")) for event in batch if event.kind == "signal.raised"}
        if len(batch) == following.BATCH:
            return  # still catching up with what happened before
        time.sleep(max(0.0, self._next_look - time.monotonic()))
        begun = time.monotonic()
        self._look()
        self._next_look = time.monotonic() + max(PACE_S, PACE_FACTOR * (time.monotonic() - begun))
        self.screen.update(self.scene)
        self._attend()

    def _attend(self) -> None:
        """Turns to each open signal once. Rows run ahead of events: one not heard of yet waits for the next look."""
        for signal in self.scene.signals:
            if signal["id"] in self._attended:
                continue
            if signal["id"] not in self._heard:
                self._heard.add(signal["id"])
                continue
            self._attended.add(signal["id"])
            self.screen.announce(signal)
            if self.answer is not None:
                with self.screen.paused() as console:
                    self._settle(signal, console, self.answer)

    def _settle(self, signal: dict[str, Json], console: Console, answer: prompting.Answerer) -> None:
        title = next((t.title for t in self.scene.tasks.values() if t.id == signal.get("taskId")), "")
        reply = answer(signal, console, title)
        if reply is None:
            return
        try:
            self._answer(signal, reply)
        except Refused as refused:  # answered elsewhere meanwhile, or its run has ended
            console.print(Text(f"{refused.code}: {refused.message}"))

    def _answer(self, signal: dict[str, Json], reply: prompting.Reply) -> None:
        self.source.settle(signal["id"], reply.arguments())
        with suppress(Unavailable):
            self._look()
            self.screen.update(self.scene)
