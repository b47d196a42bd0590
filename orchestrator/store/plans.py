"""Moves that make a plan real: team, tasks and dependencies in one go, and the first root runs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, insert, update

from orchestrator.records import Ending, Event
from orchestrator.store import definitions, runs
from orchestrator.store.database import now_ms
from orchestrator.store.tables import agents, dependencies, projects, tasks, teams
from registry.base import Json

if TYPE_CHECKING:
    from orchestrator.planning import PlanRows

#: Tasks the event of a plan names; a larger plan is read from its rows.
TOLD = 200


def write(connection: Connection, project: Row[Any], rows: "PlanRows", note: str | None = None) -> list[Event]:
    """Writes the plan of a project and queues what depends on nothing; returns the lines for its trace."""
    definitions.keep(connection, rows.bodies)
    connection.execute(insert(teams).values(rows.team))
    connection.execute(insert(agents).values(created_at=now_ms()), rows.members)
    waits: dict[str, int] = {}
    for task_id, _, _ in rows.depends:
        waits[task_id] = waits.get(task_id, 0) + 1
    plan = [t | {"status": "pending", "open_dependencies": waits.get(t["id"], 0)} for t in rows.tasks]
    connection.execute(insert(tasks).values(created_at=now_ms()), plan)
    if rows.depends:
        links = [{"task_id": t, "depends_on_id": on, "position": n} for t, on, n in rows.depends]
        connection.execute(insert(dependencies), links)
    connection.execute(
        update(projects).where(projects.c.id == project.id).values(status="running", open_tasks=len(plan))
    )
    lines = [*_announce(rows, note), Event("project.status", {"status": "running", "from": "planning"})]
    return lines + runs.queue_ready(connection, project, [t["id"] for t in plan if t["id"] not in waits])


def planned(connection: Connection, project: Row[Any], ending: Ending) -> list[Event]:
    """The planner's run has ended: its plan becomes rows, or the project fails with its reason."""
    if ending.status != "completed":
        error = ending.error or {}
        reason = f"planning failed: {error.get('code')}: {error.get('message')}"
        values = {"status": "failed", "reason": reason, "ended_at": now_ms()}
        connection.execute(update(projects).where(projects.c.id == project.id).values(values))
        return [Event("project.status", {"status": "failed", "from": project.status, "reason": reason})]
    from orchestrator import planning  # most runs that end are no plans

    registered = frozenset(project.skills)
    plan, note = planning.read_plan(ending.output, project.brief, registered)
    return write(connection, project, planning.rows_of(project.id, project.owner_id, plan, {}, registered), note)


def _announce(rows: "PlanRows", note: str | None) -> list[Event]:
    after: dict[str, list[str]] = {}
    for task_id, on, _ in rows.depends:
        after.setdefault(task_id, []).append(on)
    told: Sequence[Mapping[str, Json]] = [
        {"id": t["id"], "title": t["title"], "role": t["role"], "dependsOn": after.get(t["id"], [])}
        for t in rows.tasks[:TOLD]
    ]
    crew = [{"agentId": m["key"], "role": m["role"], "name": m["name"]} for m in rows.members]
    data: dict[str, Json] = {"tasks": told, "count": len(rows.tasks)} | ({"note": note} if note else {})
    return [
        Event("project.planned", data),
        Event("team.assembled", {"leadAgentId": rows.team["lead_agent_id"], "members": crew}),
    ]
