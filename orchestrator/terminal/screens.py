"""Where a watched project is shown: a live page that redraws itself, lines that scroll by, or lines of JSON."""

import os
import signal as signals
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from orchestrator.deltas import Delta
from orchestrator.records import Event
from orchestrator.terminal import keys, prompting, rendering, ticker
from orchestrator.terminal.activity import Activity
from orchestrator.terminal.frames import Frame
from orchestrator.terminal.interface import Interface
from orchestrator.terminal.keyboard import Keyboard
from orchestrator.terminal.prompting import Reply, Signal
from orchestrator.terminal.scene import Scene
from orchestrator.terminal.wording import one_line
from registry.base import Json
from registry.errors import OfficinaError

#: Pages drawn per second; a page of many tasks takes longer to draw, and its clocks may tick by the second.
FRAMES, FEWER_FRAMES = 5, 1
MANY_TASKS = 1_000

Files = Sequence[dict[str, Json]]
#: Answers a signal; raises what the studio says against it.
Settle = Callable[[Signal, Reply], None]


class Screen(Protocol):
    """What the watcher needs of a place to show things."""

    def shown(self, scene: Scene, activity: Activity) -> AbstractContextManager[None]:
        """While it shows; leaving takes moving parts away."""
        ...

    def tell(self, events: Sequence[Event], scene: Scene) -> None: ...

    def hear(self, delta: Delta) -> None:
        """A piece of an answer, while it is said."""
        ...

    def update(self, scene: Scene) -> None: ...

    def trouble(self, words: str) -> None:
        """Why nothing new can be told; empty: it can again."""
        ...

    def announce(self, signal: Signal) -> None:
        """A signal was seen open for the first time."""
        ...

    def paused(self) -> AbstractContextManager[Console]:
        """The console, with nothing moving on it."""
        ...

    def close(self, scene: Scene, activity: Activity, files: Files) -> None: ...


class Page:
    """The live page; a thread of rich draws it, so clocks run while the watcher waits, and another one takes keys."""

    def __init__(self, console: Console, settle: Settle | None = None) -> None:
        """
        Args:
            settle: takes answers given by key; None: no key is taken.
        """
        self._console = console
        self._live: Live | None = None
        self._begun = time.monotonic()
        self._settle = settle
        self._interface = Interface(keys=settle is not None)
        self._keyboard = Keyboard(self._press) if settle is not None else None
        self._hands = threading.RLock()
        #: A key and a drawing see the interface one after the other.
        self._one = threading.Lock()

    @contextmanager
    def shown(self, scene: Scene, activity: Activity) -> Iterator[None]:
        self._activity = activity
        self.update(scene)
        with self._keyboard.listening() if self._keyboard else nullcontext():
            self._live = self._begin()
            try:
                yield
            finally:
                self._live.stop()

    def _begin(self) -> Live:
        live = Live(
            console=self._console,
            get_renderable=self._draw,
            refresh_per_second=FEWER_FRAMES if len(self._seen[0].tasks) > MANY_TASKS else FRAMES,
            screen=True,
        )
        live.start(refresh=True)
        return live

    def tell(self, events: Sequence[Event], scene: Scene) -> None:
        """The page shows states; the last events are for its trace."""
        self._interface.tail.take(events)

    def hear(self, delta: Delta) -> None:
        """The page shows what was heard with all the rest."""

    def update(self, scene: Scene) -> None:
        self._seen = (scene, time.monotonic())

    def trouble(self, words: str) -> None:
        self._interface.trouble = words

    def announce(self, signal: Signal) -> None:
        """The page lists open signals by itself."""

    @contextmanager
    def paused(self) -> Iterator[Console]:
        assert self._live is not None
        with self._hands, self._keyboard.resting() if self._keyboard else nullcontext():
            self._live.stop()
            try:
                yield self._console
            finally:
                self._live = self._begin()  # a new one: the old would draw over what was printed meanwhile

    def close(self, scene: Scene, activity: Activity, files: Files) -> None:
        frame = self._frame(height=self._console.height + 20)
        page = rendering.closing(scene, activity, files, frame, _from_here(scene.workspace))
        self._console.print(page, crop=False)

    def _press(self, key: str) -> None:
        with self._one:
            act = keys.press(self._interface, key, self._seen[0])
        if isinstance(act, keys.Leave):
            os.kill(os.getpid(), signals.SIGINT)  # one way to leave: that of Ctrl-C
        elif act is not None:
            self._answer(act)
        with suppress(Exception):  # the page may just be closing
            if self._live is not None:
                self._live.refresh()

    def _answer(self, act: keys.Answer) -> None:
        assert self._settle is not None
        reply = act.reply
        if reply is None:
            with self.paused() as console:
                prompting.show(act.signal, console)
                reply = prompting.ask(act.signal, console, prompting.read_line)
        if reply is None:
            return
        try:
            self._settle(act.signal, reply)
            self._interface.notice = f"answered: {_said(reply)}"
        except OfficinaError as error:  # answered elsewhere meanwhile, its run has ended, or nobody is there to take it
            self._interface.notice = f"not answered: {error.code}: {error.message}"

    def _draw(self) -> RenderableType:
        scene, looked = self._seen
        now = scene.now + int((time.monotonic() - looked) * 1000)
        frame = self._frame(height=self._console.height)
        with self._one:
            return self._interface.draw(replace(scene, now=now), self._activity, frame, self._console)

    def _frame(self, height: int) -> Frame:
        tick = int((time.monotonic() - self._begun) * FRAMES)
        ascii_only = not self._console.encoding.lower().startswith("utf")
        return Frame(self._console.width, height, ascii_only, tick)


