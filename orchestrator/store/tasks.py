"""A person's moves of tasks: one that has ended begins again."""

from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from orchestrator.records import Event, Wake
from orchestrator.states import TASK_ENDED
from orchestrator.store import events, wakes
from orchestrator.store import runs as runs_moves
from orchestrator.store.tables import dependencies, projects, runs, tasks
from registry.errors import Refused


def retry(connection: Connection, task_id: str) -> list[Wake]:
    """Gives a failed task a new root run, and opens again what was skipped for its sake.

    Raises:
        Refused: `unknown_task`, `not_failed`.
    """
    project, task = lock(connection, task_id)
    if task.status not in ("failed", "cancelled"):
        raise Refused("only a failed or cancelled task can be tried again", code="not_failed")
    again, lines = reopen(connection, project, task, "a person tries it again")
    runs_moves.make_roots(connection, [again], project)
    ready = wakes.take(connection, project.id)
    events.append(connection, project.id, lines)
    return ready


def has_ended(connection: Connection, owner: str) -> bool:
    """Whether a task has ended, or the run of this id where it belongs to none; what is not there has."""
    status = connection.execute(select(tasks.c.status).where(tasks.c.id == owner)).scalar()
    if status is None:
        status = connection.execute(select(runs.c.status).where(runs.c.id == owner)).scalar()
    return status is None or status in TASK_ENDED


def lock(connection: Connection, task_id: str) -> tuple[Row[Any], Row[Any]]:
    """The project of a task and the task, both locked, in this order.

    Raises:
        Refused: `unknown_task`.
    """
    project_id = connection.execute(select(tasks.c.project_id).where(tasks.c.id == task_id)).scalar()
    if project_id is None:
        raise Refused(f"there is no task {task_id}", code="unknown_task")
    project = connection.execute(
        select(projects).where(projects.c.id == project_id).with_for_update(key_share=True)
    ).one()
    return project, connection.execute(select(tasks).where(tasks.c.id == task_id).with_for_update(key_share=True)).one()


def reopen(connection: Connection, project: Row[Any], task: Row[Any], reason: str) -> tuple[Row[Any], list[Event]]:
    """Makes an ended task `queued` again and its project `running`; the caller gives it its root run.

    What was skipped for its sake, or has not begun yet, waits for it again; what went on with its earlier output stays
    as it is. Returns the task as it is now, and lines for the trace.
    """
    made = select(func.count()).where(runs.c.task_id == task.id, runs.c.kind == "root").scalar_subquery()
    again = connection.execute(
        update(tasks)
        .where(tasks.c.id == task.id)
        .values(status="queued", reason=None, ended_at=None, attempt=made)
        .returning(tasks)
    ).one()
    opened = _open_below(connection, project.id, task.id)
    completed = int(task.status == "completed")
    connection.execute(
        update(projects)
        .where(projects.c.id == project.id)
        .values(
            status="running",
            reason=None,
            ended_at=None,
            open_tasks=projects.c.open_tasks + 1 + len(opened),
            completed_tasks=projects.c.completed_tasks - completed,
        )
    )
    lines = [Event("task.status", {"status": "queued", "from": task.status, "reason": reason}, task.id)]
    if project.status != "running":
        lines.insert(0, Event("project.status", {"status": "running", "from": project.status}))
    lines += [Event("task.status", {"status": "pending", "from": "skipped"}, task_id=one) for one in opened]
    return again, lines


def _open_below(connection: Connection, project_id: str, task_id: str) -> list[str]:
    """skipped -> pending for what is below a task and barred by nothing else; what waits there is counted anew."""
    status = _statuses(connection, project_id)
    after = _links(connection, list(status))
    below = _reach(after, task_id)
    opened = {one for one in below if status[one] == "skipped"}
    barred = {one for one, is_now in status.items() if is_now in TASK_ENDED - {"completed"}}
    while shut := {one for one in opened if any(on in barred - opened for on in after[one])}:
        opened -= shut
    for one in sorted(opened | {one for one in below if status[one] == "pending"}):
        waits = sum(status[on] != "completed" for on in after[one])
        values = {"status": "pending", "reason": None, "ended_at": None, "open_dependencies": waits}
        connection.execute(update(tasks).where(tasks.c.id == one).values(values))
    return sorted(opened)


def _statuses(connection: Connection, project_id: str) -> dict[str, str]:
    query = select(tasks.c.id, tasks.c.status).where(tasks.c.project_id == project_id)
    return {
        row.id: row.status for row in connection.execute(query.order_by(tasks.c.id).with_for_update(key_share=True))
    }


def _links(connection: Connection, task_ids: list[str]) -> dict[str, list[str]]:
    """What each task depends on."""
    after: dict[str, list[str]] = {task_id: [] for task_id in task_ids}
    for row in connection.execute(select(dependencies).where(dependencies.c.task_id.in_(task_ids))):
        after[row.task_id].append(row.depends_on_id)
    return after


def _reach(after: dict[str, list[str]], task_id: str) -> set[str]:
    """Everything that depends on a task, however far away."""
    found: set[str] = set()
    level = {task_id}
    while level:
        level = {one for one, on in after.items() if level & set(on)} - found
        found |= level
    return found
