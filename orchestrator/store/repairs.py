"""Moves of `repairs`: what a person says about a call that may have happened, once, and only while nobody knows.

| the call | `result` | `retry` | `skip` |
|---|---|---|---|
| `asked`: its run asks whether to do it again | done, with that result | yes to the question | no to it |
| `told`: its run went on, its model knows | a note to the model | it runs outside of the run, then a note | a note |
| `action`: a yes ran it outside of its run | recorded on its signal | yes to its question, or it runs anew | no to it |

Lock order: the run before its signals. The row of `repairs` is the single use: a call has one while it stands.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import Connection, Row, and_, delete, insert, or_, select, text, update

from orchestrator.records import Event, RepairRecord, Wake
from orchestrator.store import audit, events, signals
from orchestrator.store.database import now_ms
from orchestrator.store.sql import among, several
from orchestrator.store.tables import calls, projects, repairs, runs
from orchestrator.store.tables import signals as signals_table
from orchestrator.unknown import UNKNOWN
from registry.base import Json
from registry.errors import Refused
from registry.ids import new_id

How = Literal["result", "retry", "skip"]
Where = Literal["asked", "told", "action"]

#: Spelled out, because a planner takes a partial index only for the words it is made of.
_UNKNOWN_CALL = text("calls.outcome = 'unknown'")
_UNTOLD = (
    select(repairs, calls.c.name)
    .join(calls, and_(calls.c.run_id == repairs.c.run_id, calls.c.id == repairs.c.call_id))
    .where(among(repairs.c.run_id, several("ids")), ~repairs.c.told, repairs.c.result.is_not(None))
    .order_by(repairs.c.at)
)
_LEFT = "skipped: a person looked at it and leaves it as it is; do not repeat it"


@dataclass(frozen=True)
class Unknown:
    """A call that may have happened."""

    run_id: str
    call_id: str
    name: str
    input: Json
    digest: str | None
    where: Where
    node_id: str | None
    task_id: str | None
    agent_id: str
    agent_name: str
    run_status: str
    #: The signal it was asked by, or that ran it.
    signal_id: str | None


@dataclass(frozen=True)
class Repaired:
    """What a repair did, and what is to be sent after its commit."""

    call: Unknown
    owner_id: str
    project_id: str
    wakes: list[Wake] = field(default_factory=list)
    #: Signals that changed.
    signal_ids: list[str] = field(default_factory=list)
    #: Its action is to be run outside of the run.
    act: bool = False


def unknown(connection: Connection, project_id: str, run_id: str | None = None) -> list[Unknown]:
    """Calls of a project, or of one run in it, that may have happened and that nobody has spoken about."""
    mine = and_(runs.c.project_id == project_id, *([runs.c.id == run_id] if run_id else []))
    shared = (runs.c.task_id, runs.c.agent_id, runs.c.agent_name, runs.c.status.label("run_status"))
    s = signals_table.c
    within = select(calls, *shared).join(runs, runs.c.id == calls.c.run_id).where(mine, _UNKNOWN_CALL)
    waits = select(s.id).where(s.id == calls.c.signal_id, s.status == "open").exists()
    within = within.where(or_(calls.c.status != "asked", waits), ~_spoken(calls.c.run_id, calls.c.id))
    within = within.order_by(runs.c.id, calls.c.step, calls.c.position)
    outside = select(signals_table, runs.c.status.label("run_status")).join(runs, runs.c.id == s.run_id)
    later = signals_table.alias()
    same = (later.c.run_id == s.run_id, later.c.call_id == s.call_id, later.c.id > s.id)
    decided = select(later.c.id).where(*same, later.c.status == "answered").exists()
    outside = outside.where(mine, s.carry_on, s.execution == UNKNOWN, ~_spoken(s.run_id, s.call_id), ~decided)
    outside = outside.order_by(s.id)
    found = {(row.run_id, row.id): _of_call(row) for row in connection.execute(within)}
    return list((found | {(row.run_id, row.call_id): _of_signal(row) for row in connection.execute(outside)}).values())


def repair(
    connection: Connection, run_id: str, call_id: str | None, how: How, result: Json, *, by: str, reason: str | None
) -> Repaired:
    """Records what a person says of an unknown call, and lets it have its consequence.

    Args:
        call_id: which one; None when the run has only one.

    Raises:
        Refused: `unknown_run`, `not_unknown`, `ambiguous_call`, `run_ended` for a retry of what only its run could do.
    """
    locked = select(runs.c.project_id, projects.c.owner_id).join(projects, projects.c.id == runs.c.project_id)
    run: Row[Any] | None = connection.execute(  # type: ignore[assignment]
        locked.where(runs.c.id == run_id).with_for_update(key_share=True, of=runs)
    ).one_or_none()
    if run is None:
        raise Refused(f"there is no run {run_id}", code="unknown_run")
    call = _the_one(unknown(connection, run.project_id, run_id), run_id, call_id)
    done = _consequence(connection, run, call, how, result, by=by, reason=reason)
    if call.where != "asked" or how != "retry":  # that one is an answer like any other, and may become unknown again
        row: dict[str, Any] = {"run_id": run_id, "call_id": call.call_id, "how": how, "by": by, "reason": reason}
        row |= {"result": _outcome(how, result), "told": call.where != "told", "signal_id": _retried(done)}
        connection.execute(insert(repairs).values(row | {"at": now_ms()}))
    told = {"toolCallId": call.call_id, "name": call.name, "how": how, "by": by, "reason": reason}
    told |= {"output": result if how == "result" else None}
    line = _line(call, "run.repaired", {key: value for key, value in told.items() if value is not None})
    events.append(connection, run.project_id, [*_result(call, how, result), line])
    facts = {"call": call.call_id, "skill": call.name, "how": how, "reason": reason}
    audit.record(connection, run.owner_id, by, "run.repaired", run_id, project_id=run.project_id, **facts)
    return done


def carried_out(connection: Connection, action: Row[Any], result: dict[str, Json]) -> None:
    """The action of a retry has an outcome: the model of its run may read of it."""
    mine = update(repairs).where(repairs.c.run_id == action.run_id, repairs.c.signal_id == action.id)
    connection.execute(mine.values(result=result))


def unknown_again(connection: Connection, action: Row[Any]) -> None:
    """A retry fell silent like the call before it: nobody knows again, and a person may speak again."""
    mine = delete(repairs).where(repairs.c.run_id == action.run_id, repairs.c.signal_id == action.id)
    if connection.execute(mine).rowcount:
        one = (calls.c.run_id == action.run_id, calls.c.id == action.call_id, calls.c.outcome == "deferred")
        connection.execute(update(calls).where(*one).values(outcome=UNKNOWN))


def untold(connection: Connection, run_ids: Sequence[str]) -> dict[str, list[RepairRecord]]:
    """Repairs that the models of these runs have not read of, by run."""
    found: dict[str, list[RepairRecord]] = {}
    for row in connection.execute(_UNTOLD, {"ids": list(run_ids)}):
        found.setdefault(row.run_id, []).append(RepairRecord(row.call_id, row.name, row.how, row.result))
    return found


def tell(connection: Connection, run_id: str, call_ids: Sequence[str]) -> None:
    """The model of the run reads of these with the checkpoint under way."""
    mine = (repairs.c.run_id == run_id, repairs.c.call_id.in_(call_ids))
    connection.execute(update(repairs).where(*mine).values(told=True))


def _spoken(run_id: Any, call_id: Any) -> Any:
    return select(repairs.c.call_id).where(repairs.c.run_id == run_id, repairs.c.call_id == call_id).exists()


def _the_one(found: Sequence[Unknown], run_id: str, call_id: str | None) -> Unknown:
    chosen = [call for call in found if call_id in (None, call.call_id)]
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        which = f"call {call_id} of run {run_id}" if call_id else f"no call of run {run_id}"
        words = f"{which} is {'not ' if call_id else ''}unknown: there is nothing to repair, or somebody was faster"
        raise Refused(words, code="not_unknown")
    listed = ", ".join(f"{call.call_id} ({call.name})" for call in chosen[:10])
    raise Refused(f"run {run_id} has several unknown calls; name one with --call: {listed}", code="ambiguous_call")


def _consequence(
    connection: Connection, run: Row[Any], call: Unknown, how: How, result: Json, *, by: str, reason: str | None
) -> Repaired:
    question = _question(connection, call)
    if call.where == "asked" and question is not None and how != "retry":
        return _decided(connection, run, call, question, how, result, by=by)
    if question is not None:
        payload: Json = {"approved": how == "retry"} | ({"reason": reason} if reason else {})
        if how == "result":  # the question is moot
            _close(connection, question, by)
            _record(connection, call, result)
            return Repaired(call, run.owner_id, run.project_id, signal_ids=[question])
        said = signals.answer(connection, question, payload, rejected=how == "skip", by=by)
        return Repaired(call, run.owner_id, run.project_id, said.wakes, [question], said.act)
    if how == "retry":
        action = _again(connection, run, call, by=by, reason=reason)
        _settled(connection, call, "deferred")
        return Repaired(call, run.owner_id, run.project_id, signal_ids=[action], act=True)
    if call.where == "action":
        _record(connection, call, result) if how == "result" else None
    else:
        _settled(connection, call, "ok" if how == "result" else "skipped")
    return Repaired(call, run.owner_id, run.project_id)


def _decided(
    connection: Connection, run: Row[Any], call: Unknown, question: str, how: How, result: Json, *, by: str
) -> Repaired:
    """The call its run waits for has come to its end, by a person's word; the run goes on with that."""
    happened = how == "result"
    flags: dict[str, Json] = {} if happened else {"skipped": True}
    entry = {"id": call.call_id, "name": call.name, "result": result if happened else _LEFT, "isError": False} | flags
    _settled(connection, call, "ok" if happened else "skipped", status="done", result=entry)
    signals.settle(connection, question, "succeeded" if happened else "declined")
    said = signals.answer(connection, question, {"repaired": how}, rejected=not happened, by=by)
    return Repaired(call, run.owner_id, run.project_id, said.wakes, [question])


