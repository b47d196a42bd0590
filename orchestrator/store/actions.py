"""Moves of actions that a yes runs outside their run (`approvals: carryOn`): claimed once, settled once, or unknown."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Row, and_, insert, not_, select, update

from orchestrator.records import Event, FileRecord
from orchestrator.store import events, repairs, routing
from orchestrator.store.database import now_ms
from orchestrator.store.signals import DEFAULT_LIFE_MS
from orchestrator.store.sql import upsert
from orchestrator.store.tables import files, projects, runs, signals
from orchestrator.unknown import AGAIN, UNKNOWN
from registry.base import Json
from registry.ids import new_id

#: Actions with a yes that nobody has begun.
UNBEGUN = and_(signals.c.carry_on, signals.c.status == "answered", ~signals.c.rejected, signals.c.execution == "none")


def claim(connection: Connection, project_id: str, queues: frozenset[str] | None = None) -> Row[Any] | None:
    """Takes one answered action of a project that nobody has begun, and whose run is of one of these queues (None: of
    whichever): the mark before the effect.

    Concurrent claimers of one action: the conditional update lets one of them have it. The project is locked first, so
    that a cancel comes before the mark and there is none, or after it and the action is told to stop.
    """
    alive = select(projects.c.id).where(projects.c.id == project_id, projects.c.status != "cancelled")
    if connection.execute(alive.with_for_update(key_share=True)).first() is None:
        return None
    waiting = select(signals.c.id).where(signals.c.project_id == project_id, UNBEGUN)
    if queues is not None:
        waiting = waiting.join(runs, runs.c.id == signals.c.run_id, isouter=True).where(routing.within(queues))
    mine = (
        update(signals)
        .where(
            signals.c.id == waiting.order_by(signals.c.answered_at).limit(1).scalar_subquery(),
            signals.c.execution == "none",
        )
        .values(execution="started", acted_at=now_ms())
        .returning(signals)
    )
    return connection.execute(mine).one_or_none()


def renew(connection: Connection, signal_ids: Iterable[str]) -> None:
    """Says that these actions go on; one that falls silent for a lease is given up."""
    mine = update(signals).where(signals.c.id.in_(sorted(signal_ids)), signals.c.execution == "started")
    connection.execute(mine.values(acted_at=now_ms()))


def cancelled(connection: Connection, project_id: str) -> bool:
    """Whether the project was cancelled: its actions under way stop as soon as they can."""
    query = select(projects.c.id).where(projects.c.id == project_id, projects.c.status == "cancelled")
    return connection.execute(query).first() is not None


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
        return  # it was silent for so long that it was given up for unknown; that story stands
    repairs.carried_out(connection, row, result)
    if written:
        facts = {"project_id": row.project_id, "task_id": row.task_id, "run_id": row.run_id}
        rows = [facts | {"path": f.path, "bytes": f.bytes, "sha256": f.sha256, "skill": f.skill} for f in written]
        upsert(connection, files, rows, written_at=now_ms())
    data = {"signalId": row.id, "ok": result["ok"], "code": result.get("code"), "output": result.get("output")}
    told = Event(
        "signal.executed", {k: v for k, v in data.items() if v is not None}, row.task_id, row.run_id, row.agent_id
    )
    events.append(connection, row.project_id, [*lines, told])


def waiting(connection: Connection, limit: int) -> list[tuple[str, str | None]]:
    """Projects with an answered action that nobody has begun, each with the queue of the run that asked."""
    query = select(signals.c.project_id, runs.c.queue).join(runs, runs.c.id == signals.c.run_id, isouter=True)
    return [(p, q) for p, q in connection.execute(query.where(UNBEGUN).distinct().limit(limit))]


def elsewhere(connection: Connection, project_id: str, queues: frozenset[str]) -> list[str | None]:
    """Queues beside these in which such actions of one project wait."""
    query = select(runs.c.queue).join(signals, runs.c.id == signals.c.run_id)
    others = query.where(signals.c.project_id == project_id, UNBEGUN, not_(routing.within(queues)))
    return list(connection.execute(others.distinct()).scalars())


def give_up(connection: Connection, limit: int, silent_ms: int) -> list[str]:
    """started -> unknown for actions whose worker fell silent; a new decision asks whether to do it again.

    That of a cancelled project is asked about no more.
    """
    late = (
        select(signals, projects.c.status.label("project_status"))
        .join(projects, projects.c.id == signals.c.project_id)
        .where(signals.c.carry_on, signals.c.execution == "started", signals.c.acted_at <= now_ms() - silent_ms)
        .order_by(signals.c.project_id, signals.c.id)
        .limit(limit)
    )
    owners = []
    for row in connection.execute(late).all():
        mine = update(signals).where(signals.c.id == row.id, signals.c.execution == "started")
        if connection.execute(mine.values(execution=UNKNOWN)).rowcount == 0:
            continue
        repairs.unknown_again(connection, row)
        lines = [Event("signal.executed", {"signalId": row.id, "ok": False, "code": UNKNOWN}, row.task_id, row.run_id)]
        if row.project_status != "cancelled":
            lines.append(Event("signal.raised", _ask_again(connection, row), row.task_id, row.run_id, row.agent_id))
        events.append(connection, row.project_id, lines)
        owners.append(row.owner_id)
    return owners


def run_of(connection: Connection, run_id: str) -> Row[Any]:
    """The run that asked: whose rights the action has."""
    return connection.execute(select(runs).where(runs.c.id == run_id)).one()


def _ask_again(connection: Connection, row: Row[Any]) -> dict[str, Json]:
    """A new decision about the same call; returns the data of its event."""
    left = ("answer", "result", "dedupe_key", "project_status")
    copied = {name: value for name, value in row._mapping.items() if name not in left}
    fresh = copied | {
        "id": new_id(),
        "status": "open",
        "rejected": False,
        "answered_by": None,
        "answered_at": None,
        "acted_at": None,
        "execution": "none",
        "reason": AGAIN,
        "created_at": now_ms(),
        "expires_at": now_ms() + DEFAULT_LIFE_MS,
    }
    connection.execute(insert(signals).values(fresh))
    return {
        "signalId": fresh["id"],
        "signalKind": row.kind,
        "title": row.title,
        "schema": row.schema,
        "action": row.action,
    }
