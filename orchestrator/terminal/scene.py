"""What the live view reads: the rows of one project, light enough to read several times a second."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, func, select

from orchestrator import costs, trees, views
from orchestrator.costs import Cost, Spent
from orchestrator.settings import Settings
from orchestrator.states import PROJECT_ENDED, RUN_ENDED, TASK_ENDED
from orchestrator.store import repairs
from orchestrator.store.database import now_ms
from orchestrator.store.tables import projects, runs, tasks, workers
from orchestrator.terminal.outline import Line, outline
from orchestrator.trees import Fanout
from registry.base import Json
from registry.errors import Refused

#: Milliseconds after which a worker that said nothing counts as gone.
SILENT_MS = 60_000


@dataclass(frozen=True)
class TaskView:
    """A task, and its root run while it has one that has not ended."""

    id: str
    key: str
    title: str
    status: str
    reason: str | None
    agent: str
    error: dict[str, Json] | None
    cost_usd: float
    cost_incomplete: bool
    started_at: int | None
    ended_at: int | None
    deliverables: list[str]
    run_id: str | None = None
    waiting_on: str | None = None
    due_at: int | None = None
    fanout: Fanout | None = None
    attempt: int = 1

    @property
    def ended(self) -> bool:
        return self.status in TASK_ENDED


@dataclass
class Plan:
    """The shape of a project's DAG; read again only when tasks were added."""

    depends_on: dict[str, list[str]] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)


@dataclass(frozen=True)
class Scene:
    """One look at a project. Times are epoch milliseconds on the database's clock, `now` too."""

    id: str
    title: str
    status: str
    reason: str | None
    rehearsal: bool
    #: Tasks of a plan that waits for its start; None: none does.
    planned: int | None
    cost_usd: float
    #: What it may cost; None: no limit, or none that is known here.
    budget_usd: float | None
    cost_incomplete: bool
    created_at: int
    ended_at: int | None
    now: int
    workspace: str
    tasks: dict[str, TaskView]
    signals: list[dict[str, Json]]
    #: Names of calls that may have happened and that nobody has spoken about.
    unknown: list[str]
    workers: int
    plan: Plan

    @property
    def ended(self) -> bool:
        return self.status in PROJECT_ENDED

    @property
    def done(self) -> int:
        return sum(task.ended for task in self.tasks.values())


def read(connection: Connection, project_id: str, settings: Settings, plan: Plan | None = None) -> Scene:
    """Looks once: seven statements, one more when the plan has to be read, two more while a task waits for children."""
    row = connection.execute(
        select(projects, now_ms().label("now"), seen_workers(), costs.limit_micro()).where(projects.c.id == project_id)
    ).one_or_none()
    if row is None:
        raise Refused("the project is not there any more", code="unknown_project")
    spent = costs.of_open_runs(connection, [project_id])[project_id]
    cost = Cost(row.cost_micro, row.cost_incomplete) + spent.all
    found = _tasks(connection, project_id, spent)
    if plan is None or plan.depends_on.keys() != found.keys():
        plan = _plan(connection, project_id, found)
    return Scene(
        id=row.id,
        title=row.title,
        status=row.status,
        reason=row.reason,
        rehearsal=row.rehearsal,
        planned=len(row.plan["tasks"]) if row.status == "planning" and row.plan is not None else None,
        cost_usd=views.usd(cost.micro),
        budget_usd=None if row.limit_micro is None else views.usd(row.limit_micro),
        cost_incomplete=cost.incomplete,
        created_at=row.created_at,
        ended_at=row.ended_at,
        now=row.now,
        workspace=str(settings.workspaces / row.workspace),
        tasks=found,
        signals=views.signals_of(connection, project_id, status="open"),
        unknown=[call.name for call in repairs.unknown(connection, project_id)],
        workers=row.seen_workers,
        plan=plan,
    )


def seen_workers() -> Any:
    """How many workers gave a sign of life lately."""
    seen = (workers.c.stopped_at.is_(None)) & (workers.c.seen_at > now_ms() - SILENT_MS)
    return select(func.count()).where(seen).scalar_subquery().label("seen_workers")


def _tasks(connection: Connection, project_id: str, spent: Spent) -> dict[str, TaskView]:
    t, r = tasks.c, runs.c
    at_work = (r.project_id == project_id) & (r.kind == "root") & r.status.not_in(sorted(RUN_ENDED))
    columns = (r.id, r.task_id, r.waiting_on, r.due_at, r.attempt)
    running = {row.task_id: row for row in connection.execute(select(*columns).where(at_work))}
    spread = any(row.waiting_on == "children" for row in running.values())
    fanouts = trees.under_way(connection, project_id) if spread else {}
    light = (t.id, t.key, t.title, t.status, t.reason, t.agent_name, t.error, t.cost_micro, t.cost_incomplete)
    query = select(*light, t.started_at, t.ended_at, t.deliverables).where(t.project_id == project_id)
    rows = connection.execute(query.order_by(t.position, t.id))
    return {row.key: _task(row, running.get(row.id), fanouts, spent.of(row.id)) for row in rows}


def _task(row: Any, run: Any, fanouts: Mapping[str, Fanout], spent: Cost) -> TaskView:
    cost = Cost(row.cost_micro, row.cost_incomplete) + spent
    of_run: dict[str, Any] = {}
    if run is not None:
        of_run = {
            "run_id": run.id,
            "waiting_on": run.waiting_on,
            "due_at": run.due_at,
            "fanout": fanouts.get(run.id),
            "attempt": run.attempt,
        }
    return TaskView(
        id=row.id,
        key=row.key,
        title=row.title,
        status=row.status,
        reason=row.reason,
        agent=row.agent_name,
        error=row.error,
        cost_usd=views.usd(cost.micro),
        cost_incomplete=cost.incomplete,
        started_at=row.started_at,
        ended_at=row.ended_at,
        deliverables=row.deliverables,
        **of_run,
    )


def _plan(connection: Connection, project_id: str, found: dict[str, TaskView]) -> Plan:
    depends_on: dict[str, list[str]] = {key: [] for key in found} | views.dependencies_by_key(connection, project_id)
    return Plan(depends_on, outline(depends_on))
