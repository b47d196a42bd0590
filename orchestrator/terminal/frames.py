"""What all views of the terminal share: what it can show, the marks and colours of states, and a window on text."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from orchestrator.terminal.wording import glyph, several, word

STYLES: Final = {
    "running": "cyan",
    "needs_input": "bold yellow",
    "waiting": "blue",
    "completed": "green",
    "partial": "yellow",
    "failed": "bold red",
    "skipped": "dim",
    "cancelled": "dim",
    "pending": "dim",
}
ASCII_GUIDES: Final = str.maketrans({"├": "|", "└": "`", "─": "-", "│": "|", "⋯": ".", "↳": ">"})
_SPIN: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


@dataclass(frozen=True)
class Frame:
    """What the terminal can show, and where the animation stands."""

    width: int
    #: Lines of the whole page; None: as long as it wants.
    height: int | None = None
    #: Only ASCII can be written.
    ascii: bool = False
    tick: int = 0


def mark(status: str, frame: Frame) -> str:
    """A state as one character; what runs turns."""
    if status == "running" and not frame.ascii:
        return _SPIN[frame.tick % len(_SPIN)]
    return glyph(status, plain=frame.ascii)


def state(status: str, frame: Frame) -> Text:
    """A state as a character and a word."""
    return Text(f"{mark(status, frame)} {word(status)}", style=STYLES.get(status, ""))


@dataclass
class Window:
    """Some lines of something longer, and a line that says how much is above and below."""

    inside: RenderableType
    height: int
    top: int = 0
    #: Show the end unless scrolled: `top` counts from there.
    from_end: bool = False
    #: Lines of the whole, once drawn; and the last one that was in sight.
    total: int = field(default=0, init=False)
    seen: int = field(default=0, init=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Segment | Text]:
        lines = console.render_lines(self.inside, options.update(height=None), pad=False)
        self.total = len(lines)
        room = self.height if len(lines) <= self.height else max(1, self.height - 1)
        most = max(0, len(lines) - room)
        self.top = min(max(0, self.top), most)
        first = most - self.top if self.from_end else self.top
        self.seen = min(len(lines), first + room)
        for line in lines[first : first + room]:
            yield from line
            yield Segment.line()
        if len(lines) > self.height:
            above, below = first, len(lines) - self.seen
            told = [f"{several(above, 'line')} above"] * bool(above) + [f"{several(below, 'line')} below"] * bool(below)
            yield Text("-- " + ", ".join(told), style="dim", no_wrap=True, overflow="ellipsis")
