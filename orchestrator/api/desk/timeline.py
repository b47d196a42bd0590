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
    "run.retrying",
)
#: What a stretch is -> how it is told.
WORDS: Final = {
    "queued": "in the queue",
    "work": "at work",
    "you": "waited for you",
    "timer": "slept",
    "gate": "waited at a gate",
    "children": "waited for what it spawned",
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


@dataclass
class Bar:
    run: Run
    depth: int
    title: str
    stretches: list[Stretch] = field(default_factory=list)


@dataclass(frozen=True)
class Timeline:
    bars: list[Bar]
    #: Runs beyond those that are drawn.
    beyond: int
    #: (percent of the width, words) of the marks below.
    marks: list[tuple[float, str]]
    whole_ms: int


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
    end = max(run.ended_at or now for run, _ in drawn)
    whole = max(1, end - begin)
    moves = _moves(connection, project_id, {run.id for run, _ in drawn})
    bars = []
    for run, depth in drawn:
        bar = Bar(run, depth, _title(run, titles))
        for what, start, stop in _stretches(run, moves.get(run.id, []), now):
            left, width = 100 * (start - begin) / whole, 100 * (stop - start) / whole
            told = f"{WORDS.get(what, what)} for {duration(stop - start)}"
            bar.stretches.append(Stretch(what, round(max(0.0, left), 3), round(max(0.15, width), 3), told))
        bars.append(bar)
    marks = [(100 * part / 4, duration(whole * part / 4)) for part in range(5)]
    return Timeline(bars, beyond + len(listed) - len(drawn), marks, whole)


def _with_depth(found: list[Run]) -> Iterable[tuple[Run, int]]:
    stack = [(run, 0) for run in reversed(found)]
    while stack:
        run, depth = stack.pop()
        yield run, depth
        stack.extend((child, depth + 1) for child in reversed(run.children))


def _title(run: Run, titles: Mapping[str, str]) -> str:
    if run.parent_id is not None:
        return run.agent
    title = titles.get(run.task_id or "", "Planning")
    return title if run.attempt == 1 else f"{title} (attempt {run.attempt})"


def _moves(
    connection: Connection, project_id: str, run_ids: set[str]
) -> dict[str, list[tuple[int, str, dict[str, Any]]]]:
    e = events.c
    query = select(e.run_id, e.at, e.kind, e.data).where(e.trace_id == project_id, e.kind.in_(_KINDS))
    found: dict[str, list[tuple[int, str, dict[str, Any]]]] = {}
    for row in connection.execute(query.order_by(e.seq).limit(_LINES)):
        if row.run_id in run_ids:
            found.setdefault(row.run_id, []).append((row.at, row.kind, row.data))
    return found


def _stretches(run: Run, moves: list[tuple[int, str, dict[str, Any]]], now: int) -> Iterable[tuple[str, int, int]]:
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
        return "you" if on == "signals" else on
    return "work" if kind in ("run.started", "run.resumed", "run.retrying") else "over"