def _settled(connection: Connection, call: Unknown, outcome: str, **columns: Any) -> None:
    mine = (calls.c.run_id == call.run_id, calls.c.id == call.call_id, calls.c.outcome == UNKNOWN)
    if "result" in columns:  # a run reads it back with its next checkpoint
        after = select(runs.c.checkpoint + 1).where(runs.c.id == call.run_id)
        columns["checkpoint"] = after.scalar_subquery()
    if (
        call.where != "action"
        and connection.execute(update(calls).where(*mine).values(outcome=outcome, **columns)).rowcount != 1
    ):
        raise Refused(f"call {call.call_id} is not unknown any more", code="not_unknown")


def _question(connection: Connection, call: Unknown) -> str | None:
    """The open question whether to do it again."""
    s = signals_table.c
    query = select(s.id).where(s.run_id == call.run_id, s.call_id == call.call_id, s.status == "open")
    return connection.execute(query.where(s.kind == "decision")).scalar()


def _close(connection: Connection, signal_id: str, by: str) -> None:
    mine = update(signals_table).where(signals_table.c.id == signal_id, signals_table.c.status == "open")
    answer = {"status": "answered", "rejected": True, "answer": {"repaired": "result"}, "execution": "declined"}
    connection.execute(mine.values(answer | {"answered_by": by, "answered_at": now_ms()}))


