"""The live view as rich renderables: a scene in, a page out. Pure: it reads no clock, no database and no terminal.

Titles, names and reasons come from people, files and models; they enter as `Text`, never as markup, with what cannot
be seen taken out. A state is always a glyph and a word, so that the page reads the same without colour.
"""

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.terminal import children
from orchestrator.terminal.activity import Activity
from orchestrator.terminal.children import MOST, ChildLine
from orchestrator.terminal.frames import ASCII_GUIDES, STYLES, Frame, mark, state
from orchestrator.terminal.outline import Line, fold, under
from orchestrator.terminal.scene import Scene, TaskView
from orchestrator.terminal.wording import clock, duration, money, one_line, several, size, word
from registry.base import Json

#: What stays in sight when a plan is longer than the screen: the higher, the longer.
_WEIGHTS: Final = {
    "needs_input": 7,
    "running": 6,
    "failed": 5,
    "waiting": 4,
    "queued": 3,
    "skipped": 1,
    "cancelled": 1,
    "completed": 0,
}
#: Milliseconds a stack may take to start before its absence is worth a word.
_PATIENCE_MS: Final = 5_000
#: Columns below which agent and cost give way.
_NARROW: Final = 64
#: Columns below which what a task does now gives way, too: the view of the agents has it.
_TIGHT: Final = 56
#: Columns from which on the page has room for labels.
_WIDE: Final = 110
#: Labels that can be pasted into a shell as they are.
_PLAIN_LABEL: Final = re.compile(r"[A-Za-z0-9 ,.'-]{1,40}")


def page(scene: Scene, activity: Activity, frame: Frame) -> RenderableType:
    """The whole live view."""
    asking = waiting_for_you(scene, frame)
    below = ([Text(), *asking] if asking else []) + hints(scene)
    room = None if frame.height is None else max(3, frame.height - len(below) - 5)
    body = planning(scene) if scene.status == "planning" else [task_table(scene, activity, frame, room)]
    return Group(header(scene, activity, frame), Text(), *body, *below)


def planning(scene: Scene) -> list[RenderableType]:
    """What stands in the place of the tasks while there are none."""
    if scene.planned is None:
        return [Text("the planner makes tasks of the brief", style="dim")]
    words = f"the plan of {several(scene.planned, 'task')} waits for you"
    look, go = f"  officina show {scene.id}", f"  officina start {scene.id}"
    return [Text(words, style=STYLES["needs_input"]), Text(look, overflow="fold"), Text(go, overflow="fold")]


def header(scene: Scene, activity: Activity, frame: Frame) -> RenderableType:
    """Title, state, a bar of ended tasks, cost, time, and who plays the model."""
    title = Table.grid(expand=True, padding=(0, 1))
    title.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    title.add_column(justify="right", no_wrap=True)
    title.add_row(Text(one_line(scene.title, 120), style="bold"), state(scene.status, frame))
    facts = [
        *([f"{scene.done} of {several(len(scene.tasks), 'task')}"] if scene.tasks else []),
        spending(scene),
        duration((scene.ended_at or scene.now) - scene.created_at),
    ]
    told = Text("  ".join(facts), no_wrap=True, overflow="ellipsis")
    narrow = frame.width < _NARROW
    width = frame.width - 2 if narrow else min(60, max(10, frame.width - told.cell_len - 4))
    bar = _bar(scene.done, len(scene.tasks), width, ascii_only=frame.ascii)
    rows: list[RenderableType] = [title]
    rows += [bar, *_fitted(facts, frame.width)] if narrow else [Text.assemble(bar, "  ", told, no_wrap=True)]
    label = stand_in_label(scene, activity)
    return Group(*rows, Text(label, style="magenta")) if label else Group(*rows)


def _fitted(facts: list[str], width: int) -> list[Text]:
    """Facts side by side in as many lines as it takes: none is cut to make room for another."""
    lines: list[str] = []
    for fact in facts:
        if lines and len(lines[-1]) + 2 + len(fact) <= width:
            lines[-1] += "  " + fact
        else:
            lines.append(fact)
    return [Text(line, no_wrap=True, overflow="ellipsis") for line in lines]


def spending(scene: Scene) -> str:
    """What was spent, and of how much where there is a limit."""
    spent = money(scene.cost_usd, incomplete=scene.cost_incomplete)
    if scene.budget_usd is None:
        return spent
    share = round(100 * scene.cost_usd / scene.budget_usd) if scene.budget_usd else 100
    return f"{spent.removesuffix(' USD')} of {money(scene.budget_usd)} ({share} %)"


