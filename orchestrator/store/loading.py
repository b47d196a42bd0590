"""Reads a claimed run back as it stood after its last checkpoint: the one place that pays for a long history.

Runs that have not begun have none: any number of children, or of root runs, is read with the same few queries.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, Row, bindparam, func, select

from orchestrator.records import CallRecord, MessageRecord, RunRecord, TaskFacts
from orchestrator.store import briefing, children, definitions, histories, repairs, signals
from orchestrator.store.sql import among, several
from orchestrator.store.tables import calls, checkpoints, messages, projects, runs, tasks
from orchestrator.store.threads import KIND, RUN_KINDS

_RUN = select(runs).where(runs.c.id == bindparam("run"))
_PROJECT = select(projects).where(projects.c.id == bindparam("project"))
_TASK = select(tasks).where(tasks.c.id == bindparam("task"))
_FRESH = select(runs).where(among(runs.c.id, several("ids")), runs.c.checkpoint == 0)
_PROJECTS = select(projects).where(among(projects.c.id, several("ids")))
_TASKS = select(tasks).where(among(tasks.c.id, several("ids")))
_BEGINS = select(checkpoints).where(among(checkpoints.c.run_id, several("ids")), checkpoints.c.number == 0)
_HISTORY = (
    select(messages.c.number, messages.c.history, messages.c.body)
    .where(messages.c.run_id == bindparam("run"))
    .order_by(messages.c.number)
)
_SNAPSHOT = select(func.max(checkpoints.c.number)).where(
    checkpoints.c.run_id == bindparam("run"), checkpoints.c.snapshot
)
_SINCE_SNAPSHOT = (
    select(checkpoints)
    .where(checkpoints.c.run_id == bindparam("run"), checkpoints.c.number >= _SNAPSHOT.scalar_subquery())
    .order_by(checkpoints.c.number)
)
_CALLS = (
    select(calls)
    .where(calls.c.run_id == bindparam("run"), calls.c.step.in_(bindparam("steps", expanding=True)))
    .order_by(calls.c.position)
)


def load(connection: Connection, run_id: str, fence: int) -> RunRecord:
    """Everything the engine needs to go on."""
    row = connection.execute(_RUN, {"run": run_id}).one()
    project = connection.execute(_PROJECT, {"project": row.project_id}).one()
    task = connection.execute(_TASK, {"task": row.task_id}).one() if row.task_id else None
    record = _record(connection, row, fence, project, task)
    if row.parent_id is not None:
        record.ancestors, record.shared = _ancestors(connection, row.parent_id)
    first = row.checkpoint == 0 and row.parent_id is None
    if first and task is not None:
        record.input = briefing.brief(connection, project, task)
    elif first and row.kind == "plan":
        record.input = briefing.plan(project)
    else:
        _restore(connection, record)
    if row.kind in RUN_KINDS:
        _go_on(connection, record, first=first)
    return record


def fresh(connection: Connection, fences: Mapping[str, int]) -> dict[str, RunRecord]:
    """Those of these runs, claimed under these fences, that have not begun: children, and the own runs of tasks."""
    rows = connection.execute(_FRESH, {"ids": list(fences)}).all()
    roots = [row for row in rows if row.parent_id is None and row.kind == "root" and row.task_id is not None]
    found = _fresh_children(connection, [row for row in rows if row.parent_id is not None], fences)
    return found | _fresh_roots(connection, roots, fences)


def _fresh_children(
    connection: Connection, rows: Sequence[Row[Any]], fences: Mapping[str, int]
) -> dict[str, RunRecord]:
    above = {key: _above(connection, *key) for key in sorted({(row.parent_id, row.parent_step) for row in rows})}
    found: dict[str, RunRecord] = {}
    for row in rows:
        given = above[row.parent_id, row.parent_step]
        found[row.id] = record = _record(connection, row, fences[row.id], given.project, given.task)
        record.ancestors, record.shared = list(given.ancestors), list(given.shared)
    if found:
        for begin in connection.execute(_BEGINS, {"ids": list(found)}):
            _apply(found[begin.run_id], begin)
    return found


def _fresh_roots(connection: Connection, rows: Sequence[Row[Any]], fences: Mapping[str, int]) -> dict[str, RunRecord]:
    if not rows:
        return {}
    planned = {task.id: task for task in connection.execute(_TASKS, {"ids": sorted({row.task_id for row in rows})})}
    owners = connection.execute(_PROJECTS, {"ids": sorted({row.project_id for row in rows})}).all()
    found: dict[str, RunRecord] = {}
    for project in owners:
        some = [row for row in rows if row.project_id == project.id]
        said = briefing.briefs(connection, project, [planned[row.task_id] for row in some])
        for row in some:
            found[row.id] = record = _record(connection, row, fences[row.id], project, planned[row.task_id])
            record.input = said[row.task_id]
    return found


@dataclass(frozen=True)
class _Above:
    """What the children of one fan-out have in common. None of it changes while their parent waits for them."""

    project: Row[Any]
    task: Row[Any] | None
    ancestors: list[Any]
    shared: list[Any]


#: Fan-outs this process remembers of a database.
REMEMBERED = 64
_fanouts: WeakKeyDictionary[Engine, OrderedDict[tuple[str, int], _Above]] = WeakKeyDictionary()


def _above(connection: Connection, parent_id: str, step: int) -> _Above:
    known = _fanouts.setdefault(connection.engine, OrderedDict())
    found = known.get((parent_id, step))
    if found is None:
        parent = connection.execute(_RUN, {"run": parent_id}).one()
        project = connection.execute(_PROJECT, {"project": parent.project_id}).one()
        task = connection.execute(_TASK, {"task": parent.task_id}).one() if parent.task_id else None
        found = known[parent_id, step] = _Above(project, task, *_ancestors(connection, parent_id))
        while len(known) > REMEMBERED:
            known.popitem(last=False)
    return found


def _record(connection: Connection, row: Row[Any], fence: int, project: Row[Any], task: Row[Any] | None) -> RunRecord:
    """What the rows of a run, its project and its task say."""
    record = RunRecord(
        id=row.id,
        fence=fence,
        project_id=row.project_id,
        kind=row.kind,
        depth=row.depth,
        agent_id=row.agent_id,
        agent_name=row.agent_name,
        definition=definitions.get(connection, row.definition_digest),
        definition_digest=row.definition_digest,
        attempt=row.attempt,
        owner_id=project.owner_id,
        project_title=project.title,
        workspace=project.workspace,
        thread_id=project.id if project.kind == KIND else None,
        script=project.script,
        rehearsal=project.rehearsal,
        max_cost_micro=project.max_cost_micro,
        task=_facts(task) if task is not None else None,
        parent_id=row.parent_id,
        trace_parent=row.trace_parent or project.trace_parent,
        mode=row.mode,
        permissions=row.permissions,
        approvals=row.approvals,
        checkpoint=row.checkpoint,
        node_id=row.node_id,
        steps=row.steps,
        tokens=row.tokens,
        turns=row.turns,
        running_ms=row.running_ms,
        backoffs=row.backoffs,
        window=row.window,
        cost_micro=row.cost_micro,
        cost_incomplete=row.cost_incomplete,
    )
    record.resumed_by = row.resumed_by
    if row.parent_id is not None:
        record.position = row.position
        if row.kind == "item":
            record.item, record.index = row.item, row.position
    return record


def _restore(connection: Connection, record: RunRecord) -> None:
    """State = the latest snapshot and the patches since; messages, and the calls of the step under way."""
    for row in _since_snapshot(connection, record.id):
        _apply(record, row)
    history = connection.execute(_HISTORY, {"run": record.id})
    record.messages = [MessageRecord(m.number, m.history, m.body) for m in history]
    record.calls = {call.id: call for call in _calls(connection, record)}
    record.signals = signals.of_run(connection, record.id)
    record.children = children.of_step(connection, record.id, record.steps)
    record.repairs = repairs.untold(connection, [record.id]).get(record.id, [])


def _since_snapshot(connection: Connection, run_id: str) -> Iterable[Row[Any]]:
    """The checkpoints that a run's state is made of."""
    return connection.execute(_SINCE_SNAPSHOT, {"run": run_id})


