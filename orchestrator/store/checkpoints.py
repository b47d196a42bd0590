"""Moves of a run's growing rows: one checkpoint is one transaction, and costs the same however long the history is.

The small run row is updated under its fence; messages, calls, the checkpoint and its events are only appended. Several
runs of one process may share a transaction (`write` takes a list). Statements per transaction: a lock and an update of
the runs, one insert for each kind of row, then one counter per trace and one insert. The checkpoint rows come
last, because each names the last of its events.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Connection, Row, Select, bindparam, select, update

from orchestrator.records import UNSET, CallRecord, Checkpoint, Event, Wake
from orchestrator.store import children, definitions, events, money, repairs, signals, wakes
from orchestrator.store.database import now_ms, together
from orchestrator.store.rows import Shared, insert_all, update_all, upsert_all
from orchestrator.store.sql import among, several, upsert
from orchestrator.store.tables import calls, checkpoints, files, messages, runs, tasks
from orchestrator.store.wakes import queued, take
from registry.errors import LeaseStale

#: What a checkpoint proves: whatever took workers down before, the run got past it.
CLEARED = {"claims": 0, "crashes": 0}
#: The time of a run's end, and of a checkpoint, as columns that many rows share.
ENDED_NOW: Shared = (("ended_at", now_ms()),)
AT: Shared = (("at", now_ms()),)
#: When a parked run goes on by itself, in `due_in_ms` from now.
DUE_LATER: Shared = (("due_at", now_ms() + bindparam("due_in_ms", type_=BigInteger)),)
NOTHING_SHARED: Shared = ()
#: Columns of a run that only grow.
_SUMS = frozenset({"cost_micro"})
_LOCK_HELD = (
    select(runs.c.id, runs.c.fence, runs.c.project_id)
    .where(among(runs.c.id, several("ids")), runs.c.status == "running")
    .order_by(runs.c.id)
    .with_for_update(key_share=True)
)
_WHOSE: Select[Any] = select(runs.c.project_id, runs.c.task_id, runs.c.kind).where(runs.c.id == bindparam("run"))
_TASK = tasks.c.id == bindparam("task")
_LOCK_TASK = select(tasks.c.id).where(_TASK).with_for_update(key_share=True)
_STATUS = select(tasks.c.status).where(_TASK)
_SET_STATUS = update(tasks).where(_TASK).values(status=bindparam("now"))


@lru_cache(8)
def renewed(lease_ms: int) -> Shared:
    """The lease of runs that go on."""
    return (("due_at", now_ms() + lease_ms),)


def write(connection: Connection, batch: Sequence[Checkpoint], *, lease_ms: int) -> set[tuple[str, int]]:
    """Writes checkpoints of running runs; returns (run, fence) of those whose fence is old: nothing of them is written.

    One run may be there twice: under the fence it lost, and under the one it was claimed with again.
    """
    signals.lock_projects(connection, ((c.run_id, c.signals) for c in batch))
    definitions.keep(connection, {c.speaker[2]: c.speaker[3] for c in batch if c.speaker is not None})
    good, projects = move_all(connection, batch, lambda _: {}, renewed(lease_ms))
    if good:
        append(connection, good)
        lines = {c.run_id: told(connection, c) for c in good}
        seal(connection, good, lines, projects)
    kept = {(c.run_id, c.fence) for c in good}
    return {(c.run_id, c.fence) for c in batch} - kept


def park(connection: Connection, checkpoint: Checkpoint) -> list[Wake]:
    """Writes a checkpoint that parks its run, and gives its place to whoever is next; returns the wake-ups to send.

    An answer may have come while the batch was finishing: the run row is locked first, here and by the answer, so one
    of the two sees the other.

    Raises:
        LeaseStale: the run is not this worker's any more.
    """
    waits = checkpoint.park
    assert waits is not None
    run = _whose(connection, checkpoint.run_id)
    wakes.lock_places(connection, run.project_id)  # lock order: project, task, run; the run's place becomes free
    task = run.task_id if run.kind == "root" else None  # a child's moves do not move its task
    if task is not None:
        connection.execute(_LOCK_TASK, {"task": task})
    rest: dict[str, Any] = {"status": waits.status, "waiting_on": waits.waiting_on, "worker_id": None} | CLEARED
    rest |= {"due_at": None} if waits.due_in_ms is None else {"due_in_ms": waits.due_in_ms}
    if checkpoint.fanout is not None:
        rest |= children.counted(checkpoint.fanout)
    project_id = move(connection, checkpoint, rest, NOTHING_SHARED if waits.due_in_ms is None else DUE_LATER)
    if project_id is None:
        raise LeaseStale("the run was taken over before it could park")
    append(connection, [checkpoint])
    by = "answer" if waits.signal_ids and signals.any_closed(connection, waits.signal_ids) else None
    if checkpoint.fanout is not None:
        children.write(connection, checkpoint.run_id, checkpoint.fanout)
    if waits.waiting_on == "children" and children.none_open(connection, checkpoint.run_id):
        by = "children"
    if by is not None:
        connection.execute(update(runs).where(runs.c.id == checkpoint.run_id).values(queued(by)))
    again = by is not None
    lines = told(connection, checkpoint)
    if task is not None:
        lines += _task_moved(connection, task, "queued" if again else waits.status)
    ready = take(connection, project_id)
    seal(connection, [checkpoint], {checkpoint.run_id: lines}, {checkpoint.run_id: project_id})
    return ready


def move(
    connection: Connection, checkpoint: Checkpoint, values: dict[str, Any], shared: Shared = NOTHING_SHARED
) -> str | None:
    """Updates the run row under its fence; gives its project, or None when it is not this worker's any more.

    Args:
        values: columns beside those every checkpoint writes, and parameters of the shared ones.
        shared: columns that are SQL expressions, constants of a module.
    """
    mine = {"run": checkpoint.run_id, "held": checkpoint.fence, "cost": checkpoint.cost_micro}
    return connection.execute(_move(shared), mine | _moved(checkpoint) | values).scalar_one_or_none()


@lru_cache(16)
def _move(shared: Shared) -> Any:
    """Columns that are given as values come from the names of the parameters."""
    return (
        update(runs)
        .where(runs.c.id == bindparam("run"), runs.c.fence == bindparam("held"), runs.c.status == "running")
        .values(dict(shared) | {"cost_micro": runs.c.cost_micro + bindparam("cost")})
        .returning(runs.c.project_id)
    )


def move_all(
    connection: Connection, batch: Sequence[Checkpoint], values: Callable[[Checkpoint], dict[str, Any]], shared: Shared
) -> tuple[list[Checkpoint], dict[str, str]]:
    """The same for several runs: those checkpoints whose fence holds, by run, and the projects of their runs.

    The rows are locked first and in one order, which also tells whose they are; then all are updated together.

    Args:
        values: columns of a checkpoint's run, beside those every checkpoint writes.
        shared: columns that are SQL expressions, the same for every run.
    """
    if len(batch) == 1:
        project_id = move(connection, batch[0], values(batch[0]), shared)
        return ([], {}) if project_id is None else (list(batch), {batch[0].run_id: project_id})
    held = connection.execute(_LOCK_HELD, {"ids": [c.run_id for c in batch]}).all()
    projects = {row.id: row.project_id for row in held}
    fences = {row.id: row.fence for row in held}
    good = sorted((c for c in batch if fences.get(c.run_id) == c.fence), key=lambda c: c.run_id)
    rows = [{"id": c.run_id, "cost_micro": c.cost_micro} | _moved(c) | values(c) for c in good]
    # One statement has one set of columns: those of whole checkpoints, of small writes, of handoffs.
    for columns in sorted({tuple(row) for row in rows}):
        update_all(connection, runs, [row for row in rows if tuple(row) == columns], shared, _SUMS)
    return good, projects


def _moved(checkpoint: Checkpoint) -> dict[str, Any]:
    """What a checkpoint writes to its run's row."""
    changed: dict[str, Any] = {
        "steps": checkpoint.steps,
        "tokens": checkpoint.tokens,
        "turns": checkpoint.turns,
        "running_ms": checkpoint.running_ms,
        "backoffs": checkpoint.backoffs,
        "messages": checkpoint.messages_count,
        "window": checkpoint.window,
    }
    if checkpoint.number is not None:
        changed |= {"checkpoint": checkpoint.number, "node_id": checkpoint.node_id, "resumed_by": None} | CLEARED
    if checkpoint.cost_incomplete:
        changed["cost_incomplete"] = True
    if checkpoint.speaker is not None:
        agent_id, name, digest, _ = checkpoint.speaker
        changed |= {"agent_id": agent_id, "agent_name": name, "definition_digest": digest}
    return changed


