"""The live page with its views: a header, the view that was chosen, what waits for a person, and the keys.

Pure but for what it remembers: which view, how far it is scrolled, which question, how much of it was seen.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.segment import Segment
from rich.text import Text

from orchestrator.terminal import bars, prompting, rendering, run_tree, work
from orchestrator.terminal.activity import Activity
from orchestrator.terminal.frames import Frame, Window
from orchestrator.terminal.scene import Scene
from orchestrator.terminal.tail import Tail
from orchestrator.terminal.wording import countdown, one_line

VIEWS: Final = ("plan", "agents", "runs", "timeline", "trace", "questions")
#: Keys of every view, and of some.
_KEYS: Final = (("1-6 Tab", "view"), ("↑↓", "scroll"))
_OF_VIEW: Final = {
    "trace": (("f", "filter"), ("/", "words")),
    "questions": (("d", "Do it"), ("n", "No"), ("w", "type an answer"), ("←→", "other question")),
}
_LEAVE: Final = (("q", "leave"),)
_ASCII: Final = str.maketrans({"↑": "^", "↓": "v", "←": "<", "→": ">", "…": ".", "»": ">"})
#: Lines of a view there are at least, however much stands around it.
_LEAST: Final = 3
#: Runs whose words are shown below the plan.
_SPEAKERS: Final = 2


@dataclass
class Interface:
    """What a person has chosen to see."""

    #: Whether keys are taken.
    keys: bool = False
    view: str = "plan"
    top: int = 0
    #: The question that is shown.
    chosen: str | None = None
    #: The question that is on the screen, and since when.
    shown: tuple[str, float] | None = None
    #: Questions that were in sight to their last line.
    read_through: set[str] = field(default_factory=set)
    #: Something to tell, until the next key.
    notice: str = ""
    #: Why the page may be out of date.
    trouble: str = ""
    #: Words being typed for the trace's filter; None: none are.
    typing: str | None = None
    tail: Tail = field(default_factory=Tail)
    clock: Callable[[], float] = time.monotonic
    #: The question as it was drawn last, and for what.
    _whole: tuple[Any, Any] = (None, None)

    def show(self, view: str) -> None:
        self.view, self.top, self.notice, self.shown = view, 0, "", None

    def step(self, by: int) -> None:
        """To the next view, or the one before."""
        self.show(VIEWS[(VIEWS.index(self.view) + by) % len(VIEWS)])

    def scroll(self, by: int) -> None:
        self.top = max(0, self.top + (-by if self.view == "trace" else by))

    def turn(self, scene: Scene, by: int) -> None:
        """To the next question, or the one before."""
        if scene.signals:
            at = scene.signals.index(self.question(scene))
            self.chosen = scene.signals[(at + by) % len(scene.signals)]["id"]
            self.top, self.notice = 0, ""

    def question(self, scene: Scene) -> Any:
        """The question that is shown; None: nothing waits."""
        found = [signal for signal in scene.signals if signal["id"] == self.chosen] or scene.signals
        return found[0] if found else None

    def draw(self, scene: Scene, activity: Activity, frame: Frame, console: Console) -> RenderableType:
        """The page, as high as the frame."""
        height = frame.height or 40
        head = [rendering.header(scene, activity, frame), *([self._tabs(scene, frame)] if self.keys else [Text()])]
        foot = self._foot(scene, activity, frame)
        options = console.options.update(width=frame.width)
        taken = sum(len(console.render_lines(part, options, pad=False)) for part in (*head, *foot))
        room = max(_LEAST, height - taken)
        body = self._body(scene, activity, frame, room, console)
        lines = console.render_lines(body, options, pad=False)
        if frame.ascii:
            lines = [[Segment(s.text.translate(_ASCII), s.style, s.control) for s in line] for line in lines]
        gap = [Text()] * max(0, room - len(lines))
        return Group(*head, _Lines(lines), *gap, *foot)

    def _body(self, scene: Scene, activity: Activity, frame: Frame, room: int, console: Console) -> RenderableType:
        if self.view == "plan":
            return self._plan(scene, activity, frame, room)
        if self.view == "questions":
            return self._question(scene, frame, room, console)
        views = {"agents": work.agents, "runs": run_tree.tree, "timeline": bars.timeline}
        if self.view == "trace":
            return self._window(self.tail.draw(scene, activity, frame.width), room, from_end=True)
        return self._window(views[self.view](scene, activity, frame), room)

    def _plan(self, scene: Scene, activity: Activity, frame: Frame, room: int) -> RenderableType:
        if scene.status == "planning":
            return Group(*rendering.planning(scene))
        if self.top:
            return self._window(rendering.task_table(scene, activity, frame, None), room)
        words: list[Text] = []
        for run in [run for run in activity.runs.values() if run.said and not run.ended][-_SPEAKERS:]:
            words += [Text(f"{one_line(activity.name(run), 40)} says", style="bold"), *work.spoken(run, frame.width, 2)]
        words = words[: max(0, room // 3)]
        table = rendering.task_table(scene, activity, frame, room - len(words) - (1 if words else 0))
        return Group(table, Text(), *words) if words else table

    def _question(self, scene: Scene, frame: Frame, room: int, console: Console) -> RenderableType:
        signal = self.question(scene)
        if signal is None:
            self.shown = None
            return Text("nothing waits for you", style="dim")
        if self.shown is None or self.shown[0] != signal["id"]:
            self.shown, self.top = (signal["id"], self.clock()), 0
        # A long program takes long to draw, and only its countdown changes.
        drawn = (signal["id"], frame.width, countdown((signal.get("expiresAt") or 0) - scene.now))
        if self._whole[0] != drawn:
            task = next((t.title for t in scene.tasks.values() if t.id == signal.get("taskId")), "")
            whole = prompting.whole(signal, task=task, now=scene.now)
            options = console.options.update(width=frame.width, height=None)
            self._whole = (drawn, _Lines(console.render_lines(whole, options, pad=False)))
        return _Read(self, signal["id"], self._window(self._whole[1], room))

    def _window(self, inside: RenderableType, room: int, *, from_end: bool = False) -> "_Kept":
        return _Kept(self, Window(inside, room, self.top, from_end))

    def _tabs(self, scene: Scene, frame: Frame) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        for number, name in enumerate(VIEWS, 1):
            count = f" ({len(scene.signals)})" if name == "questions" and scene.signals else ""
            label = f"{name}{count}" if frame.width >= 72 or name == self.view else name[:1] + count.strip()
            chosen = name == self.view
            text.append(f"[{number} {label}]" if chosen else f" {number} {label} ", style="bold" if chosen else "dim")
        if self.view == "trace":
            text.append(f"  {self.tail.title()}", style="dim")
        return text

    def _foot(self, scene: Scene, activity: Activity, frame: Frame) -> list[Text]:
        lines = list(rendering.hints(scene))
        if self.view != "questions" and (scene.signals or scene.unknown):
            lines += [Text(), *(self._waiting(scene, frame) if self.keys else rendering.waiting_for_you(scene, frame))]
        if self.trouble:
            lines.append(Text(self.trouble, style="bold red", overflow="fold"))
        if self.notice:
            lines.append(Text(one_line(self.notice, 300), style="bold yellow", overflow="fold"))
        if self.typing is not None:
            lines.append(Text(f"words in the line (Enter: filter, Esc: all): {self.typing}_", style="bold"))
        return [*lines, self._key_line(scene, frame)] if self.keys else lines

    def _waiting(self, scene: Scene, frame: Frame) -> list[Text]:
        """What waits for a person in a line each; the view of the questions has the rest."""
        lines = rendering.waiting_for_you(scene, frame, commands=False)
        soonest = min((one["expiresAt"] for one in scene.signals if one.get("expiresAt")), default=None)
        left = f"; the first expires in {countdown(soonest - scene.now)}" if soonest and soonest > scene.now else ""
        if scene.signals:
            lines.append(Text(f"  6 shows exactly what would run, and takes your answer{left}", style="dim"))
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        return lines

    def _key_line(self, scene: Scene, frame: Frame) -> Text:
        of_view = _OF_VIEW.get(self.view, ())
        if self.view == "questions":
            of_view = of_view[: 0 if not scene.signals else -1 if len(scene.signals) == 1 else None]
        shown = (*_KEYS, *of_view, *_LEAVE)
        if sum(len(key) + len(does) + 3 for key, does in shown) > frame.width:
            shown = (*_LEAVE, *of_view, *_KEYS)  # what is cut off is what people find by themselves
        text = Text(no_wrap=True, overflow="ellipsis")
        for key, does in shown:
            text.append(key.translate(_ASCII) if frame.ascii else key, style="bold")
            text.append(f" {does}  ", style="dim")
        return text


@dataclass
class _Lines:
    """What was drawn already."""

    lines: list[Any]

    def __rich_console__(self, console: Console, options: Any) -> Any:
        for line in self.lines:
            yield from line
            yield Segment.line()


@dataclass
class _Kept:
    """A window that tells the page how far it could be scrolled."""

    page: Interface
    window: Window

    def __rich_console__(self, console: Console, options: Any) -> Any:
        yield from self.window.__rich_console__(console, options)
        self.page.top = self.window.top


@dataclass
class _Read:
    """A question; once its last line is in sight, it was seen whole."""

    page: Interface
    signal_id: str
    kept: _Kept

    def __rich_console__(self, console: Console, options: Any) -> Any:
        yield from self.kept.__rich_console__(console, options)
        if self.kept.window.seen >= self.kept.window.total:
            self.page.read_through.add(self.signal_id)