def stand_in_label(scene: Scene, activity: Activity) -> str:
    """Says whose words these are when no model spoke them."""
    if scene.rehearsal:
        return "dress rehearsal: the stand-in plays the model, and nothing acts on the outside"
    count = len(activity.stand_in_tasks)
    return f"the stand-in, not a model, spoke in {several(count, 'task')}" if count else ""


def task_table(scene: Scene, activity: Activity, frame: Frame, room: int | None) -> Table:
    """The DAG as an outline with a line a task; stretches of what matters least are folded into one line."""
    table = Table.grid(expand=True, padding=(0, 1))
    wide = frame.width >= _WIDE
    table.add_column("task", ratio=5 if wide else 4, no_wrap=True, overflow="ellipsis")
    table.add_column("state", no_wrap=True, min_width=9)
    if frame.width >= _NARROW:
        table.add_column("agent", no_wrap=True, overflow="ellipsis", max_width=24 if wide else 11)
    if frame.width >= _TIGHT:
        table.add_column("now", ratio=6 if wide else 4, no_wrap=True, overflow="ellipsis")
    if frame.width >= _NARROW:
        table.add_column("USD", no_wrap=True, justify="right")
    table.add_column("time", no_wrap=True, justify="right", min_width=6)
    lines = scene.plan.lines
    below = _children(scene, activity, room)
    weights = [_weight(scene.tasks[line.key], number) for number, line in enumerate(lines)]
    taken = sum(map(len, below.values()))
    for part in fold(weights, room - taken if room is not None else len(lines)):
        if isinstance(part, range):
            table.add_row(*_folded([lines[n] for n in part], scene, frame))
            continue
        table.add_row(*_row(lines[part], scene, activity, frame))
        for child in below.get(lines[part].key, []):
            table.add_row(*_child_row(lines[part], child, frame))
    return table


