"""The last checkpoints of root runs that completed: tasks are closed, dependents counted down, projects ended.

Several runs of one process may end in one transaction, which then costs little more than one of them. Lock order: the
projects, the tasks, the runs, the dependents, the event counters.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, func, select, update

from orchestrator.records import Checkpoint, Event, Wake
from orchestrator.states import PROJECT_ENDED
from orchestrator.store import checkpoints, joins, money, runs, signals, wakes
from orchestrator.store.database import now_ms
from orchestrator.store.rows import update_all
from orchestrator.store.sql import among, several
from orchestrator.store.tables import dependencies, projects, tasks
from orchestrator.store.tables import runs as runs_table

#: Columns of a task that only grow.
_SUMS = frozenset({"attempt", "cost_micro"})

_MINE = among(runs_table.c.id, several("ids"))
_WHOSE: Select[Any] = select(runs_table.c.id, runs_table.c.project_id, runs_table.c.task_id).where(_MINE)
_SPENT: Select[Any] = select(runs_table.c.id, runs_table.c.cost_micro, runs_table.c.cost_incomplete).where(_MINE)
_LOCK_PROJECTS: Select[Any] = (
    select(
        *(projects.c.id, projects.c.status, projects.c.mode, projects.c.permissions, projects.c.approvals),
        *(projects.c.priority, projects.c.cost_incomplete),
    )
    .where(among(projects.c.id, several("ids")))
    .order_by(projects.c.id)
    .with_for_update(key_share=True)
)
_LOCK_TASKS: Select[Any] = (
    select(tasks.c.id, tasks.c.status, tasks.c.cost_micro, tasks.c.cost_incomplete)
    .where(among(tasks.c.id, several("ids")))
    .order_by(tasks.c.id)
    .with_for_update(key_share=True)
)
_PROJECT = projects.c.id == bindparam("project")
_COUNT = (
    update(projects)
    .where(_PROJECT)
    .values(
        open_tasks=projects.c.open_tasks - bindparam("closed"),
        completed_tasks=projects.c.completed_tasks + bindparam("completed"),
    )
    .returning(projects.c.open_tasks, projects.c.completed_tasks)
)
_CHARGE = (
    update(projects)
    .where(_PROJECT)
    .values(cost_micro=projects.c.cost_micro + bindparam("cost"), cost_incomplete=bindparam("incomplete"))
)
_TASKS = select(func.count()).where(tasks.c.project_id == bindparam("project"))
_END = (
    update(projects)
    .where(_PROJECT, projects.c.status.not_in(sorted(PROJECT_ENDED)))
    .values(status=bindparam("now"), ended_at=now_ms())
)
_AFTER = select(dependencies.c.task_id).where(among(dependencies.c.depends_on_id, several("ids")))
_LOCK_DEPENDENTS = select(tasks.c.id).where(tasks.c.id.in_(_AFTER)).order_by(tasks.c.id).with_for_update(key_share=True)
_MET = (
    select(func.count())
    .where(dependencies.c.task_id == tasks.c.id, among(dependencies.c.depends_on_id, several("ids")))
    .scalar_subquery()
)
_COUNT_DOWN = (
    update(tasks)
    .where(tasks.c.id.in_(_AFTER), tasks.c.status == "pending")
    .values(open_dependencies=tasks.c.open_dependencies - _MET)
    .returning(tasks.c.id, tasks.c.open_dependencies)
)


def end(connection: Connection, batch: Sequence[Checkpoint]) -> list[list[Wake] | None]:
    """Ends root runs of tasks as completed; gives for each the wake-ups to send after the commit, or None where its
    fence was old and nothing of it was written. What is ready in a project goes to one of its runs, whichever."""
    whose = _tasks_of(connection, batch)
    owners = _lock_projects(connection, {row.project_id for row in whose.values()})
    closing = _lock_tasks(connection, {row.task_id for row in whose.values() if row.task_id})
    good, where = checkpoints.move_all(connection, batch, _columns, checkpoints.ENDED_NOW)
    if not good:
        return [None] * len(batch)
    checkpoints.append(connection, good)
    ids = [c.run_id for c in good]
    money.release(connection, ids)
    lines: dict[str, list[Event]] = {c.run_id: joins.left_open(connection, c) for c in good}
    for line in signals.close_of_run(connection, ids):
        lines[str(line.run_id)].append(line)
    spent = _spent(connection, ids)
    ready: dict[str, list[Wake]] = {}
    for project_id, group in sorted(_by(where, good).items()):
        project = owners[project_id]
        if project.status in PROJECT_ENDED:
            continue
        # One in memory may stand for no task: it closes none.
        mine = {task_id: c for c in group if (task_id := whose[c.run_id].task_id) in closing}
        if mine:
            for task_id, checkpoint in mine.items():
                lines[checkpoint.run_id].append(_told(closing[task_id], checkpoint, spent[checkpoint.run_id]))
            _close_tasks(connection, closing, mine, spent)
            _charge(connection, project, [spent[c.run_id] for c in mine.values()])
            last = lines[group[-1].run_id]
            last += _free(connection, project, list(mine))
            last += close_project(connection, project, closed=len(mine), completed=len(mine))
        ready[project_id] = wakes.take(connection, project_id)
    checkpoints.seal(connection, good, lines, where)
    written = {(c.run_id, c.fence) for c in good}
    return [ready.pop(where[c.run_id], []) if (c.run_id, c.fence) in written else None for c in batch]


def close_project(connection: Connection, project: Row[Any], *, closed: int, completed: int) -> list[Event]:
    """Counts ended tasks; the last one ends the project."""
    counts = connection.execute(_COUNT, {"project": project.id, "closed": closed, "completed": completed}).one()
    if counts.open_tasks > 0:
        return []
    total = connection.execute(_TASKS, {"project": project.id}).scalar_one()
    status = "completed" if counts.completed_tasks == total else "partial" if counts.completed_tasks else "failed"
    if connection.execute(_END, {"project": project.id, "now": status}).rowcount == 0:
        return []
    told = {"status": status, "from": project.status}
    if status != "completed":
        told["reason"] = f"{counts.completed_tasks} of {total} tasks completed"
    return [Event("project.status", told)]


def _tasks_of(connection: Connection, batch: Sequence[Checkpoint]) -> dict[str, Any]:
    return {row.id: row for row in connection.execute(_WHOSE, {"ids": [c.run_id for c in batch]})}


def _lock_projects(connection: Connection, ids: Iterable[str]) -> dict[str, Row[Any]]:
    return {row.id: row for row in connection.execute(_LOCK_PROJECTS, {"ids": sorted(ids)})}


def _lock_tasks(connection: Connection, ids: Iterable[str]) -> dict[str, Row[Any]]:
    return {row.id: row for row in connection.execute(_LOCK_TASKS, {"ids": sorted(ids)})}


def _columns(checkpoint: Checkpoint) -> dict[str, Any]:
    assert checkpoint.ending is not None
    return joins.ended(checkpoint.ending)


def _by(where: Mapping[str, str], good: Sequence[Checkpoint]) -> dict[str, list[Checkpoint]]:
    """The checkpoints of each project."""
    found: dict[str, list[Checkpoint]] = {}
    for checkpoint in good:
        found.setdefault(where[checkpoint.run_id], []).append(checkpoint)
    return found


def _spent(connection: Connection, ids: Sequence[str]) -> dict[str, Any]:
    """What the runs cost, this last checkpoint included."""
    return {row.id: row for row in connection.execute(_SPENT, {"ids": ids})}


def _told(task: Row[Any], checkpoint: Checkpoint, spent: Row[Any]) -> Event:
    assert checkpoint.ending is not None
    told: dict[str, Any] = {"status": "completed", "from": task.status}
    if checkpoint.ending.note:
        told["reason"] = checkpoint.ending.note
    return Event("task.status", told | {"costUsd": (task.cost_micro + spent.cost_micro) / 1_000_000}, task_id=task.id)


def _close_tasks(
    connection: Connection,
    closing: Mapping[str, Row[Any]],
    mine: Mapping[str, Checkpoint],
    spent: Mapping[str, Row[Any]],
) -> None:
    rows = []
    for task_id, checkpoint in mine.items():
        assert checkpoint.ending is not None
        cost = spent[checkpoint.run_id]
        rows.append(
            {
                "id": task_id,
                "cost_micro": cost.cost_micro,
                "attempt": 1,
                "output": checkpoint.ending.output,
                "reason": checkpoint.ending.note,
                "error": None,
                "cost_incomplete": closing[task_id].cost_incomplete or cost.cost_incomplete,
                "status": "completed",
            }
        )
    update_all(connection, tasks, rows, checkpoints.ENDED_NOW, _SUMS)


def _charge(connection: Connection, project: Row[Any], spent: Sequence[Row[Any]]) -> None:
    """Adds what runs cost to their project."""
    cost, incomplete = sum(row.cost_micro for row in spent), any(row.cost_incomplete for row in spent)
    if cost or (incomplete and not project.cost_incomplete):
        values = {"project": project.id, "cost": cost, "incomplete": project.cost_incomplete or incomplete}
        connection.execute(_CHARGE, values)


def _free(connection: Connection, project: Row[Any], done: Sequence[str]) -> list[Event]:
    """Counts the dependents down; those that reach 0 become ready, each in just one transaction."""
    ids = {"ids": done}
    if not connection.execute(_LOCK_DEPENDENTS, ids).all():
        return []
    ready = [row.id for row in connection.execute(_COUNT_DOWN, ids) if row.open_dependencies == 0]
    return runs.queue_ready(connection, project, ready)
