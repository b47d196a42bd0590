"""Forks: a new root run of a task from a checkpoint of an earlier one.

Everything the new run reads is copied, so that no run depends on rows of another: the checkpoints from the latest
snapshot up to the cut, the messages, and the calls of the batch it stands in. Older calls stay behind: their outcomes
are in the messages, and nothing asks for their rows again.
"""

from typing import Any

from sqlalchemy import Connection, Row, and_, func, insert, literal, select, update

from orchestrator.records import Wake
from orchestrator.states import TASK_ENDED
from orchestrator.store import events, tasks, wakes
from orchestrator.store import runs as runs_moves
from orchestrator.store.tables import calls, checkpoints, messages, runs
from registry.base import Json
from registry.errors import Refused


def fork(connection: Connection, run_id: str, seq: int) -> tuple[str, str, list[Wake]]:
    """Makes the task of an ended run `queued` again, with a root run that goes on from the cut.

    The cut is the run's last checkpoint no event of which comes after `seq`; the one it ended with is none, because
    nothing goes on from an end. Budget window and costs of the new run begin at nothing; steps and turns are counted
    on, because they say where a run stands. Questions of the old run stay closed, files stay as they are.

    Returns:
        The new run, its project, and the wake-ups to send after the commit.

    Raises:
        Refused: `unknown_run`, `not_root`, `task_running`, `unknown_checkpoint`.
    """
    run = connection.execute(select(runs).where(runs.c.id == run_id)).one_or_none()
    if run is None:
        raise Refused(f"there is no run {run_id}", code="unknown_run")
    if run.kind != "root":
        above = f", run {run.parent_id}" if run.parent_id else ""
        raise Refused(f"only a task's own run can be forked; this is a part of another{above}", code="not_root")
    project, task = tasks.lock(connection, run.task_id)
    if task.status not in TASK_ENDED:
        words = f"task {task.key!r} is {task.status}: a fork takes its place only once it has ended"
        raise Refused(words, code="task_running")
    cut = _cut(connection, run, project.id, seq)
    again, lines = tasks.reopen(connection, project, task, f"forked from run {run.id} at event {cut.event_seq}")
    row = runs_moves.root(again, project) | _position(cut)
    first = _first(connection, cut)
    speaker, first_speaker = (_speaker(connection, run, task, number) for number in (cut.number, first))
    row |= {"agent_id": speaker["agentId"], "agent_name": speaker["name"], "definition_digest": speaker["digest"]}
    runs_moves.insert_queued(connection, [row])
    _copy(connection, cut, first, row["id"])
    _amend(connection, row["id"], first, speaker=first_speaker)
    _amend(connection, row["id"], cut.number, memo=_memo(cut.memo))
    ready = wakes.take(connection, project.id)
    events.append(connection, project.id, lines)
    return row["id"], project.id, ready


def _cut(connection: Connection, run: Row[Any], trace_id: str, seq: int) -> Row[Any]:
    last = events.last(connection, trace_id)
    if not 1 <= seq <= last:
        raise Refused(f"there is no event {seq}; the trace has events 1 to {last}", code="unknown_checkpoint")
    mine = and_(checkpoints.c.run_id == run.id, checkpoints.c.node_id.is_not(None))
    before = select(checkpoints).where(mine, checkpoints.c.event_seq <= seq)
    found = connection.execute(before.order_by(checkpoints.c.number.desc()).limit(1)).one_or_none()
    if found is not None:
        return found
    earliest = connection.execute(select(func.min(checkpoints.c.event_seq)).where(mine)).scalar()
    hint = f"its first is at event {earliest}" if earliest is not None else "it has none: retry begins it anew"
    raise Refused(f"run {run.id} has no checkpoint up to event {seq}; {hint}", code="unknown_checkpoint")


def _first(connection: Connection, cut: Row[Any]) -> int:
    """The snapshot that the state at the cut is built on."""
    query = select(func.max(checkpoints.c.number)).where(
        checkpoints.c.run_id == cut.run_id, checkpoints.c.number <= cut.number, checkpoints.c.snapshot
    )
    return int(connection.execute(query).scalar_one())


def _position(cut: Row[Any]) -> dict[str, Any]:
    """Where the new run stands."""
    steps = cut.counters["steps"]
    return {
        "node_id": cut.node_id,
        "checkpoint": cut.number,
        "steps": steps,
        "turns": cut.counters["turns"],
        "messages": cut.counters["messages"],
        "window": {"steps": steps, "tokens": 0, "runningMs": 0},
    }


def _speaker(connection: Connection, run: Row[Any], task: Row[Any], number: int) -> dict[str, Json]:
    """Who spoke at a checkpoint: whom the last handoff before made the speaker, else the agent it began as."""
    query = select(checkpoints.c.number, checkpoints.c.speaker).where(
        checkpoints.c.run_id == run.id, checkpoints.c.speaker.is_not(None)
    )
    changes = connection.execute(query.order_by(checkpoints.c.number)).all()
    before = [change.speaker for change in changes if change.number <= number]
    if before:
        return dict(before[-1])
    began = task if changes else run
    return {"agentId": began.agent_id, "name": began.agent_name, "digest": began.definition_digest}


def _copy(connection: Connection, cut: Row[Any], first: int, new_id: str) -> None:
    """Copies messages and checkpoints within the database, and the calls of the batch under way."""
    for table, span in (
        (checkpoints, checkpoints.c.number.between(first, cut.number)),
        (messages, messages.c.number <= cut.counters["messages"]),
    ):
        names = [column.name for column in table.c if column.name != "run_id"]
        chosen = select(literal(new_id), *(table.c[name] for name in names)).where(table.c.run_id == cut.run_id, span)
        connection.execute(insert(table).from_select(["run_id", *names], chosen))
    if rows := [_call(row, cut, new_id) for row in connection.execute(_calls(cut))]:
        connection.execute(insert(calls), rows)


def _calls(cut: Row[Any]) -> Any:
    """Calls that had come to an outcome, or may have, by the cut; others are made anew."""
    steps = {cut.counters["steps"]}
    if isinstance(cut.output_ref, dict) and "calls" in cut.output_ref:
        steps.add(cut.output_ref["calls"])
    return select(calls).where(
        calls.c.run_id == cut.run_id,
        calls.c.step.in_(steps),
        calls.c.checkpoint <= cut.number,
        calls.c.status.in_(("started", "done")),
    )


def _call(row: Row[Any], cut: Row[Any], new_id: str) -> dict[str, Any]:
    """A call as the new run knows it: ids that the engine made of the run's own are made of the new one's."""
    copied = dict(row._mapping) | {"run_id": new_id, "signal_id": None}
    place = f":{row.node_id}:{row.step}:{row.position}"
    if row.step == cut.counters["steps"] and row.id == cut.run_id + place:
        copied["id"] = new_id + place
        copied["result"] = row.result and {**row.result, "id": copied["id"]}
    return copied


def _memo(memo: dict[str, Json] | None) -> dict[str, Json] | None:
    """A gate under way begins anew, because its question was the old run's; a sleep goes on to its time."""
    if memo and "signal" in (memo.get("wait") or {}):
        return {key: value for key, value in memo.items() if key != "wait"}
    return memo


def _amend(connection: Connection, run_id: str, number: int, **values: Any) -> None:
    mine = (checkpoints.c.run_id == run_id, checkpoints.c.number == number)
    connection.execute(update(checkpoints).where(*mine).values(values))
