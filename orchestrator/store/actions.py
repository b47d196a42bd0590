"""Moves of actions that a yes runs outside their run (`approvals: carryOn`): claimed once, settled once, or unknown."""

from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from orchestrator.records import Event, FileRecord
from orchestrator.store import events
from orchestrator.store.database import now_ms
from orchestrator.store.sql import upsert
from orchestrator.store.tables import files, runs, signals
from registry.base import Json
from registry.ids import new_id

#: Milliseconds after which an action that began and never ended is unknown: longer than any skill may take.
SILENT_MS = 300_000


def claim(connection: Connection, project_id: str) -> Row[Any] | None:
    """Takes one answered action of a project that nobody has begun: the mark before the effect.

    Concurrent claimers of one action: the conditional update lets one of them have it.
    """
    waiting = (
        select(signals.c.id)
        .where(
            signals.c.project_id == project_id,
            signals.c.carry_on,
            signals.c.status == "answered",
            ~signals.c.rejected,
            signals.c.execution == "none",
        )
        .order_by(signals.c.answered_at)
        .limit(1)
    )
    mine = (
        update(signals)
        .where(signals.c.id == waiting.scalar_subquery(), signals.c.execution == "none")
        .values(execution="started", acted_at=now_ms())
        .returning(signals)
    )
    return connection.execute(mine).one_or_none()


def settle(
    connection: Connection, row: Row[Any], result: dict[str, Json], lines: list[Event], written: list[FileRecord]
) -> None:
    """Records how the action came out, on the signal and in the trace."""
    execution = "succeeded" if result["ok"] else "failed"
    done = (
        update(signals)
        .where(signals.c.id == row.id, signals.c.execution == "started")
        .values(execution=execution, result=result)
    )
    if connection.execute(done).rowcount == 0:
        return  # it took so long that it was given up for unknown; that story stands
    if written:
        facts = {"project_id": row.project_id, "task_id": row.task_id, "run_id": row.run_id}
        rows = [facts | {"path": f.path, "bytes": f.bytes, "sha256": f.sha256, "skill": f.skill} for f in written]
        upsert(connection, files, rows, written_at=now_ms())
    data = {"signalId": row.id, "ok": result["ok"], "code": result.get("code"), "output": result.get("output")}
    told = Event(
        "signal.executed", {k: v for k, v in data.items() if v is not None}, row.task_id, row.run_id, row.agent_id
    )
    events.append(connection, row.project_id, [*lines, told])


def waiting_projects(connection: Connection, limit: int) -> list[str]:
    """Projects with an answered action that nobody has begun."""
    query = select(signals.c.project_id).where(
        signals.c.carry_on, signals.c.status == "answered", ~signals.c.rejected, signals.c.execution == "none"
    )
    return list(connection.execute(query.distinct().limit(limit)).scalars())


def give_up(connection: Connection, limit: int) -> list[str]:
    """started -> unknown for actions whose worker fell silent; a new decision asks whether to do it again."""
    late = (
        select(signals)
        .where(signals.c.carry_on, signals.c.execution == "started", signals.c.acted_at <= now_ms() - SILENT_MS)
        .limit(limit)
    )
    owners = []
    for row in connection.execute(late).all():
        mine = update(signals).where(signals.c.id == row.id, signals.c.execution == "started")
        if connection.execute(mine.values(execution="unknown")).rowcount == 0:
            continue
        again = _ask_again(connection, row)
        lines = [
            Event("signal.executed", {"signalId": row.id, "ok": False, "code": "unknown"}, row.task_id, row.run_id),
            Event("signal.raised", again, row.task_id, row.run_id, row.agent_id),
        ]
        events.append(connection, row.project_id, lines)
        owners.append(row.owner_id)
    return owners


def run_of(connection: Connection, run_id: str) -> Row[Any]:
    """The run that asked: whose rights the action has."""
    return connection.execute(select(runs).where(runs.c.id == run_id)).one()


def _ask_again(connection: Connection, row: Row[Any]) -> dict[str, Json]:
    """A new decision about the same call; returns the data of its event."""
    copied = {name: value for name, value in row._mapping.items() if name not in ("answer", "result", "dedupe_key")}
    fresh = copied | {
        "id": new_id(),
        "status": "open",
        "rejected": False,
        "answered_by": None,
        "answered_at": None,
        "acted_at": None,
        "execution": "none",
        "reason": "It was started once before and may have happened: nobody knows how that ended",
        "created_at": now_ms(),
        "expires_at": now_ms() + 7 * 24 * 3_600_000,
    }
    connection.execute(insert(signals).values(fresh))
    return {
        "signalId": fresh["id"],
        "signalKind": row.kind,
        "title": row.title,
        "schema": row.schema,
        "action": row.action,
    }