def append(connection: Connection, batch: Sequence[Checkpoint]) -> None:
    """Appends everything of these checkpoints but their events and their own rows."""
    with together(connection):
        said = [
            {"run_id": c.run_id, "number": m.number, "history": m.history, "body": m.body}
            for c in batch
            for m in c.messages
        ]
        insert_all(connection, messages, said)
        upsert_all(connection, calls, [_call_row(c.run_id, call) for c in batch for call in c.calls])
    for checkpoint in batch:
        _signals(connection, checkpoint)
        _files(connection, checkpoint)


def seal(
    connection: Connection,
    batch: Sequence[Checkpoint],
    lines: Mapping[str, Sequence[Event]],
    projects: Mapping[str, str],
) -> None:
    """Appends the events of these runs, and the checkpoint rows, which name their numbers.

    Last in a transaction, because every run of a project shares the counter.

    Args:
        lines: run id -> its events.
        projects: run id -> its project.
    """
    numbered = [c for c in batch if c.number is not None]
    by_trace: dict[str, list[Event]] = {projects[c.run_id]: [] for c in numbered}
    for run_id, new in lines.items():
        if new:
            by_trace.setdefault(projects[run_id], []).extend(new)
    ends = events.number_all(connection, by_trace)
    rows = []
    for c in numbered:
        told = lines.get(c.run_id)
        rows.append(_checkpoint_row(c) | {"event_seq": told[-1].seq if told else ends[projects[c.run_id]]})
    with together(connection):
        events.store(connection, by_trace)
        insert_all(connection, checkpoints, rows, AT)


