"""A person's moves of tasks: trying a failed one again."""

from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from orchestrator.records import Event, Wake
from orchestrator.store import events, runs, wakes
from orchestrator.store.tables import dependencies, projects, tasks
from registry.errors import Refused


def retry(connection: Connection, task_id: str) -> list[Wake]:
    """Gives a failed task a new root run, and opens again what was skipped for its sake.

    Raises:
        Refused: `unknown_task`, `not_failed`.
    """
    found = connection.execute(select(tasks.c.project_id).where(tasks.c.id == task_id)).one_or_none()
    if found is None:
        raise Refused(f"there is no task {task_id}", code="unknown_task")
    project = connection.execute(select(projects).where(projects.c.id == found.project_id).with_for_update()).one()
    again = connection.execute(
        update(tasks)
        .where(tasks.c.id == task_id, tasks.c.status.in_(("failed", "cancelled")))
        .values(status="queued", reason=None, ended_at=None)
        .returning(tasks)
    ).one_or_none()
    if again is None:
        raise Refused("only a failed or cancelled task can be tried again", code="not_failed")
    opened = _open_skipped(connection, task_id)
    runs.make_roots(connection, [again], project)
    connection.execute(
        update(projects)
        .where(projects.c.id == project.id)
        .values(status="running", reason=None, ended_at=None, open_tasks=projects.c.open_tasks + 1 + len(opened))
    )
    lines = [Event("task.status", {"status": "queued", "from": "failed", "reason": "a person tries it again"}, task_id)]
    if project.status != "running":
        lines.insert(0, Event("project.status", {"status": "running", "from": project.status}))
    lines += [Event("task.status", {"status": "pending", "from": "skipped"}, task_id=row.id) for row in opened]
    ready = wakes.take(connection, project.id)
    events.append(connection, project.id, lines)
    return ready


def _open_skipped(connection: Connection, task_id: str) -> list[Row[Any]]:
    """skipped -> pending for everything below a task, each with its open dependencies counted anew."""
    reach = select(dependencies.c.task_id).where(dependencies.c.depends_on_id == task_id).cte(recursive=True)
    below = reach.union(select(dependencies.c.task_id).where(dependencies.c.depends_on_id == reach.c.task_id))
    opened = connection.execute(
        update(tasks)
        .where(tasks.c.id.in_(select(below.c.task_id)), tasks.c.status == "skipped")
        .values(status="pending", reason=None, ended_at=None)
        .returning(tasks.c.id)
    ).all()
    on = tasks.alias("on")
    still_open = (
        select(func.count())
        .select_from(dependencies.join(on, on.c.id == dependencies.c.depends_on_id))
        .where(dependencies.c.task_id == tasks.c.id, on.c.status != "completed")
        .scalar_subquery()
    )
    ids = [row.id for row in opened]
    connection.execute(update(tasks).where(tasks.c.id.in_(ids)).values(open_dependencies=still_open))
    return list(opened)
