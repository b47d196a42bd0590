"""Moves of a plan: kept until a person starts it, and made real: team, tasks and dependencies in one go, and the first
root runs."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, insert, select, update

from orchestrator.records import Ending, Event
from orchestrator.states import PROJECT_ENDED
from orchestrator.store import agents as agents_moves
from orchestrator.store import definitions, events, runs
from orchestrator.store.database import now_ms, together
from orchestrator.store.tables import agents, dependencies, projects, tasks, teams
from registry.agents import AgentDefinition
from registry.base import Json
from registry.errors import Refused
from registry.jsontext import digest
from registry.teams import SavedAgent

if TYPE_CHECKING:
    from orchestrator.planning import PlanRows

#: Tasks the event of a plan names; a larger plan is read from its rows.
TOLD = 200
#: Characters of a reason in a list.
REASON = 500


def write(
    connection: Connection, project: Row[Any], rows: "PlanRows", told: Mapping[str, Json] = MappingProxyType({})
) -> list[Event]:
    """Writes the plan of a project and queues what depends on nothing; returns the lines for its trace.

    Args:
        told: what the trace says of the plan besides its tasks.
    """
    waits: dict[str, int] = {}
    for task_id, _, _ in rows.depends:
        waits[task_id] = waits.get(task_id, 0) + 1
    plan = [t | {"status": "pending", "open_dependencies": waits.get(t["id"], 0)} for t in rows.tasks]
    started = {"status": "running", "open_tasks": len(plan)}
    with together(connection):
        definitions.keep(connection, rows.bodies)
        connection.execute(insert(teams).values(rows.team))
        connection.execute(insert(agents).values(created_at=now_ms()), rows.members)
        connection.execute(insert(tasks).values(created_at=now_ms()), plan)
        if rows.depends:
            links = [{"task_id": t, "depends_on_id": on, "position": n} for t, on, n in rows.depends]
            connection.execute(insert(dependencies), links)
        connection.execute(update(projects).where(projects.c.id == project.id).values(started))
    lines = [*_announce(rows, told), Event("project.status", {"status": "running", "from": "planning"})]
    return lines + runs.queue_ready(connection, project, [t["id"] for t in plan if t["id"] not in waits])


def planned(connection: Connection, project: Row[Any], ending: Ending) -> list[Event]:
    """The planner's run has ended: its plan becomes rows or waits for a person; else its project fails."""
    from orchestrator import planner  # most runs that end are no plans

    error = ending.error or {}
    if ending.status == "completed":
        plan = planner.read_plan(ending.output, project.brief, project.skills)
    elif error.get("code") == "output_invalid":  # it was told what is wrong, and did no better
        plan = planner.fallback(project.brief, str(error.get("message")))
    elif project.plan_before is not None:  # what a person had looked at before is there again
        reason = f"there is no other plan: {error.get('code')}: {error.get('message')}"
        return hold(connection, project.id, project.plan_before["plan"], reason[:REASON])
    else:
        reason = f"planning failed: {error.get('code')}: {error.get('message')}"
        values = {"status": "failed", "reason": reason, "ended_at": now_ms()}
        connection.execute(update(projects).where(projects.c.id == project.id).values(values))
        return [Event("project.status", {"status": "failed", "from": project.status, "reason": reason})]
    if project.held:
        # Agents of its file stay the project's, whoever plans.
        own = {name: one for name, one in ((project.plan_before or {}).get("plan") or {}).items() if name == "agents"}
        return hold(connection, project.id, plan.to_json() | own)
    from orchestrator import planning

    rows = planning.rows_of(
        project.id,
        project.owner_id,
        plan.tasks,
        {},
        frozenset(project.skills),
        saved=reusable(connection, project),
        souls=project.souls,
    )
    return write(connection, project, rows, plan.told())


def reusable(connection: Connection, project: Row[Any] | Mapping[str, Any]) -> list[SavedAgent]:
    """The agents of its owner that a project's team may be made of."""
    about = project if isinstance(project, Mapping) else project._mapping
    return agents_moves.for_teams(connection, about["owner_id"]) if about.get("reuses") else []


