"""Every run of a project as rows of a tree: tasks in plan order, below each its attempts, below those what they spawned
or mapped. Many brothers are folded: what is at work or failed stays in sight, the rest is counted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.table import Table
from rich.text import Text

from orchestrator.terminal.activity import Activity, Run
from orchestrator.terminal.frames import ASCII_GUIDES, STYLES, Frame, mark
from orchestrator.terminal.scene import Scene
from orchestrator.terminal.wording import clock, one_line, several, word
from orchestrator.terminal.work import doing

#: Brothers shown at most; beyond that the rest is folded into one row.
MOST: Final = 8
_FIRST: Final = {"needs_input": 0, "running": 1, "failed": 2, "waiting": 3, "queued": 4, "cancelled": 5, "completed": 6}


@dataclass(frozen=True)
class Row:
    """A run, or the row that stands for several."""

    depth: int
    name: str
    run: Run | None
    #: Of a row that stands for several: how many in which state.
    told: str = ""

    def guides(self, frame: Frame) -> str:
        guides = "   " * (self.depth - 1) + ("" if self.depth == 0 else " ↳ " if self.run else " ⋯ ")
        return guides.translate(ASCII_GUIDES) if frame.ascii else guides


def rows(scene: Scene, activity: Activity) -> Iterator[Row]:
    """The tree from the top; runs of no task made the plan and stand first."""
    roots: dict[str | None, list[Run]] = {}
    for run in activity.runs.values():
        if run.parent_id is None:
            roots.setdefault(run.task_id, []).append(run)
    titles = {None: "planning"} | {scene.tasks[line.key].id: scene.tasks[line.key].title for line in scene.plan.lines}
    for task_id, title in titles.items():
        for number, run in enumerate(roots.get(task_id, []), 1):
            yield Row(0, title + (f" (attempt {number})" if number > 1 else ""), run)
            yield from _below(run, activity, 1)


def _below(parent: Run, activity: Activity, depth: int) -> Iterator[Row]:
    children = [activity.runs[one] for one in parent.children]
    shown = _shown(children)
    for child in shown:
        yield Row(depth, _name(child, activity), child)
        yield from _below(child, activity, depth + 1)
    rest = Counter(word(child.status) for child in children) - Counter(word(child.status) for child in shown)
    if rest:
        told = ", ".join(f"{count} {name}" for name, count in rest.most_common())
        yield Row(depth, f"{several(rest.total(), 'run')} more", None, told)


def _shown(children: Sequence[Run]) -> list[Run]:
    """The brothers worth a row, in their order."""
    if len(children) <= MOST:
        return list(children)
    ranked = sorted(range(len(children)), key=lambda n: (_FIRST.get(children[n].status, 9), n))
    return [children[n] for n in sorted(ranked[: MOST - 1])]


def _name(run: Run, activity: Activity) -> str:
    place = "" if run.position is None else f"{run.position}: "
    return place + activity.name(run)


def tree(scene: Scene, activity: Activity, frame: Frame) -> Table:
    """The rows with the state of each, what it does or came to, and how long it took."""
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(ratio=4, no_wrap=True, overflow="ellipsis")
    table.add_column(no_wrap=True, min_width=9)
    table.add_column(ratio=5, no_wrap=True, overflow="ellipsis")
    table.add_column(no_wrap=True, justify="right", min_width=6)
    for row in rows(scene, activity):
        name = Text(row.guides(frame), style="dim")
        if row.run is None:
            table.add_row(name.append(row.name, style="dim"), Text(), Text(row.told, style="dim"), Text())
            continue
        run, style = row.run, STYLES.get(row.run.status, "")
        name.append(mark(run.status, frame), style=style).append(f" {one_line(row.name, 120)}", style="")
        now = Text(doing(run, scene, activity), style="red" if run.status == "failed" else "")
        table.add_row(name, Text(word(run.status), style=style), now, Text(spent(run, scene), style="dim"))
    if not table.row_count:
        table.add_row(Text("no run has begun", style="dim"), Text(), Text(), Text())
    return table


def spent(run: Run, scene: Scene) -> str:
    """From its making to its end, or to now."""
    end = run.since if run.ended else scene.now
    return clock(end - run.began)
