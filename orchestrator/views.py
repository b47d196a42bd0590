"""What may be seen: read-only queries, and the JSON they become (spec: project 1, engine 12, skills 15).

Each view is a handful of statements whatever the project's size. Names are camelCase, times epoch milliseconds, money
USD; a sum that misses an unknown price says `costIncomplete`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Row,
    RowMapping,
    Select,
    Text,
    bindparam,
    func,
    or_,
    select,
    text,
    tuple_,
)

from orchestrator import costs, trees
from orchestrator.costs import NOTHING, Cost, Spent
from orchestrator.settings import Settings
from orchestrator.states import PROJECT_ENDED
from orchestrator.store import plans, repairs
from orchestrator.store.tables import calls, dependencies, files, projects, runs, signals, tasks
from orchestrator.unknown import UNKNOWN
from registry import masking
from registry.base import Json
from registry.jsontext import digest
from registry.plans import Plan, PlannedTask

#: Rows one list may have.
MOST = 200


# Statements are written once, where they have a few shapes once for each: to make one anew costs more than to send it.
# Rows that come in numbers are taken apart or read as mappings: an attribute of a row costs six times as much.

#: What of a project is listed; its brief, script and names of skills stay unread.
_PROJECT_COLUMNS: Final = (
    *(projects.c.id, projects.c.title, projects.c.status, projects.c.reason),
    *(projects.c.cost_micro, projects.c.cost_incomplete),
    *(projects.c.created_at, projects.c.ended_at, projects.c.history_pruned_at, projects.c.files_pruned_at),
)

#: What of a task is shown; its instruction, input and definition stay unread.
_TASK_COLUMNS: Final = (
    *(tasks.c.key, tasks.c.id, tasks.c.title, tasks.c.role, tasks.c.status, tasks.c.reason, tasks.c.agent_name),
    *(tasks.c.output, tasks.c.error, tasks.c.cost_micro, tasks.c.cost_incomplete),
    *(tasks.c.started_at, tasks.c.ended_at),
)

_ITS: Final[Any] = bindparam("project")
#: Calls and actions of a project that may have happened, spoken about or not: mostly there are none to be read. The
#: words of the first are those of its partial index.
_OF_ITS_RUNS: Final = select(runs.c.id).where(runs.c.project_id == projects.c.id)
_UNSURE_CALL: Final = _OF_ITS_RUNS.join(calls, calls.c.run_id == runs.c.id).where(text("calls.outcome = 'unknown'"))
_UNSURE_ACTION: Final = _OF_ITS_RUNS.join(signals, signals.c.run_id == runs.c.id).where(signals.c.execution == UNKNOWN)
_WHOLE: Final = select(
    *_PROJECT_COLUMNS,
    *(projects.c.plan, projects.c.rehearsal, projects.c.workspace, costs.limit_micro()),
    or_(_UNSURE_CALL.exists(), _UNSURE_ACTION.exists()).label("unsure"),
).where(projects.c.id == _ITS)
_TASKS: Final = select(*_TASK_COLUMNS).where(tasks.c.project_id == _ITS).order_by(tasks.c.position, tasks.c.id)
_FILES: Final = (
    select(files.c.path, files.c.bytes, files.c.sha256).where(files.c.project_id == _ITS).order_by(files.c.path)
)
_TASK, _BEFORE = tasks.alias(), tasks.alias()
_EDGES: Final = (
    select(_TASK.c.key, _BEFORE.c.key.label("before"))
    .select_from(dependencies)
    .join(_TASK, _TASK.c.id == dependencies.c.task_id)
    .join(_BEFORE, _BEFORE.c.id == dependencies.c.depends_on_id)
    .where(_TASK.c.project_id == _ITS)
    .order_by(_TASK.c.position, dependencies.c.position)
)


@cache
def _listed(*, of_status: bool, further: bool) -> Select[Any]:
    p = projects.c
    count = select(func.count()).where(tasks.c.project_id == p.id).scalar_subquery().label("all_tasks")
    found = select(*_PROJECT_COLUMNS, p.plan.is_not(None).label("has_plan"), p.open_tasks, count)
    found = found.where(p.owner_id == bindparam("owner"), p.kind == "project")
    if of_status:
        found = found.where(p.status == bindparam("status"))
    if further:
        found = found.where(tuple_(p.created_at, p.id) < _PLACE)
    return found.order_by(p.created_at.desc(), p.id.desc()).limit(bindparam("most", type_=Integer))


@cache
def _signals_of_owner(*, of_status: bool, further: bool) -> Select[Any]:
    s = signals.c
    found = select(signals).where(s.owner_id == bindparam("owner"))
    if of_status:
        found = found.where(s.status == bindparam("status"))
    if further:
        found = found.where(tuple_(s.created_at, s.id) > _PLACE)
    return found.order_by(s.created_at, s.id).limit(bindparam("most", type_=Integer))


@cache
def _signals_of_project(*, of_status: bool) -> Select[Any]:
    found = select(signals).where(signals.c.project_id == _ITS)
    if of_status:
        found = found.where(signals.c.status == bindparam("status"))
    return found.order_by(signals.c.created_at, signals.c.id)


#: The last row that was seen, in lists by the time of making and id.
_PLACE: Final[Any] = tuple_(bindparam("place_at", type_=BigInteger), bindparam("place_id", type_=Text))


def _place(after: tuple[int, str] | None) -> dict[str, Any]:
    return {"place_at": after[0], "place_id": after[1]} if after else {}


def usd(micro: int) -> float:
    """Whole micro-USD as USD; exact to the last digit printed."""
    return micro / 1_000_000


def project(connection: Connection, project_id: str, settings: Settings) -> dict[str, Json]:
    """One project with its tasks, runs, files and signals: what `officina show ID --json` prints.

    `runs` beside the tasks are those that made its plan, where it was planned here; `plan` is one that waits for its
    start; `maxCostUsd` is its budget as it is now, where it has one; `rehearsal` is there where it is one.
    """
    row = connection.execute(_WHOLE, {"project": project_id}).one()
    its_runs = trees.read(connection, project_id)
    runs_of, spent = trees.by_task(its_runs), costs.of_runs(its_runs)
    return {
        **_project(*row[: len(_PROJECT_COLUMNS)], spent=spent.all, has_plan=row.plan is not None),
        **_present(
            maxCostUsd=None if row.limit_micro is None else usd(row.limit_micro), rehearsal=row.rehearsal or None
        ),
        "workspace": str(settings.workspaces / row.workspace),
        **_present(runs=runs_of.get(None), plan=_plan(row)),
        "tasks": _tasks(connection, project_id, runs_of, spent),
        "files": file_list(connection, project_id),
        "signals": signals_of(connection, project_id),
        "unknown": unknown(connection, project_id) if row.unsure else [],
    }


def project_list(
    connection: Connection,
    owner: str,
    *,
    status: str | None = None,
    limit: int = 50,
    after: tuple[int, str] | None = None,
) -> list[dict[str, Json]]:
    """The owner's projects, newest first: {id, title, status, tasks, endedTasks, costUsd, createdAt, endedAt}.

    Args:
        after: `createdAt` and id of the last one that was seen; None: from the newest.
    """
    which = {"owner": owner, "status": status, "most": min(limit, MOST)} | _place(after)
    rows = connection.execute(_listed(of_status=status is not None, further=after is not None), which).all()
    spent = costs.of_open_runs(connection, [id_ for id_, _, status, *_ in rows if status not in PROJECT_ENDED])
    return [
        {
            **_project(*columns, spent=spent[columns[0]].all if columns[0] in spent else NOTHING, has_plan=has_plan),
            "tasks": all_tasks,
            "endedTasks": all_tasks - open_tasks,
        }
        for *columns, has_plan, open_tasks, all_tasks in rows
    ]


def signal_list(
    connection: Connection,
    owner: str,
    *,
    status: str | None = "open",
    limit: int = 50,
    after: tuple[int, str] | None = None,
) -> list[dict[str, Json]]:
    """The owner's signals with exactly what would run, the longest waiting first.

    Args:
        after: `createdAt` and id of the last one that was seen; None: from the first.
    """
    which = {"owner": owner, "status": status, "most": min(limit, MOST)} | _place(after)
    query = _signals_of_owner(of_status=status is not None, further=after is not None)
    return [_signal(row) for row in connection.execute(query, which).all()]


def signals_of(connection: Connection, project_id: str, *, status: str | None = None) -> list[dict[str, Json]]:
    """Signals of one project, oldest first."""
    query = _signals_of_project(of_status=status is not None)
    return [_signal(row) for row in connection.execute(query, {"project": project_id, "status": status}).all()]


def signal(connection: Connection, signal_id: str) -> dict[str, Json]:
    """One signal."""
    return _signal(connection.execute(select(signals).where(signals.c.id == signal_id)).one())


def places(connection: Connection, found: Sequence[Mapping[str, Json]]) -> dict[str, str]:
    """Where signals come from, by project or task id: the project's title, the task's key."""
    titles = select(projects.c.id, projects.c.title).where(projects.c.id.in_({one.get("projectId") for one in found}))
    keys = select(tasks.c.id, tasks.c.key).where(tasks.c.id.in_({one.get("taskId") for one in found}))
    return {row[0]: row[1] for query in (titles, keys) for row in connection.execute(query)}


def unknown(connection: Connection, project_id: str) -> list[Json]:
    """Calls that may have happened and that nobody has spoken about: what `officina repair` is for."""
    return [
        {
            "runId": call.run_id,
            "callId": call.call_id,
            "taskId": call.task_id,
            "agent": call.agent_name,
            "name": call.name,
            "input": call.input,
            "where": call.where,
            **_present(signalId=call.signal_id),
        }
        for call in repairs.unknown(connection, project_id)
    ]


def dependencies_by_key(connection: Connection, project_id: str) -> dict[str, list[str]]:
    """Task key -> keys it depends on, in the order of its `dependsOn`; tasks without any are absent."""
    found: dict[str, list[str]] = defaultdict(list)
    for key, before in connection.execute(_EDGES, {"project": project_id}).all():
        found[key].append(before)
    return dict(found)


def file_list(connection: Connection, project_id: str) -> list[Json]:
    """Files skills put into the workspace, by path: {path, bytes, sha256}."""
    found = connection.execute(_FILES, {"project": project_id}).all()
    return [{"path": path, "bytes": size, "sha256": sha256} for path, size, sha256 in found]


def _plan(row: Any) -> Json:
    """A plan that waits for its start; one that was started shows as the tasks it became."""
    if row.status != "planning" or row.plan is None:
        return None
    waits = [_waits(task) for task in Plan.model_validate({"tasks": row.plan["tasks"]}).tasks]
    return plans.told(row.plan) | {"version": digest(row.plan), "tasks": waits}


def _waits(task: PlannedTask) -> dict[str, Json]:
    """A task of a plan with all its fields; only a tier that nobody wrote is left to the agent it names."""
    whole = task.to_json()
    if task.agent is not None and "tier" not in task.model_fields_set:
        del whole["tier"]
    return whole


def _project(
    id_: str,
    title: str,
    status: str,
    reason: str | None,
    cost_micro: int,
    cost_incomplete: bool,
    created_at: int,
    ended_at: int | None,
    history_pruned_at: int | None,
    files_pruned_at: int | None,
    *,
    spent: Cost,
    has_plan: bool,
) -> dict[str, Json]:
    """What lists and views say of a project, of `_PROJECT_COLUMNS` in their order."""
    shown = {
        "id": id_,
        "title": title,
        "status": status,
        "reason": reason,
        "planReady": True if status == "planning" and has_plan else None,
        **_cost(cost_micro, cost_incomplete, spent),
        "createdAt": created_at,
        "endedAt": ended_at,
        "historyPrunedAt": history_pruned_at or None,
        "filesPrunedAt": files_pruned_at,
    }
    return {name: value for name, value in shown.items() if value is not None or name == "endedAt"}


def _tasks(
    connection: Connection, project_id: str, runs_of: Mapping[str | None, list[Json]], spent: Spent
) -> list[Json]:
    depends_on = dependencies_by_key(connection, project_id)
    return [
        _task(row, depends_on.get(row["key"], []), runs_of.get(row["id"], []), spent.of(row["id"]))
        for row in connection.execute(_TASKS, {"project": project_id}).mappings().all()
    ]


def _task(row: RowMapping, depends_on: list[str], its_runs: list[Json], spent: Cost) -> dict[str, Json]:
    error = row["error"]
    return {
        "key": row["key"],
        "id": row["id"],
        "title": row["title"],
        "role": row["role"],
        "status": row["status"],
        **_present(reason=row["reason"]),
        "agent": row["agent_name"],
        "dependsOn": depends_on,
        "output": row["output"],
        "error": error and {"code": error.get("code"), "message": error.get("message"), "node": error.get("node")},
        **_cost(row["cost_micro"], row["cost_incomplete"], spent),
        "startedAt": row["started_at"],
        "endedAt": row["ended_at"],
        "runs": its_runs,
    }


def _signal(row: Row[Any]) -> dict[str, Json]:
    """A signal as it may be seen: what would run is all there, but for its secrets."""
    shown: dict[str, Json] = masking.mask(_whole_signal(row._mapping))
    return shown


def _whole_signal(row: RowMapping) -> dict[str, Json]:
    return {
        "id": row["id"],
        "kind": row["kind"],
        "status": row["status"],
        "title": row["title"],
        **_present(
            body=row["body"],
            reason=row["reason"],
            projectId=row["project_id"],
            taskId=row["task_id"],
            runId=row["run_id"],
            nodeId=row["node_id"],
            callId=row["call_id"],
            agentId=row["agent_id"],
            agent=row["agent_name"],
        ),
        "options": row["options"],
        "priority": row["priority"],
        "action": row["action"],
        "digest": row["digest"],
        "schema": row["schema"],
        "answer": row["answer"],
        "rejected": row["rejected"],
        "answeredBy": row["answered_by"],
        "answeredAt": row["answered_at"],
        "execution": "none" if row["execution"] == "declined" else row["execution"],
        "result": row["result"],
        "createdAt": row["created_at"],
        "expiresAt": row["expires_at"],
    }


def _cost(micro: int, incomplete: bool, spent: Cost) -> dict[str, Json]:
    """What was booked, and what runs under way have spent since."""
    whole = usd(micro + spent.micro)
    return {"costUsd": whole, "costIncomplete": True} if incomplete or spent.incomplete else {"costUsd": whole}


def _present(**values: Json) -> dict[str, Json]:
    return {name: value for name, value in values.items() if value is not None}