def _record(connection: Connection, call: Unknown, result: Json) -> None:
    """An action's outcome, on the signal that ran it."""
    mine = update(signals_table).where(signals_table.c.id == call.signal_id, signals_table.c.execution == UNKNOWN)
    connection.execute(mine.values(execution="succeeded", result={"ok": True, "output": result}))


def _again(connection: Connection, run: Row[Any], call: Unknown, *, by: str, reason: str | None) -> str:
    """The same call as an action with a person's yes, which no run waits for; returns its signal."""
    cancelled = select(projects.c.id).where(projects.c.id == run.project_id, projects.c.status == "cancelled")
    if connection.execute(cancelled).first() is not None:
        words = f"the project of run {call.run_id} is cancelled, nothing of it runs any more"
        raise Refused(f"{words}; `officina retry TASK` begins the task anew", code="run_ended")
    row = {
        "id": new_id(),
        "owner_id": run.owner_id,
        "project_id": run.project_id,
        "task_id": call.task_id,
        "run_id": call.run_id,
        "agent_id": call.agent_id,
        "agent_name": call.agent_name,
        "node_id": call.node_id,
        "call_id": call.call_id,
        "kind": "decision",
        "status": "answered",
        "title": f"{call.name} is run again at a person's word",
        "reason": reason,
        "options": [],
        "priority": "normal",
        "action": {"toolCallId": call.call_id, "skill": call.name, "input": call.input},
        "digest": call.digest,
        "schema": {},
        "answer": {"approved": True},
        "answered_by": by,
        "carry_on": True,
    }
    times = {"answered_at": now_ms(), "created_at": now_ms(), "expires_at": now_ms() + signals.DEFAULT_LIFE_MS}
    connection.execute(insert(signals_table).values(row | times))
    return str(row["id"])


def _retried(done: Repaired) -> str | None:
    return done.signal_ids[0] if done.act else None


def _outcome(how: How, result: Json) -> Json:
    """What the model will read; of a retry nothing before it is done."""
    return {"result": {"ok": True, "output": result}, "skip": {"ok": True, "output": None}, "retry": None}[how]


def _result(call: Unknown, how: How, result: Json) -> list[Event]:
    """The one `tool.result` of a call that had none yet."""
    if call.where != "asked" or how == "retry":
        return []
    told = {"toolCallId": call.call_id, "name": call.name, "isError": False, "durationMs": 0}
    told |= {"outcome": "ok", "output": result} if how == "result" else {"outcome": "skipped", "output": _LEFT}
    return [_line(call, "tool.result", told)]


def _line(call: Unknown, kind: str, data: dict[str, Json]) -> Event:
    return Event(kind, data, call.task_id, call.run_id, call.agent_id, call.node_id)


def _of_call(row: Row[Any]) -> Unknown:
    return Unknown(
        run_id=row.run_id,
        call_id=row.id,
        name=row.name,
        input=row.input,
        digest=row.digest,
        where="asked" if row.status == "asked" else "told",
        node_id=row.node_id,
        task_id=row.task_id,
        agent_id=row.agent_id,
        agent_name=row.agent_name,
        run_status=row.run_status,
        signal_id=row.signal_id,
    )


def _of_signal(row: Row[Any]) -> Unknown:
    return Unknown(
        run_id=row.run_id,
        call_id=row.call_id,
        name=row.action["skill"],
        input=row.action["input"],
        digest=row.digest,
        where="action",
        node_id=row.node_id,
        task_id=row.task_id,
        agent_id=row.agent_id,
        agent_name=row.agent_name or row.agent_id,
        run_status=row.run_status,
        signal_id=row.id,
    )
