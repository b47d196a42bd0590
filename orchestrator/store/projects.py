"""Moves of `projects`, with their teams and tasks: written whole at submit, cancelled whole."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Connection, Row, insert, select, update

from orchestrator.planning import PlanRows
from orchestrator.records import Event, Wake
from orchestrator.states import PROJECT_ENDED, RUN_ENDED, TASK_ENDED
from orchestrator.store import definitions, effects, events, money, plans, signals, wakes
from orchestrator.store import runs as runs_moves
from orchestrator.store.database import now_ms
from orchestrator.store.tables import files, projects, runs, tasks
from registry.agents import AgentDefinition
from registry.errors import Refused
from registry.permissions import Gate


def by_key(connection: Connection, owner_id: str, client_key: str) -> Row[Any] | None:
    """The project submitted under this key before."""
    mine = (projects.c.owner_id == owner_id, projects.c.client_key == client_key, projects.c.kind == "project")
    query = select(projects).where(*mine)
    return connection.execute(query).one_or_none()


def create(
    connection: Connection,
    project: Mapping[str, Any],
    rows: PlanRows | None,
    *,
    planner: AgentDefinition,
    inputs: Sequence[Mapping[str, Any]] = (),
    wake: bool = False,
) -> list[Wake]:
    """Writes a project whole: with its plan and the first root runs, with a plan that waits for a person's start, or
    else with the run of its planner.

    Args:
        wake: whether its first runs are marked here, for wake-ups that the caller sends after the commit; else who
            advances the project marks them.
    """
    made = insert(projects).values(dict(project) | {"status": "planning", "created_at": now_ms()})
    stored = connection.execute(made.returning(projects)).one()
    events.open_trace(connection, stored.id)
    if inputs:
        connection.execute(
            insert(files).values(written_at=now_ms()), [dict(f) | {"project_id": stored.id} for f in inputs]
        )
    if rows is not None:
        lines = plans.write(connection, stored, rows)
    elif stored.plan is not None:
        lines = plans.hold(connection, stored.id, stored.plan)
    else:
        definitions.keep(connection, {planner.definition_digest: planner.to_json()})
        runs_moves.make_planner(connection, stored, planner.name, planner.id, planner.definition_digest)
        lines = [Event("project.status", {"status": "planning", "from": "new"})]
    ready = wakes.first(connection, stored) if wake else []
    events.append(connection, stored.id, lines)
    return ready


def permit(connection: Connection, project_id: str, permissions: Mapping[str, Gate]) -> None:
    """Sets the map that stands over that of every agent in it."""
    connection.execute(update(projects).where(projects.c.id == project_id).values(permissions=dict(permissions)))


def rights(connection: Connection, project_id: str) -> Row[Any]:
    """Its map and mode."""
    query = select(projects.c.permissions, projects.c.mode).where(projects.c.id == project_id)
    return cast("Row[Any]", connection.execute(query).one())


def cancel(connection: Connection, project_id: str, reason: str) -> bool:
    """Ends everything of a project that has not ended; False when it had ended before.

    The fence of every live run is raised: a worker that carries one cannot write any more, and stops.
    """
    found = connection.execute(
        select(projects).where(projects.c.id == project_id).with_for_update(key_share=True)
    ).one_or_none()
    if found is None or found.kind != "project":  # a conversation is stopped or deleted, never cancelled
        raise Refused(f"there is no project {project_id}", code="unknown_project")
    if found.status in PROJECT_ENDED:
        return False
    lines = [Event("project.status", {"status": "cancelled", "from": found.status, "reason": reason})]
    open_tasks = select(tasks.c.id, tasks.c.status).where(
        tasks.c.project_id == project_id, tasks.c.status.not_in(sorted(TASK_ENDED))
    )
    before = {
        row.id: row.status
        for row in connection.execute(open_tasks.order_by(tasks.c.id).with_for_update(key_share=True))
    }
    connection.execute(
        update(tasks)
        .where(tasks.c.project_id == project_id, tasks.c.status.not_in(sorted(TASK_ENDED)))
        .values(status="cancelled", reason=reason, ended_at=now_ms())
    )
    gone, ended = end_runs(connection, project_id, reason)
    connection.execute(
        update(projects)
        .where(projects.c.id == project_id)
        .values(status="cancelled", reason=reason, open_tasks=0, ended_at=now_ms())
    )
    lines += ended
    lines += [Event("task.status", {"status": "cancelled", "from": s}, task_id=t) for t, s in sorted(before.items())]
    lines += signals.close_of_project(connection, project_id)
    money.release(connection, gone)
    events.append(connection, project_id, lines)
    return True


def end_runs(connection: Connection, project_id: str, reason: str) -> tuple[list[str], list[Event]]:
    """Cancels every live run of a project, which the caller has locked: its questions are closed, and what it had spent
    is the project's. Gives the runs, whose reservations the caller releases, and the lines."""
    live = (runs.c.project_id == project_id, runs.c.status.not_in(sorted(RUN_ENDED)))
    connection.execute(select(runs.c.id).where(*live).order_by(runs.c.id).with_for_update(key_share=True))
    ended = connection.execute(
        update(runs)
        .where(*live)
        .values(status="cancelled", fence=runs.c.fence + 1, due_at=None, waiting_on=None, ended_at=now_ms())
        .returning(runs)
    ).all()
    _book(connection, project_id, ended)
    gone = [row.id for row in ended]
    lines = [Event("run.cancelled", {"reason": reason}, r.task_id, r.id, r.agent_id) for r in ended]
    lines += effects.give_up(connection, gone)
    lines += signals.close_of_run(connection, gone, cancelled=True)
    return gone, lines


def _book(connection: Connection, project_id: str, ended: Sequence[Row[Any]]) -> None:
    """What cancelled runs had spent stays spent, and their attempts were attempts: tasks and project keep both.

    A child brings its cost home to its parent, as if it had ended: a task costs what its root runs do.
    """
    roots = [row.task_id for row in ended if row.kind == "root"]
    connection.execute(update(tasks).where(tasks.c.id.in_(roots)).values(attempt=tasks.c.attempt + 1))
    spent = {row.id: row.cost_micro for row in ended}
    unsure = {row.id for row in ended if row.cost_incomplete}
    for row in sorted(ended, key=lambda row: -row.depth):  # the deepest first
        if row.parent_id in spent:
            spent[row.parent_id] += spent[row.id]
            unsure |= {row.parent_id} if row.id in unsure else set()
    for row in ended:
        incomplete = {"cost_incomplete": True} if row.id in unsure else {}
        if spent[row.id] != row.cost_micro or len(incomplete) > row.cost_incomplete:
            values = {"cost_micro": spent[row.id]} | incomplete
            connection.execute(update(runs).where(runs.c.id == row.id).values(values))
        if row.parent_id is None and (spent[row.id] or incomplete):
            for table, key in ((projects, project_id), (tasks, row.task_id)):
                values = {"cost_micro": table.c.cost_micro + spent[row.id]} | incomplete
                connection.execute(update(table).where(table.c.id == key).values(values))
