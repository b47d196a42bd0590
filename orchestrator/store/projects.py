"""Moves of `projects`, with their teams and tasks: written whole at submit, cancelled whole."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from orchestrator.records import Event
from orchestrator.states import PROJECT_ENDED, RUN_ENDED, TASK_ENDED
from orchestrator.store import definitions, endings, events, signals
from orchestrator.store.database import now_ms
from orchestrator.store.tables import agents, dependencies, projects, runs, tasks, teams
from registry.base import Json
from registry.errors import Refused


def by_key(connection: Connection, owner_id: str, client_key: str) -> Row[Any] | None:
    """The project submitted under this key before."""
    query = select(projects).where(projects.c.owner_id == owner_id, projects.c.client_key == client_key)
    return connection.execute(query).one_or_none()


def create(
    connection: Connection,
    *,
    project: Mapping[str, Any],
    team: Mapping[str, Any],
    members: Sequence[Mapping[str, Any]],
    plan: Sequence[Mapping[str, Any]],
    depends: Sequence[tuple[str, str, int]],
    bodies: Mapping[str, dict[str, Json]],
) -> None:
    """Writes a project, its team and its tasks, and gives the ready ones their root runs: all or nothing.

    Args:
        depends: (task id, id of the task it depends on, position).
        bodies: definitions by digest.
    """
    definitions.keep(connection, bodies)
    row = dict(project) | {"status": "running", "open_tasks": len(plan), "created_at": now_ms()}
    connection.execute(insert(projects).values(row))
    events.open_trace(connection, project["id"])
    connection.execute(insert(teams).values(team))
    connection.execute(insert(agents).values(created_at=now_ms()), [dict(m) for m in members])
    waits: dict[str, int] = {}
    for task_id, _, _ in depends:
        waits[task_id] = waits.get(task_id, 0) + 1
    rows = [dict(t) | {"status": "pending", "open_dependencies": waits.get(t["id"], 0)} for t in plan]
    connection.execute(insert(tasks).values(created_at=now_ms()), rows)
    if depends:
        connection.execute(
            insert(dependencies),
            [{"task_id": t, "depends_on_id": on, "position": position} for t, on, position in depends],
        )
    stored = connection.execute(select(projects).where(projects.c.id == project["id"])).one()
    ready = [t["id"] for t in plan if t["id"] not in waits]
    lines = [
        Event("project.status", {"status": "running", "from": "planning"}),
        *_announce(team, members, plan, depends),
    ]
    events.append(connection, project["id"], lines + endings.queue_ready(connection, stored, ready))


def cancel(connection: Connection, project_id: str, reason: str) -> bool:
    """Ends everything of a project that has not ended; False when it had ended before.

    The fence of every live run is raised: a worker that carries one cannot write any more, and stops.
    """
    found = connection.execute(select(projects).where(projects.c.id == project_id).with_for_update()).one_or_none()
    if found is None:
        raise Refused(f"there is no project {project_id}", code="unknown_project")
    if found.status in PROJECT_ENDED:
        return False
    lines = [Event("project.status", {"status": "cancelled", "from": found.status, "reason": reason})]
    open_tasks = select(tasks.c.id, tasks.c.status).where(
        tasks.c.project_id == project_id, tasks.c.status.not_in(sorted(TASK_ENDED))
    )
    before = {row.id: row.status for row in connection.execute(open_tasks.order_by(tasks.c.id).with_for_update())}
    connection.execute(
        update(tasks)
        .where(tasks.c.project_id == project_id, tasks.c.status.not_in(sorted(TASK_ENDED)))
        .values(status="cancelled", reason=reason, ended_at=now_ms())
    )
    ended = connection.execute(
        update(runs)
        .where(runs.c.project_id == project_id, runs.c.status.not_in(sorted(RUN_ENDED)))
        .values(status="cancelled", fence=runs.c.fence + 1, due_at=None, waiting_on=None, ended_at=now_ms())
        .returning(runs.c.id, runs.c.task_id, runs.c.agent_id)
    ).all()
    connection.execute(
        update(projects)
        .where(projects.c.id == project_id)
        .values(status="cancelled", reason=reason, open_tasks=0, ended_at=now_ms())
    )
    lines += [Event("run.cancelled", {"reason": reason}, r.task_id, r.id, r.agent_id) for r in ended]
    lines += signals.close_of_run(connection, [row.id for row in ended])
    lines += [Event("task.status", {"status": "cancelled", "from": s}, task_id=t) for t, s in sorted(before.items())]
    events.append(connection, project_id, lines)
    return True


def _announce(
    team: Mapping[str, Any],
    members: Sequence[Mapping[str, Any]],
    plan: Sequence[Mapping[str, Any]],
    depends: Sequence[tuple[str, str, int]],
) -> list[Event]:
    after: dict[str, list[str]] = {}
    for task_id, on, _ in sorted(depends, key=lambda d: d[2]):
        after.setdefault(task_id, []).append(on)
    # A trace line is bounded; a plan of thousands is read from its rows.
    told = [
        {"id": t["id"], "title": t["title"], "role": t["role"], "dependsOn": after.get(t["id"], [])} for t in plan[:200]
    ]
    crew: list[Json] = [{"agentId": m["key"], "role": m["role"], "name": m["name"]} for m in members]
    return [
        Event("project.planned", {"tasks": told, "count": len(plan)}),
        Event("team.assembled", {"leadAgentId": team["lead_agent_id"], "members": crew}),
    ]