def _go_on(connection: Connection, record: RunRecord, *, first: bool) -> None:
    """What a run of a thread carries on: the history before it, and at its start the state of the run before."""
    record.carried = histories.before(connection, record.id)
    left_by = histories.left_by(connection, record.id) if first else None
    if left_by is not None:
        for row in _since_snapshot(connection, left_by):
            _patch(record.state, row)


def _patch(state: dict[str, Any], row: Row[Any]) -> None:
    if row.snapshot:
        state.clear()
    state.update(row.patch.get("set", {}))
    for key in row.patch.get("remove", []):
        state.pop(key, None)


def _apply(record: RunRecord, row: Row[Any]) -> None:
    """One checkpoint more."""
    _patch(record.state, row)
    if row.has_input:
        record.input = row.input
    record.resume, record.output, record.output_ref = row.resume, row.output, row.output_ref
    record.memo = row.memo or {}


def _ancestors(
    connection: Connection, run_id: str | None
) -> tuple[list[tuple[dict[str, Any], dict[str, Any], Any]], list[tuple[str, dict[str, Any]]]]:
    """Of the runs above, nearest first: maps and modes, for a child is never freer, and the budgets they share."""
    found, shared = [], []
    while run_id is not None:
        row = connection.execute(_RUN, {"run": run_id}).one()
        definition = definitions.get(connection, row.definition_digest)
        found.append((definition.get("permissions") or {}, row.permissions, row.mode or definition.get("mode")))
        if (definition.get("budget") or {}).get("shared"):
            shared.append((row.id, definition["budget"]))
        run_id = row.parent_id
    return found, shared


def _calls(connection: Connection, record: RunRecord) -> list[CallRecord]:
    """Calls of the current step, and those `$output` refers to."""
    steps = {record.steps}
    if isinstance(record.output_ref, dict) and "calls" in record.output_ref:
        steps.add(record.output_ref["calls"])
    return [_call(row) for row in connection.execute(_CALLS, {"run": record.id, "steps": sorted(steps)})]


def _call(row: Row[Any]) -> CallRecord:
    return CallRecord(
        id=row.id,
        node_id=row.node_id,
        step=row.step,
        position=row.position,
        name=row.name,
        input=row.input,
        status=row.status,
        digest=row.digest,
        signal_id=row.signal_id,
        outcome=row.outcome,
        result=row.result,
        duration_ms=row.duration_ms,
        checkpoint=row.checkpoint,
    )


def _facts(task: Row[Any]) -> TaskFacts:
    return TaskFacts(
        id=task.id,
        key=task.key,
        title=task.title,
        role=task.role,
        instruction=task.instruction,
        expected_output=task.expected_output,
        deliverables=task.deliverables,
        skills=task.skills,
        tier=task.tier,
        attempt=task.attempt,
    )