def told(connection: Connection, checkpoint: Checkpoint) -> list[Event]:
    """The lines of a checkpoint: its own, and those of what it closes and cancels."""
    closed = signals.close(connection, checkpoint.close)
    lines = [*checkpoint.events, *signals.closed_at_once(checkpoint.signals), *closed]
    return lines + children.cancel(connection, checkpoint.run_id, checkpoint.cancel)


def _signals(connection: Connection, checkpoint: Checkpoint) -> None:
    for signal_id, execution in sorted(checkpoint.consume.items()):
        signals.consume(connection, signal_id, execution)
    for signal_id, execution in sorted(checkpoint.settle.items()):
        signals.settle(connection, signal_id, execution)
    if checkpoint.signals:
        signals.insert_raised(connection, checkpoint.run_id, checkpoint.signals)
    if checkpoint.told:
        repairs.tell(connection, checkpoint.run_id, checkpoint.told)
    _money(connection, checkpoint)


def _money(connection: Connection, checkpoint: Checkpoint) -> None:
    money.settle(connection, checkpoint.run_id, checkpoint.settled)
    if checkpoint.shared and any(checkpoint.drawn):
        money.draw(connection, checkpoint.shared, *checkpoint.drawn)
    for window_id, micro in sorted(checkpoint.renewed.items()):
        if micro is None:
            money.renew(connection, window_id)
        else:
            money.extend(connection, window_id, micro)


def _files(connection: Connection, checkpoint: Checkpoint) -> None:
    if not checkpoint.files:
        return
    row = connection.execute(select(runs.c.project_id, runs.c.task_id).where(runs.c.id == checkpoint.run_id)).one()
    latest = {f.path: f for f in checkpoint.files}
    rows = [
        {
            "project_id": row.project_id,
            "path": f.path,
            "bytes": f.bytes,
            "sha256": f.sha256,
            "task_id": row.task_id,
            "run_id": checkpoint.run_id,
            "skill": f.skill,
        }
        for f in latest.values()
    ]
    upsert(connection, files, rows, written_at=now_ms())


def _call_row(run_id: str, call: CallRecord) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "id": call.id,
        "node_id": call.node_id,
        "step": call.step,
        "position": call.position,
        "name": call.name,
        "input": call.input,
        "digest": call.digest,
        "status": call.status,
        "checkpoint": call.checkpoint,
        "signal_id": call.signal_id,
        "outcome": call.outcome,
        "result": call.result,
        "duration_ms": call.duration_ms,
    }


def _checkpoint_row(c: Checkpoint) -> dict[str, Any]:
    counters = {"steps": c.steps, "tokens": c.tokens, "turns": c.turns, "runningMs": c.running_ms}
    return {
        "run_id": c.run_id,
        "number": c.number,
        "node_id": None if c.ending is not None else c.node_id,
        "counters": counters | {"messages": c.messages_count},
        "speaker": dict(zip(("agentId", "name", "digest"), c.speaker, strict=False)) if c.speaker is not None else None,
        "memo": c.memo or None,
        "patch": c.patch,
        "snapshot": c.snapshot,
        "input": None if c.input is UNSET else c.input,
        "has_input": c.input is not UNSET,
        "resume": c.resume,
        "output": c.output,
        "output_ref": c.output_ref,
    }


def _whose(connection: Connection, run_id: str) -> Row[Any]:
    found: Row[Any] = connection.execute(_WHOSE, {"run": run_id}).one()
    return found


def _task_moved(connection: Connection, task_id: str, status: str) -> list[Event]:
    before = connection.execute(_STATUS, {"task": task_id}).scalar_one()
    connection.execute(_SET_STATUS, {"task": task_id, "now": status})
    if before == status:
        return []
    return [Event("task.status", {"status": status, "from": before}, task_id=task_id)]
