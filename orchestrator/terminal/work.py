"""What every agent does right now and why: at which node, with which tool, waiting for whom and since when, and what it
says while it says it."""

from collections import Counter
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.terminal.activity import Activity, Run
from orchestrator.terminal.frames import STYLES, Frame, mark
from orchestrator.terminal.scene import Scene
from orchestrator.terminal.wording import clock, one_line, several, visible, word

#: Lines of a running answer below its agent.
SPOKEN: Final = 4
_ORDER: Final = {"needs_input": 0, "running": 1, "waiting": 2, "queued": 3}
_WAITS: Final = {
    "timer": "sleeps",
    "gate": "waits at a gate",
    "backoff": "waits before it tries again",
    "turn": "waits for its turn",
}


def agents(scene: Scene, activity: Activity, frame: Frame) -> RenderableType:
    """Every run that has not ended, what needs a person first; queued ones are counted."""
    live = [run for run in activity.runs.values() if not run.ended]
    at_work = sorted((run for run in live if run.status != "queued"), key=lambda run: _ORDER.get(run.status, 9))
    lines: list[Text] = []
    for run in at_work:
        lines += _lines(run, scene, activity, frame)
    queued = sum(run.status == "queued" for run in live) + sum(t.status == "queued" for t in scene.tasks.values())
    if queued:
        lines.append(Text(f"{mark('queued', frame)} {several(queued, 'run')} in the queue", style="dim"))
    if not lines:
        words = "the project has ended" if scene.ended else "nobody is at work"
        lines.append(Text(words, style="dim"))
    return Group(*lines)


def _lines(run: Run, scene: Scene, activity: Activity, frame: Frame) -> list[Text]:
    style = STYLES.get(run.status, "")
    head = Text.assemble((mark(run.status, frame), style), f" {one_line(activity.name(run), 40)}", style="bold")
    for place in _places(run, scene):
        head.append(f"  {one_line(place, 60)}", style="dim not bold")
    now = Text.assemble("  ", (f"{word(run.status)}: ", style), doing(run, scene, activity))
    facts = [f"at node {one_line(run.node, 40)}"] if run.node else []
    facts += [f"attempt {run.attempt}"] if run.attempt > 1 else []
    facts += [f"for {clock(scene.now - run.since)}"] if run.status != "needs_input" else []
    now.append("  " + ", ".join(facts) if facts else "", style="dim")
    for line in (head, now):
        line.no_wrap, line.overflow = frame.width >= 60, "ellipsis"
    return [head, now, *spoken(run, frame.width)]


def _places(run: Run, scene: Scene) -> list[str]:
    title = next((task.title for task in scene.tasks.values() if task.id == run.task_id), "")
    place = [] if run.position is None else [f"child {run.position}"]
    return [one for one in (title, *place) if one]


def spoken(run: Run, width: int, most: int = SPOKEN) -> list[Text]:
    """The end of the answer under way, in lines that fit."""
    words = " ".join(visible(run.said).split())
    room = max(10, width - 6)
    if not words:
        return []
    tail = words if len(words) <= room * most else "…" + words[-(room * most - 1) :]
    parts = [tail[at : at + room] for at in range(0, len(tail), room)]
    return [
        Text(f"  » {part}" if not n else f"    {part}", style="italic", no_wrap=True) for n, part in enumerate(parts)
    ]


def doing(run: Run, scene: Scene, activity: Activity) -> str:
    """What a run does, waits for (whom, since when, until when), or came to."""
    if run.status == "running":
        return run.doing()
    if run.status == "needs_input":
        return _asks(run, scene)
    if run.status == "waiting":
        return _waits(run, scene, activity)
    if run.status == "queued":
        return "waits for a worker"
    return one_line(run.fault or "", 300)


def _asks(run: Run, scene: Scene) -> str:
    asked = [signal for signal in scene.signals if signal.get("runId") == run.id]
    about = [str((one.get("action") or {}).get("skill") or one["title"]) for one in asked]
    what = f" about {one_line(', '.join(about), 80)}" if about else ""
    return f"waits for you{what} for {clock(scene.now - run.since)}"


def _waits(run: Run, scene: Scene, activity: Activity) -> str:
    if run.waiting_on == "children":
        counts = Counter(activity.runs[one].status for one in run.children)
        ended = sum(activity.runs[one].ended for one in run.children)
        failed = f", {counts['failed']} failed" if counts["failed"] else ""
        words = f"{ended} of {counts.total()} children done{failed}" if run.children else "waits for its children"
    else:
        words = _WAITS.get(run.waiting_on or "", "waits")
    left = f", due in {clock(run.until - scene.now)}" if run.until is not None and run.until > scene.now else ""
    why = f" ({one_line(run.reason, 80)})" if run.reason else ""
    return words + left + why
