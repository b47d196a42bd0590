"""A person's moves of tasks: trying a failed one again."""

from sqlalchemy import Connection, select, update

from orchestrator.records import Event, Wake
from orchestrator.states import TASK_ENDED
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
    before = connection.execute(select(tasks.c.status).where(tasks.c.id == task_id).with_for_update()).scalar_one()
    if before not in ("failed", "cancelled"):
        raise Refused("only a failed or cancelled task can be tried again", code="not_failed")
    opened = _open_skipped(connection, project.id, task_id)
    values = {"status": "queued", "reason": None, "ended_at": None}
    again = connection.execute(update(tasks).where(tasks.c.id == task_id).values(values).returning(tasks)).one()
    runs.make_roots(connection, [again], project)
    connection.execute(
        update(projects)
        .where(projects.c.id == project.id)
        .values(status="running", reason=None, ended_at=None, open_tasks=projects.c.open_tasks + 1 + len(opened))
    )
    lines = [Event("task.status", {"status": "queued", "from": before, "reason": "a person tries it again"}, task_id)]
    if project.status != "running":
        lines.insert(0, Event("project.status", {"status": "running", "from": project.status}))
    lines += [Event("task.status", {"status": "pending", "from": "skipped"}, task_id=one) for one in opened]
    ready = wakes.take(connection, project.id)
    events.append(connection, project.id, lines)
    return ready


def _open_skipped(connection: Connection, project_id: str, task_id: str) -> list[str]:
    """skipped -> pending for what is below a task and barred by nothing else, its dependencies counted anew."""
    status = _statuses(connection, project_id) | {task_id: "queued"}
    after = _links(connection, list(status))
    opened = _reach(after, task_id) & {one for one, is_now in status.items() if is_now == "skipped"}
    barred = {one for one, is_now in status.items() if is_now in TASK_ENDED - {"completed"}}
    while shut := {one for one in opened if any(on in barred - opened for on in after[one])}:
        opened -= shut
    for one in sorted(opened):
        waits = sum(status[on] != "completed" for on in after[one])
        values = {"status": "pending", "reason": None, "ended_at": None, "open_dependencies": waits}
        connection.execute(update(tasks).where(tasks.c.id == one).values(values))
    return sorted(opened)


def _statuses(connection: Connection, project_id: str) -> dict[str, str]:
    query = select(tasks.c.id, tasks.c.status).where(tasks.c.project_id == project_id)
    return {row.id: row.status for row in connection.execute(query.order_by(tasks.c.id).with_for_update())}


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
