"""The trace as a person reads it: filtered, a page at a time, each line with its words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, or_, select, true

from orchestrator.records import Event
from orchestrator.store.tables import events
from orchestrator.terminal.sentences import is_stand_in, sentence

#: Lines of a page.
PAGE: Final = 500

#: Filter -> the kinds of lines it lets through; what ends with a dot is a beginning.
GROUPS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "story": ("Story", ()),
    "model": ("Model", ("think", "message", "output")),
    "tools": ("Tools", ("tool.",)),
    "states": ("States", ("project.", "task.", "run.", "team.")),
    "questions": ("Questions", ("signal.",)),
    "files": ("Files", ("file.",)),
    "problems": ("Problems", ("run.failed", "hook.failed")),
    "all": ("Everything", ()),
}
#: What the story leaves out: it is told by other lines.
_QUIET: Final = ("node.completed", "message", "tool.call")
#: Kinds that are a problem when their data says so.
_MAY_BE_WRONG: Final = ("tool.result", "task.status", "signal.expired", "signal.executed")

#: Kind -> the icon beside it.
_ICONS: Final = {"signal.raised": "question", "signal.answered": "decision", "file.written": "file"}


@dataclass(frozen=True)
class Line:
    event: Event
    words: str
    icon: str
    stand_in: bool
    task: str | None
    wrong: bool


@dataclass(frozen=True)
class Asked:
    """What of a trace is wanted."""

    group: str = "story"
    task_id: str | None = None
    run_id: str | None = None
    after: int = 0


def read(
    connection: Connection, project_id: str, asked: Asked, titles: Mapping[str, str]
) -> tuple[list[Line], int | None]:
    """A page of lines, and the number after which the next begins; None when this is the last."""
    e = events.c
    query = select(events).where(e.trace_id == project_id, e.seq > asked.after)
    if asked.task_id:
        query = query.where(e.task_id == asked.task_id)
    if asked.run_id:
        query = query.where(e.run_id == asked.run_id)
    group = asked.group if asked.group in GROUPS else "story"
    query = query.where(_of(group))
    rows = connection.execute(query.order_by(e.seq).limit(PAGE)).all()
    lines = [_line(row, titles) for row in rows]
    following = rows[-1].seq if len(rows) == PAGE else None
    return [line for line in lines if line.wrong] if group == "problems" else lines, following


def _of(group: str) -> ColumnElement[bool]:
    """What a filter lets through."""
    kind = events.c.kind
    if group == "story":
        return kind.not_in(_QUIET)
    kinds = GROUPS[group][1] + (_MAY_BE_WRONG if group == "problems" else ())
    plain = kind.in_([one for one in kinds if not one.endswith(".")])
    return (
        or_(plain, *(kind.startswith(one, autoescape=True) for one in kinds if one.endswith("."))) if kinds else true()
    )


def one(connection: Connection, project_id: str, seq: int) -> Event | None:
    """One line whole."""
    e = events.c
    row = connection.execute(select(events).where(e.trace_id == project_id, e.seq == seq)).one_or_none()
    return None if row is None else _event(row)


def _event(row: Any) -> Event:
    return Event(
        kind=row.kind,
        data=row.data,
        task_id=row.task_id,
        run_id=row.run_id,
        agent_id=row.agent_id,
        node_id=row.node_id,
        at=row.at,
        seq=row.seq,
    )


def _line(row: Any, titles: Mapping[str, str]) -> Line:
    event = _event(row)
    return Line(
        event=event,
        words=sentence(event),
        icon=_icon(event),
        stand_in=is_stand_in(event),
        task=titles.get(event.task_id or ""),
        wrong=_wrong(event),
    )


def _icon(event: Event) -> str:
    status = event.data.get("status")
    if event.kind.endswith(".status") and isinstance(status, str):
        return status
    by_kind = {"run.completed": "completed", "run.failed": "failed", "run.cancelled": "cancelled"}
    by_kind |= {"tool.call": "tool", "tool.result": "tool", "output": "result", "team.assembled": "team"}
    by_kind |= {
        "project.planned": "planning",
        "run.started": "running",
        "run.parked": "waiting",
        "run.resumed": "running",
        **_ICONS,
    }
    return by_kind.get(event.kind, event.kind)


def _wrong(event: Event) -> bool:
    data = event.data
    if event.kind in ("run.failed", "hook.failed", "signal.expired"):
        return True
    return (
        bool(data.get("isError"))
        or data.get("ok") is False
        or data.get("status") in ("failed", "skipped")
        or data.get("outcome") == "unknown"
    )
