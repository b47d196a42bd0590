"""Where a watched project is shown: a live page that redraws itself, or lines that scroll by."""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from orchestrator.records import Event
from orchestrator.terminal import rendering, ticker
from orchestrator.terminal.activity import Activity
from orchestrator.terminal.scene import Scene
from registry.base import Json

#: Pages drawn per second; a page of many tasks takes longer to draw, and its clocks may tick by the second.
FRAMES, FEWER_FRAMES = 5, 1
MANY_TASKS = 1_000

Files = Sequence[dict[str, Json]]


class Screen(Protocol):
    """What the watcher needs of a place to show things."""

    def shown(self, scene: Scene, activity: Activity) -> AbstractContextManager[None]:
        """While it shows; leaving takes moving parts away."""
        ...

    def tell(self, events: Sequence[Event], scene: Scene) -> None: ...

    def update(self, scene: Scene) -> None: ...

    def announce(self, signal: dict[str, Json]) -> None:
        """A signal was seen open for the first time."""
        ...

    def paused(self) -> AbstractContextManager[Console]:
        """The console, with nothing moving on it."""
        ...

    def close(self, scene: Scene, activity: Activity, files: Files) -> None: ...


class Page:
    """The live page; a thread of rich draws it, so clocks run while the watcher waits."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._begun = time.monotonic()

    @contextmanager
    def shown(self, scene: Scene, activity: Activity) -> Iterator[None]:
        self._activity = activity
        self.update(scene)
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
            transient=True,
            vertical_overflow="crop",
        )
        live.start(refresh=True)
        return live

    def tell(self, events: Sequence[Event], scene: Scene) -> None:
        """The page shows states, not events."""

    def update(self, scene: Scene) -> None:
        self._seen = (scene, time.monotonic())

    def announce(self, signal: dict[str, Json]) -> None:
        """The page lists open signals by itself."""

    @contextmanager
    def paused(self) -> Iterator[Console]:
        assert self._live is not None
        self._live.stop()
        try:
            yield self._console
        finally:
            self._live = self._begin()  # a new one: the old would draw over what was printed meanwhile

    def close(self, scene: Scene, activity: Activity, files: Files) -> None:
        frame = self._frame(height=self._console.height + 20)
        page = rendering.closing(scene, activity, files, frame, _from_here(scene.workspace))
        self._console.print(page, crop=False)

    def _draw(self) -> RenderableType:
        scene, looked = self._seen
        now = scene.now + int((time.monotonic() - looked) * 1000)
        return rendering.page(replace(scene, now=now), self._activity, self._frame(height=self._console.height))

    def _frame(self, height: int) -> rendering.Frame:
        tick = int((time.monotonic() - self._begun) * FRAMES)
        ascii_only = not self._console.encoding.lower().startswith("utf")
        return rendering.Frame(self._console.width, height, ascii_only, tick)


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

    def update(self, scene: Scene) -> None:
        """Lines tell events, not states."""

    def announce(self, signal: dict[str, Json]) -> None:
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
