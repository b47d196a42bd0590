"""Watching a project to its end: a live page on a terminal, plain lines elsewhere, and asking a person on the way."""

import sys
import time
from collections.abc import Iterator
from typing import Protocol

from rich.console import Console

from orchestrator import following, views
from orchestrator.records import Event
from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from orchestrator.terminal import prompting, scene
from orchestrator.terminal.activity import Activity
from orchestrator.terminal.scene import Scene
from orchestrator.terminal.screens import Lines, Page, Screen
from registry.base import Json
from registry.errors import Refused

#: Seconds between two looks at the rows, however fast events come; and how many times a look's own duration.
PACE_S, PACE_FACTOR = 0.12, 5


class Source(Protocol):
    """What is looked at: rows here, or a studio elsewhere."""

    def scene(self, before: Scene | None) -> Scene: ...

    def live(self) -> Iterator[list[Event]]:
        """Events as they come; an empty list is a heartbeat. Ends when the project has ended and all is told."""
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

    def live(self) -> Iterator[list[Event]]:
        return following.live(self._settings, self._id)

    def files(self) -> list[Json]:
        with get_database(self._settings).read() as connection:
            return views.file_list(connection, self._id)

    def settle(self, signal_id: str, said: dict[str, Json]) -> None:
        from orchestrator.signals import answer

        answer(self._settings, signal_id, **said, by=self._settings.owner)


def watch(
    project_id: str,
    settings: Settings,
    *,
    ask: bool = False,
    yes: bool = False,
    plain: bool = False,
    console: Console | None = None,
) -> int:
    """Shows a project of the settings' rows until it has ended: `look`."""
    return look(Rows(settings, project_id), ask=ask, yes=yes, plain=plain, console=console)


def look(
    source: Source,
    *,
    ask: bool = False,
    yes: bool = False,
    plain: bool = False,
    console: Console | None = None,
) -> int:
    """Shows the project until it has ended.

    Args:
        source: the project.
        ask: on a terminal, show each open question and ask for its answer here.
        yes: answer "Do it" to every decision without asking, and say so.
        plain: lines instead of the live page even on a terminal.
        console: where to draw; standard output when None.

    Returns:
        0 when the project completed, else 1.
    """
    console = console or Console(highlight=False, emoji=False, markup=False)
    screen = Page(console) if console.is_terminal and not plain else Lines(console)
    asking = ask and console.is_terminal and sys.stdin.isatty()
    return _Watcher(source, screen, prompting.answerer(ask=asking, yes=yes)).run()


class _Watcher:
    """Feeds a screen with what the rows and the events say, and takes answers where it may."""

    def __init__(self, source: Source, screen: Screen, answer: prompting.Answerer | None) -> None:
        self.source, self.screen, self.answer = source, screen, answer
        self.activity = Activity()
        self.scene = source.scene(None)
        self._next_look = time.monotonic()
        self._heard: set[str] = set()
        self._attended: set[str] = set()

    def run(self) -> int:
        with self.screen.shown(self.scene, self.activity):
            for batch in self.source.live():
                self._take(batch)
        self.scene = self.source.scene(self.scene)
        self.screen.close(self.scene, self.activity, self.source.files())
        return 0 if self.scene.status == "completed" else 1

    def _take(self, batch: list[Event]) -> None:
        self.activity.take(batch)
        self.screen.tell(batch, self.scene)
        self._heard |= {str(event.data.get("signalId")) for event in batch if event.kind == "signal.raised"}
        if len(batch) == following.BATCH:
            return  # still catching up with what happened before
        time.sleep(max(0.0, self._next_look - time.monotonic()))
        begun = time.monotonic()
        self.scene = self.source.scene(self.scene)
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
            self.source.settle(signal["id"], reply.arguments())
        except Refused as refused:  # answered elsewhere meanwhile, or its run has ended
            console.print(f"{refused.code}: {refused.message}")