def _said(reply: Reply) -> str:
    return one_line(reply.option if reply.option is not None else reply.payload, 60)


def _from_here(folder: str) -> str:
    """A folder below the current one by its short name."""
    path, here = Path(folder), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else folder


class Lines:
    """One line per change, written out at once, never wrapped: what pipes, logs and screen readers want."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._ticker = ticker.Ticker()

    @contextmanager
    def shown(self, scene: Scene, activity: Activity) -> Iterator[None]:
        yield

    def tell(self, events: Sequence[Event], scene: Scene) -> None:
        for line in self._ticker.lines(events, {task.id: task.key for task in scene.tasks.values()}):
            self._say(line)

    def hear(self, delta: Delta) -> None:
        """Lines tell what happened; the answer is in the trace when it is whole."""

    def update(self, scene: Scene) -> None:
        """Lines tell events, not states."""

    def trouble(self, words: str) -> None:
        if words:
            self._say(f"          {words}")

    def announce(self, signal: Signal) -> None:
        self._say(ticker.waiting_line(signal))

    @contextmanager
    def paused(self) -> Iterator[Console]:
        yield self._console

    def close(self, scene: Scene, activity: Activity, files: Files) -> None:
        for line in ticker.closing_lines(scene, activity, files):
            self._say(line)

    def _say(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)
        self._console.file.flush()


class JsonLines:
    """A line of JSON for every event, as in a trace, and every piece of an answer; the last one says how it ended."""

    def __init__(self, say: Callable[[Json], None], console: Console) -> None:
        self._say, self._console = say, console

    @contextmanager
    def shown(self, scene: Scene, activity: Activity) -> Iterator[None]:
        yield

    def tell(self, events: Sequence[Event], scene: Scene) -> None:
        for event in events:
            self._say(event.to_json(scene.id))

    def hear(self, delta: Delta) -> None:
        self._say({key: value for key, value in delta.to_json().items() if value is not None})

    def update(self, scene: Scene) -> None:
        """Events say it."""

    def trouble(self, words: str) -> None:
        if words:
            self._say({"kind": "watch.trouble", "data": {"message": words}})

    def announce(self, signal: Signal) -> None:
        """Its event was told."""

    @contextmanager
    def paused(self) -> Iterator[Console]:
        yield self._console

    def close(self, scene: Scene, activity: Activity, files: Files) -> None:
        self._say({"kind": "watch.ended", "projectId": scene.id, "data": rendering.summary(scene, activity, files)})
