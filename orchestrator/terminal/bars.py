"""Who ran when: each run as a bar of work and of waiting. Every kind of stretch has a character of its own, so that the
picture reads the same without colour."""

from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.terminal.activity import Activity, Run
from orchestrator.terminal.frames import Frame
from orchestrator.terminal.run_tree import Row, rows, spent
from orchestrator.terminal.scene import Scene
from orchestrator.terminal.wording import duration, one_line

#: What a stretch is -> (character, where only ASCII can be written, colour, in words). Later ones are drawn over
#: earlier ones where both fall into one column.
KINDS: Final = {
    "queued": ("·", ".", "dim", "in the queue"),
    "turn": ("·", ".", "dim", "in the queue"),
    "children": ("─", "-", "blue", "waits for children"),
    "backoff": ("~", "~", "yellow", "tries again later"),
    "gate": ("╌", "=", "blue", "at a gate"),
    "timer": ("┄", ":", "blue", "sleeps"),
    "work": ("█", "#", "cyan", "at work"),
    "you": ("?", "?", "bold yellow", "waits for you"),
}
_END: Final = {"failed": ("✗", "x", "bold red"), "cancelled": ("⊘", "-", "dim")}


def timeline(scene: Scene, activity: Activity, frame: Frame) -> RenderableType:
    """A bar a run on one scale of time, the scale above, what the characters mean below."""
    found = list(rows(scene, activity))
    drawn = [row.run for row in found if row.run is not None]
    if not drawn:
        return Text("no run has begun", style="dim")
    begin = min(run.began for run in drawn)
    end = max(max(run.since if run.ended else scene.now for run in drawn), begin + 1)
    name = max(10, min(36, frame.width // 3))
    width = max(8, frame.width - name - 9)
    scale = _Scale(begin, end, width)
    lines = [Text(" " * name + " " + scale.axis(), style="dim", no_wrap=True, overflow="crop")]
    lines += [_line(row, scene, scale, name, frame) for row in found]
    used = {stretch.what for run in drawn for stretch in run.stretches}
    return Group(*lines, Text(), _legend(used, frame))


class _Scale:
    """Times as columns."""

    def __init__(self, begin: int, end: int, width: int) -> None:
        self.begin, self.end, self.width = begin, end, width

    def column(self, at: int) -> int:
        return min(self.width - 1, (at - self.begin) * self.width // (self.end - self.begin))

    def axis(self) -> str:
        """The time at the left, in the middle and at the right."""
        whole = self.end - self.begin
        left, right = "0 s", duration(whole)
        middle = duration(whole / 2)
        room = self.width - len(left) - len(right)
        return left + (middle.center(room) if room > len(middle) + 1 else " " * max(1, room)) + right


def _line(row: Row, scene: Scene, scale: _Scale, width: int, frame: Frame) -> Text:
    label = row.guides(frame) + one_line(row.name, 120)
    cut = "." if frame.ascii else "…"
    text = Text(no_wrap=True, overflow="crop")
    name = Text(label, style="dim" if row.run is None else "", no_wrap=True)
    if name.cell_len > width:
        name.truncate(width - 1, overflow="crop")
        name.append(cut)
    name.pad_right(width - name.cell_len)
    text.append_text(name).append(" ")
    if row.run is None:
        return text.append(row.told, style="dim")
    text.append_text(_bar(row.run, scene, scale, frame))
    return text.append(f" {spent(row.run, scene):>7}", style="dim")


def _bar(run: Run, scene: Scene, scale: _Scale, frame: Frame) -> Text:
    cells: list[tuple[str, str]] = [(" ", "")] * scale.width
    order = list(KINDS)
    for stretch in sorted(run.stretches, key=lambda one: order.index(one.what) if one.what in KINDS else -1):
        drawn, plain, style, _ = KINDS.get(stretch.what, ("·", ".", "dim", stretch.what))
        last = scale.column(scene.now if stretch.end is None else stretch.end)
        for column in range(scale.column(stretch.start), last + 1):
            cells[column] = (plain if frame.ascii else drawn, style)
    if run.status in _END:
        drawn, plain, style = _END[run.status]
        cells[scale.column(run.since)] = (plain if frame.ascii else drawn, style)
    return Text.assemble(*cells)


def _legend(used: set[str], frame: Frame) -> Text:
    told = {KINDS[what][3]: KINDS[what] for what in KINDS if what in used}
    text = Text()
    for words, (drawn, plain, style, _) in told.items():
        text.append(plain if frame.ascii else drawn, style=style).append(f" {words}   ", style="dim")
    return text
