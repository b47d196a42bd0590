"""Moves that take away what is old of projects that have ended: their history, their files, all of them.

In pieces, each a transaction of its own, so that nobody waits for them and an interrupted one is simply gone on with.
Each piece asks anew whether the project is still over: one that somebody retried meanwhile is left alone.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, delete, exists, func, or_, select, tuple_, update

from orchestrator.records import Event
from orchestrator.states import PROJECT_ENDED, RUN_ENDED
from orchestrator.store import audit
from orchestrator.store import events as trace
from orchestrator.store.database import now_ms
from orchestrator.store.house_tables import bygone
from orchestrator.store.kept import agenda_items, agendas, passages, pins, recalled_runs
from orchestrator.store.requests import requests
from orchestrator.store.sql import add
from orchestrator.store.tables import (
    agents,
    calls,
    checkpoints,
    dependencies,
    events,
    files,
    messages,
    projects,
    repairs,
    reservations,
    runs,
    signals,
    tasks,
    teams,
    traces,
    windows,
)

Part = Literal["history", "files", "project"]
PARTS: Final[tuple[Part, ...]] = ("history", "files", "project")
#: Rows of a table that one transaction deletes.
PIECE: Final = 2_000
DAY_MS: Final = 24 * 3_600_000
#: What `history_pruned_at` says while it is under way.
BEGUN: Final = 0
#: The one event that stays, and says what became of the others.
LEFT: Final = "project.pruned"

#: What is a project's history, with what says whose it is. What stands on others comes first.
_OF_RUNS: Final[tuple[Table, ...]] = (repairs, recalled_runs, passages, calls, checkpoints, messages)


def _over() -> ColumnElement[bool]:
    """Projects in which nothing goes on and nothing can: no open run, no action with a yes that is still to come."""
    at_work = exists().where(runs.c.project_id == projects.c.id, runs.c.status.not_in(sorted(RUN_ENDED)))
    coming = and_(signals.c.status == "answered", ~signals.c.rejected, signals.c.execution.in_(("none", "started")))
    acting = exists().where(
        signals.c.project_id == projects.c.id, signals.c.carry_on, or_(signals.c.status == "open", coming)
    )
    calling = exists().where(requests.c.project_id == projects.c.id, requests.c.status != "done")
    ended = and_(projects.c.status.in_(sorted(PROJECT_ENDED)), projects.c.ended_at.is_not(None))
    return and_(projects.c.kind == "project", ended, ~at_work, ~acting, ~calling)


def _left(part: Part) -> ColumnElement[bool]:
    """Whether the part is still there."""
    if part == "history":
        return or_(projects.c.history_pruned_at.is_(None), projects.c.history_pruned_at == BEGUN)
    return projects.c.files_pruned_at.is_(None) if part == "files" else projects.c.id.is_not(None)


def due(connection: Connection, part: Part, days: int, limit: int | None = None) -> list[Row[Any]]:
    """Projects that ended so many days ago and still have the part, those that ended first before."""
    query = select(projects.c.id, projects.c.owner_id, projects.c.title, projects.c.workspace, projects.c.ended_at)
    old = projects.c.ended_at <= now_ms() - days * DAY_MS
    return list(connection.execute(query.where(_over(), old, _left(part)).order_by(projects.c.ended_at).limit(limit)))


def size(connection: Connection, part: Part, project_ids: Sequence[str]) -> dict[str, int]:
    """Rows that would go, by table; of files their bytes as well."""
    found: dict[str, int] = {}
    for start in range(0, len(project_ids), 500):
        some = project_ids[start : start + 500]
        for name, count in _counts(connection, part, some).items():
            found[name] = found.get(name, 0) + count
    return found


def _counts(connection: Connection, part: Part, project_ids: Sequence[str]) -> dict[str, int]:
    def rows(query: Any) -> int:
        return int(connection.execute(query).scalar() or 0)

    count = select(func.count())
    if part == "files":
        mine = files.c.project_id.in_(project_ids)
        return {"files": rows(count.where(mine)), "bytes": rows(select(func.sum(files.c.bytes)).where(mine))}
    found = {"events": rows(count.where(events.c.trace_id.in_(project_ids), events.c.kind != LEFT))}
    for table in (calls, checkpoints, messages):
        of_runs = table.join(runs, runs.c.id == table.c.run_id)
        found[table.name] = rows(count.select_from(of_runs).where(runs.c.project_id.in_(project_ids)))
    if part == "project":
        for table in (tasks, runs, signals, files):
            found[table.name] = rows(count.where(table.c.project_id.in_(project_ids)))
    return found


def history_piece(connection: Connection, project_id: str) -> int | None:
    """Deletes a piece of a project's history; returns how many rows. 0: it is all gone; None: it is not to go (any
    more)."""
    if not _lock(connection, "history", project_id):
        return None
    gone = _piece(connection, project_id)
    if gone:
        connection.execute(update(projects).where(projects.c.id == project_id).values(history_pruned_at=BEGUN))
        return gone
    trace.append(connection, project_id, [Event("project.pruned", {"part": "history"})])
    connection.execute(update(projects).where(projects.c.id == project_id).values(history_pruned_at=now_ms()))
    return 0


def files_gone(connection: Connection, project_id: str) -> bool:
    """Forgets the files of a project whose folder is gone; False: it is not to go (any more)."""
    if not _lock(connection, "files", project_id):
        return False
    connection.execute(delete(files).where(files.c.project_id == project_id))
    trace.append(connection, project_id, [Event("project.pruned", {"part": "files"})])
    connection.execute(update(projects).where(projects.c.id == project_id).values(files_pruned_at=now_ms()))
    return True


def still_over(connection: Connection, part: Part, project_id: str) -> bool:
    """Whether the part may go at this moment."""
    query = select(projects.c.id).where(projects.c.id == project_id, _over(), _left(part))
    return connection.execute(query).first() is not None


def project_piece(connection: Connection, project_id: str, *, by: str) -> int | None:
    """Deletes a piece of a whole project, and at last the project, which its owner's audit log keeps by name.

    Returns:
        How many rows; 0: it is gone; None: it is not to go (any more).
    """
    if not _lock(connection, "project", project_id):
        return None
    gone = _piece(connection, project_id)
    if gone:
        connection.execute(update(projects).where(projects.c.id == project_id).values(history_pruned_at=BEGUN))
        return gone
    row = connection.execute(select(projects).where(projects.c.id == project_id)).one()
    facts = {"title": row.title, "status": row.status, "endedAt": row.ended_at}
    audit.record(connection, row.owner_id, by, LEFT, project_id, project_id=project_id, **facts)
    _rest(connection, project_id)
    return 0


def _lock(connection: Connection, part: Part, project_id: str) -> bool:
    """Holds a project that may go, so that nobody opens it again meanwhile."""
    query = select(projects.c.id).where(projects.c.id == project_id, _over(), _left(part))
    return connection.execute(query.with_for_update(of=projects)).first() is not None


def _piece(connection: Connection, project_id: str) -> int:
    lines = select(events.c.seq).where(events.c.trace_id == project_id, events.c.kind != LEFT)
    some = lines.order_by(events.c.seq).limit(PIECE).scalar_subquery()
    gone = connection.execute(delete(events).where(events.c.trace_id == project_id, events.c.seq.in_(some))).rowcount
    mine = select(runs.c.id).where(runs.c.project_id == project_id)
    for table in _OF_RUNS:
        if gone >= PIECE:
            break
        key = list(table.primary_key)
        found = select(*key).where(table.c.run_id.in_(mine)).limit(PIECE - gone)
        gone += connection.execute(delete(table).where(tuple_(*key).in_(found))).rowcount
    return gone


def _count_on(connection: Connection, project_id: str) -> None:
    """Keeps the sums of runs that are about to go: the metrics count all there ever were."""
    r = runs.c
    sums = (r.steps, r.running_ms, r.turns, r.tokens, r.cost_micro)
    query = select(r.status, func.count().label("runs"), *(func.sum(one).label(one.name) for one in sums))
    query = query.where(r.project_id == project_id).group_by(r.status).order_by(r.status)
    kept = [dict(row._mapping) for row in connection.execute(query)]
    # The sum of a column of whole numbers is a decimal one on PostgreSQL.
    add(connection, bygone, [row | {one.name: int(row[one.name]) for one in sums} for row in kept])


def _rest(connection: Connection, project_id: str) -> None:
    """Everything that is left of a project without history, in the order in which rows stand on one another."""
    its_runs = select(runs.c.id).where(runs.c.project_id == project_id)
    its_tasks = select(tasks.c.id).where(tasks.c.project_id == project_id)
    spaces = [f"project:{project_id}"]
    spaces += [f"task:{id_}" for id_ in connection.execute(its_tasks).scalars()]
    spaces += [f"run:{id_}" for id_ in connection.execute(its_runs).scalars()]
    gone = delete(agenda_items).where(
        agenda_items.c.agenda_id.in_(select(agendas.c.id).where(agendas.c.project_id == project_id))
    )
    connection.execute(gone)
    connection.execute(delete(reservations).where(reservations.c.run_id.in_(its_runs)))
    for start in range(0, len(spaces), PIECE):
        connection.execute(delete(windows).where(windows.c.id.in_(spaces[start : start + PIECE])))
    for table in (requests, signals, files, agendas, pins):
        connection.execute(delete(table).where(table.c.project_id == project_id))
    connection.execute(delete(dependencies).where(dependencies.c.task_id.in_(its_tasks)))
    _count_on(connection, project_id)
    for table in (runs, tasks, teams, agents):
        connection.execute(delete(table).where(table.c.project_id == project_id))
    connection.execute(delete(events).where(events.c.trace_id == project_id))
    connection.execute(delete(traces).where(traces.c.id == project_id))
    connection.execute(delete(projects).where(projects.c.id == project_id))
