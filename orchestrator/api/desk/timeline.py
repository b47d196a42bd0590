"""Who ran when: each run as a bar of stretches of work and of waiting, told from its events."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, select

from orchestrator.api.desk import run_trees
from orchestrator.api.desk.run_trees import Run
from orchestrator.store.tables import events
from orchestrator.terminal.wording import duration

#: Bars one page draws, and lines of the trace it reads for them.
MOST: Final = 240
_LINES: Final = 20_000
_KINDS: Final = (
    "run.started",
    "run.parked",
    "run.resumed",
    "run.completed",
    "run.failed",
    "run.cancelled",
)
#: What a stretch is -> how it is told. Each has a pattern of its own in the drawing, so that none is told by colour.
WORDS: Final = {
    "work": "at work",
    "queued": "in the queue",
    "you": "waited for you",
    "children": "waited for what it spawned",
    "timer": "slept",
    "gate": "waited at a gate",
    "backoff": "waited for the model",
    "turn": "waited for its turn",
}


@dataclass(frozen=True)
class Stretch:
    what: str
    #: Percent of the whole width.
    start: float
    width: float
    told: str


@dataclass(frozen=True)
class Mark:
    """A moment on a bar: a run that began once more."""

    at: float
    told: str


@dataclass
class Bar:
    run: Run
    depth: int
    title: str
    stretches: list[Stretch] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    #: Milliseconds at work, and of waiting for anything.
    work_ms: int = 0
    wait_ms: int = 0

    @property
    def told(self) -> str:
        """The whole bar in words."""
        return ", ".join([*(s.told for s in self.stretches), *(m.told for m in self.marks)])


@dataclass(frozen=True)
class Timeline:
    bars: list[Bar]
    #: Runs beyond those that are drawn.
    beyond: int
    #: (percent of the width, words) of the marks below.
    marks: list[tuple[float, str]]
    whole_ms: int

    @property
    def kinds(self) -> list[str]:
        """What stretches there are, in the order of `WORDS`."""
        there = {stretch.what for bar in self.bars for stretch in bar.stretches}
        return [what for what in WORDS if what in there]

    @property
    def begun_again(self) -> bool:
        return any(bar.marks for bar in self.bars)


Move = tuple[int, str, dict[str, Any]]


def read(connection: Connection, project_id: str, titles: Mapping[str, str], now: int) -> Timeline:
    """The timeline of a project.

    Args:
        titles: of its tasks, by id.
        now: the end of what is still going on, epoch milliseconds.
    """
    roots, beyond = run_trees.read(connection, project_id)
    roots.sort(key=lambda run: (run.created_at, run.id))
    listed = list(_with_depth(roots))
    drawn = listed[:MOST]
    if not drawn:
        return Timeline([], 0, [], 0)
    begin = min(run.created_at for run, _ in drawn)
    whole = max(1, max(run.ended_at or now for run, _ in drawn) - begin)
    moves = _moves(connection, project_id, {run.id for run, _ in drawn})
    scale = _Scale(begin, whole)
    bars = [_bar(run, depth, _title(run, titles), moves.get(run.id, []), now, scale) for run, depth in drawn]
    marks = [(100 * part / 4, duration(whole * part / 4)) for part in range(5)]
    return Timeline(bars, beyond + len(listed) - len(drawn), marks, whole)


@dataclass(frozen=True)
class _Scale:
    begin: int
    whole: int

    def percent(self, ms: int) -> float:
        return round(max(0.0, min(100.0, 100 * (ms - self.begin) / self.whole)), 3)


def _bar(run: Run, depth: int, title: str, moves: list[Move], now: int, scale: _Scale) -> Bar:
    bar = Bar(run, depth, title)
    for what, start, stop in _stretches(run, moves, now):
        left = scale.percent(start)
        told = f"{WORDS.get(what, what)} for {duration(stop - start)}"
        bar.stretches.append(Stretch(what, left, round(max(0.15, scale.percent(stop) - left), 3), told))
        if what == "work":
            bar.work_ms += stop - start
        else:
            bar.wait_ms += stop - start
    begun = [(at, data.get("attempt")) for at, kind, data in moves if kind == "run.started"]
    bar.marks = [Mark(scale.percent(at), f"began again, attempt {attempt}") for at, attempt in begun[1:]]
    return bar


def _with_depth(found: list[Run]) -> Iterable[tuple[Run, int]]:
    stack = [(run, 0) for run in reversed(found)]
    while stack:
        run, depth = stack.pop()
        yield run, depth
        stack.extend((child, depth + 1) for child in reversed(run.children))


def _title(run: Run, titles: Mapping[str, str]) -> str:
    if run.kind == "item":
        return f"{run.agent} {run.position + 1}"
    if run.parent_id is not None:
        return run.agent
    title = titles.get(run.task_id or "", "Planning")
    return title if run.attempt == 1 else f"{title} (attempt {run.attempt})"


def _moves(connection: Connection, project_id: str, run_ids: set[str]) -> dict[str, list[Move]]:
    e = events.c
    query = select(e.run_id, e.at, e.kind, e.data).where(e.trace_id == project_id, e.kind.in_(_KINDS))
    found: dict[str, list[Move]] = {}
    for row in connection.execute(query.order_by(e.seq).limit(_LINES)):
        if row.run_id in run_ids:
            found.setdefault(row.run_id, []).append((row.at, row.kind, row.data))
    return found


def _stretches(run: Run, moves: list[Move], now: int) -> Iterable[tuple[str, int, int]]:
    """(what, from, to) in order; the last goes on until now where the run does."""
    what, since = "queued", run.created_at
    for at, kind, data in moves:
        after = _after(kind, data)
        if after == what:
            continue
        yield what, since, max(since, at)
        what, since = after, max(since, at)
    if what != "over":
        yield what, since, max(since, run.ended_at or now)


def _after(kind: str, data: Mapping[str, Any]) -> str:
    if kind == "run.parked":
        on = str(data.get("on"))
        return "you" if on == "signals" else on if on in WORDS else "turn"
    return "work" if kind in ("run.started", "run.resumed") else "over"