def hold(connection: Connection, project_id: str, plan: dict[str, Json], why: str | None = None) -> list[Event]:
    """Keeps a plan until a person starts it; returns the line for the trace."""
    count = len(plan["tasks"])
    reason = f"the plan of {count} {'task' if count == 1 else 'tasks'} waits for its start"
    reason = reason if why is None else f"{why}; {reason}"
    connection.execute(update(projects).where(projects.c.id == project_id).values(plan=plan, reason=reason))
    return [Event("project.status", {"status": "planning", "from": "planning", "reason": reason})]


def change(connection: Connection, project_id: str, version: str, plan: dict[str, Json], by: str) -> None:
    """Puts another plan in the place of one that waits.

    Raises:
        Refused: as `ready`; `version_conflict` when it is not the one that was read.
    """
    project = ready(connection, project_id, version)
    lines = hold(connection, project.id, plan)
    lines[0].data["reason"] = f"the plan was changed by {by}"
    events.append(connection, project.id, lines)


def again(
    connection: Connection, project_id: str, version: str | None, planner: AgentDefinition, note: str, by: str
) -> None:
    """Has the planner make another plan in the place of one that waits.

    Raises:
        Refused: as `change`.
    """
    project = ready(connection, project_id, version)
    if not project.brief:
        raise Refused(f"project {project_id} has no brief to plan from: change its plan instead", code="no_brief")
    definitions.keep(connection, {planner.definition_digest: planner.to_json()})
    asked = {"plan": None, "plan_before": {"plan": project.plan, "note": note}, "held": True}
    reason = f"{by} asked for another plan" + (f": {note}" if note else "")
    values = asked | {"reason": reason[:REASON]}
    connection.execute(update(projects).where(projects.c.id == project_id).values(values))
    runs.make_planner(connection, project, planner.name, planner.id, planner.definition_digest)
    data: dict[str, Json] = {"status": "planning", "from": "planning", "reason": reason[:REASON]}
    events.append(connection, project_id, [Event("project.status", data)])


def start(connection: Connection, project_id: str, version: str, rows: "PlanRows", plan: dict[str, Json]) -> None:
    """Starts a plan that waits: once, whoever else tries.

    Raises:
        Refused: as `change`.
    """
    project = ready(connection, project_id, version)
    connection.execute(update(projects).where(projects.c.id == project.id).values(plan=plan, reason=None))
    events.append(connection, project.id, write(connection, project, rows, told(plan)))


def ready(connection: Connection, project_id: str, version: str | None = None) -> Row[Any]:
    """A project whose plan waits, locked.

    Raises:
        Refused: `unknown_project`, `project_ended`, `already_started`, `not_planned`, `version_conflict`.
    """
    query = select(projects).where(projects.c.id == project_id).with_for_update(key_share=True)
    project = connection.execute(query).one_or_none()
    if project is None or project.kind != "project":
        raise Refused(f"there is no project {project_id}", code="unknown_project")
    if project.status in PROJECT_ENDED:
        raise Refused(f"project {project_id} has ended: {project.status}", code="project_ended")
    if project.status != "planning":
        raise Refused(f"project {project_id} was started already, and its plan is frozen", code="already_started")
    if project.plan is None:
        rest = "look again when the planner is done" if project.held else "it starts by itself when it is"
        raise Refused(f"the plan of project {project_id} is not ready; {rest}", code="not_planned")
    if version is not None and version != digest(project.plan):
        raise Refused("the plan was changed since you read it; read it again", code="version_conflict")
    return project


def told(plan: Mapping[str, Json]) -> dict[str, Json]:
    """What the trace says of a plan besides its tasks."""
    return {name: plan[name] for name in ("goal", "summary", "note", "dropped") if plan.get(name)}


def _announce(rows: "PlanRows", told: Mapping[str, Json]) -> list[Event]:
    after: dict[str, list[str]] = {}
    for task_id, on, _ in rows.depends:
        after.setdefault(task_id, []).append(on)
    listed: Sequence[Mapping[str, Json]] = [
        {"id": t["id"], "title": t["title"], "role": t["role"], "dependsOn": after.get(t["id"], [])}
        for t in rows.tasks[:TOLD]
    ]
    crew = [{"agentId": m["key"], "role": m["role"], "name": m["name"]} for m in rows.members]
    data: dict[str, Json] = {"tasks": listed, "count": len(rows.tasks), **told}
    return [
        Event("project.planned", data),
        Event("team.assembled", {"leadAgentId": rows.team["lead_agent_id"], "members": crew}),
    ]