def _children(scene: Scene, activity: Activity, room: int | None) -> dict[str, list[ChildLine]]:
    """Lines of the children below each task: they get what the tasks leave, and a third where there is too little."""
    left = None if room is None else max(room - len(scene.plan.lines), room // 3)
    found: dict[str, list[ChildLine]] = {}
    for key, task in scene.tasks.items():
        if task.fanout is not None:
            most = MOST if left is None else min(MOST, left)
            found[key] = children.below(task.fanout, lambda child: activity.doing(child.id), most)
            left = None if left is None else left - len(found[key])
    return found


def _child_row(line: Line, child: ChildLine, frame: Frame) -> list[RenderableType]:
    guides = under(line.guides) + child.guides
    name = Text(guides.translate(ASCII_GUIDES) if frame.ascii else guides, style="dim")
    style = STYLES.get(child.status or "", "dim")
    name.append(child.name, style="dim" if child.status is None else "")
    state = Text(word(child.status) if child.status else "", style=style)
    now = Text(child.now, style="dim" if child.status is None else "")
    return (
        [name, state, Text(), now, Text(), Text()]
        if frame.width >= _NARROW
        else _narrow(name, state, now, Text(), frame)
    )


def _row(line: Line, scene: Scene, activity: Activity, frame: Frame) -> list[RenderableType]:
    task = scene.tasks[line.key]
    guides = line.guides.translate(ASCII_GUIDES) if frame.ascii else line.guides
    name = Text.assemble((guides, "dim"), (mark(task.status, frame), STYLES.get(task.status, "")), " ")
    name.append(one_line(task.title, 120), style="dim" if task.status in ("pending", "skipped") else "")
    if line.also_after:
        name.append("  also after " + one_line(", ".join(line.also_after), 60), style="dim")
    label = " (stand-in)" if task.id in activity.stand_in_tasks and frame.width >= _WIDE else ""
    cost = ("≥" if task.cost_incomplete else "") + (f"{task.cost_usd:.4f}" if task.cost_usd else "")
    begun = task.started_at
    spent = clock((task.ended_at or scene.now) - begun) if begun is not None else ""
    state = Text(word(task.status), style=STYLES.get(task.status, ""))
    now = Text(now_line(task, scene, activity), style="red" if task.status == "failed" else "")
    if frame.width < _NARROW:
        return _narrow(name, state, now, Text(spent, style="dim"), frame)
    agent = Text(one_line(task.agent, 40) + label, style="dim")
    return [name, state, agent, now, Text(cost, style="dim"), Text(spent, style="dim")]


def _narrow(name: Text, state: Text, now: Text, spent: Text, frame: Frame) -> list[RenderableType]:
    return [name, state, now, spent] if frame.width >= _TIGHT else [name, state, spent]


def now_line(task: TaskView, scene: Scene, activity: Activity) -> str:
    """What a task does right now, waits for, or came to."""
    if task.status == "running":
        again = f"attempt {task.attempt}: " if task.attempt > 1 else ""
        return again + activity.doing(task.run_id)
    if task.status == "failed" and task.error:
        return one_line(f"{task.error.get('code')}: {task.error.get('message')}", 300)
    if task.status == "pending":
        return _open_dependencies(task, scene)
    if task.status == "waiting":
        return _waits(task, scene)
    if task.status == "needs_input":
        run = activity.runs.get(task.run_id or "")
        since = f" for {clock(scene.now - run.since)}" if run is not None and run.status == "needs_input" else ""
        return f"waits for your answer{since}"
    return "waits for a worker" if task.status == "queued" else one_line(task.reason or "", 300)


def _open_dependencies(task: TaskView, scene: Scene) -> str:
    before = [key for key in scene.plan.depends_on[task.key] if scene.tasks[key].status != "completed"]
    return "after " + one_line(", ".join(before), 200) if before else ""


def _waits(task: TaskView, scene: Scene) -> str:
    if task.waiting_on == "children":
        return children.summary(task.fanout) if task.fanout is not None else "for its children"
    words = {"timer": "for its timer", "gate": "at a gate", "backoff": "before it tries again"}
    until = f", {clock(task.due_at - scene.now)} left" if task.due_at is not None and task.due_at > scene.now else ""
    return words.get(task.waiting_on or "", "") + until


def waiting_for_you(scene: Scene, frame: Frame, *, commands: bool = True) -> list[Text]:
    """Each open signal: what is asked, and the command that answers it."""
    titles = {task.id: task.title for task in scene.tasks.values()}
    lines = []
    for signal in scene.signals[:3]:
        asked = _asked(signal, titles.get(signal.get("taskId") or "", ""))
        head = f"{mark('needs_input', frame)} needs you  "
        lines.append(Text.assemble((head, "bold yellow"), asked, no_wrap=True, overflow="ellipsis"))
        if commands:
            lines.append(Text("  " + answer_command(signal), style="bold", overflow="fold"))
    if len(scene.signals) > 3:
        lines.append(Text(f"  and {len(scene.signals) - 3} more" + (": officina signals" if commands else "")))
    if scene.unknown:
        words = f"? may have happened: {one_line(', '.join(scene.unknown), 100)}   officina show {scene.id}"
        lines.append(Text(words, style="yellow", overflow="fold"))
    return lines


def _asked(signal: dict[str, Json], task: str) -> str:
    """The skill first: it is what a person has to know, and the end of a line is what a narrow screen loses."""
    skill = (signal.get("action") or {}).get("skill")
    wish = f"{one_line(skill, 60)} is wanted" if skill else one_line(signal["title"], 200)
    by = f" by {one_line(signal['agent'], 40)}" if signal.get("agent") else ""
    return f"{wish}{by}" + (f", in {one_line(task, 60)}" if task else "")


def answer_command(signal: dict[str, Json]) -> str:
    """The command that answers a signal, fit to be pasted into a shell."""
    label = next((option.get("label") or option.get("id") for option in signal.get("options") or []), None)
    if label is None:
        return f"officina answer {signal['id']} --payload JSON"
    if _PLAIN_LABEL.fullmatch(str(label)):
        return f'officina answer {signal["id"]} "{label}"'
    return f"officina answer {signal['id']} {shlex.quote(one_line(label, 200))}"


def hints(scene: Scene) -> list[Text]:
    """What to do where nothing can move."""
    if scene.ended or scene.workers or scene.now - scene.created_at < _PATIENCE_MS:
        return []
    return [Text(), Text("no worker is up: officina up (or officina worker) starts one", style="yellow")]


def closing(
    scene: Scene, activity: Activity, files: Sequence[dict[str, Json]], frame: Frame, folder: str
) -> RenderableType:
    """What is left on the screen when the project has ended: the outline, the deliverables, what to do about faults.

    `folder` is the workspace as the person can name it from where they stand.
    """
    rest: list[RenderableType] = [Text(), *deliverables(scene, files, folder)] if files else []
    rest += failures(scene)
    total = f"{word(scene.status)}: {money(scene.cost_usd, incomplete=scene.cost_incomplete)} in " + duration(
        (scene.ended_at or scene.now) - scene.created_at
    )
    if scene.reason:
        total += f" ({one_line(scene.reason, 200)})"
    return Group(page(scene, activity, frame), *rest, Text(), Text(total, style=STYLES.get(scene.status, "")))


def summary(scene: Scene, activity: Activity, files: Sequence[dict[str, Json]]) -> dict[str, Json]:
    """The end in JSON: state, money, time, files, and what failed."""
    failed = [task for task in scene.tasks.values() if task.status == "failed"]
    return {
        "status": scene.status,
        "reason": scene.reason,
        "tasks": len(scene.tasks),
        "completed": sum(task.status == "completed" for task in scene.tasks.values()),
        "costUsd": scene.cost_usd,
        "costIncomplete": scene.cost_incomplete,
        "durationMs": (scene.ended_at or scene.now) - scene.created_at,
        "standIn": scene.rehearsal or bool(activity.stand_in_tasks),
        "workspace": scene.workspace,
        "files": [file for file in files if not file["path"].startswith("inputs/")],
        "failures": [{"taskId": task.id, "key": task.key, "error": task.error} for task in failed],
    }


def failures(scene: Scene) -> list[RenderableType]:
    """What failed, why, and what to do about it; where nothing did, nothing."""
    failed = [task for task in scene.tasks.values() if task.status == "failed"]
    if not failed:
        return []
    lines: list[RenderableType] = [Text(), Text("What failed", style="bold")]
    for task in failed[:5]:
        error = task.error or {}
        node = f" (at node {one_line(error['node'], 40)})" if error.get("node") else ""
        why = one_line(f"{error.get('code')}: {error.get('message')}", 600) + node if error else "no reason was kept"
        lines.append(Text(f"{one_line(task.title, 80)}: {why}", style="red"))
        lines.append(Text(f"  again: officina retry {task.id}", overflow="fold"))
    more = [Text(f"  and {several(len(failed) - 5, 'task')} more: officina show {scene.id}")] if len(failed) > 5 else []
    skipped = sum(task.status == "skipped" for task in scene.tasks.values())
    after = [Text(f"  {several(skipped, 'task')} after them skipped; a retry opens them again", style="dim")]
    return [*lines, *more, *(after if skipped else [])]


def deliverables(scene: Scene, files: Sequence[dict[str, Json]], folder: str) -> list[RenderableType]:
    """Paths and sizes: what the tasks promised first; when they promised nothing, whatever was written."""
    promised = {path for task in scene.tasks.values() for path in task.deliverables}
    made = [file for file in files if not file["path"].startswith("inputs/")]
    shown = [file for file in made if file["path"] in promised] or made
    lines = [Text("Deliverables", style="bold")]
    for file in shown[:50]:
        path = f"{folder}/{one_line(file['path'], 600)}"
        # Never wrapped by us: a path broken over two lines cannot be copied.
        lines.append(Text.assemble((f"{size(file['bytes']):>10}  ", "dim"), path, no_wrap=True, overflow="ignore"))
    more = len(made) - len(shown[:50])
    return [*lines, Text(f"and {several(more, 'file')} more in {folder}", style="dim")] if more else [*lines]


def _weight(task: TaskView, number: int) -> tuple[int, int]:
    """Of what has ended the latest stays in sight, of what comes the next."""
    return _WEIGHTS.get(task.status, 2), number if task.ended else -number


def _folded(lines: Sequence[Line], scene: Scene, frame: Frame) -> list[RenderableType]:
    counts = Counter(word(scene.tasks[line.key].status) for line in lines)
    told = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    guides = under(lines[0].guides) + "⋯ "
    name = (guides.translate(ASCII_GUIDES) if frame.ascii else guides) + several(len(lines), "task")
    if frame.width < _TIGHT:
        name = f"{name}: {told}"
    shown = [Text(name, style="dim"), Text(), Text(), Text(told, style="dim"), Text(), Text()]
    return [*shown] if frame.width >= _NARROW else _narrow(shown[0], Text(), shown[3], Text(), frame)


def _bar(done: int, total: int, width: int, *, ascii_only: bool) -> Text:
    full = round(width * done / total) if total else 0
    on, off = ("#", "-") if ascii_only else ("█", "░")
    return Text.assemble((on * full, "green"), (off * (width - full), "dim"))
