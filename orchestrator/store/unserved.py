"""Moves for queues that no living worker serves: their runs wait without being sent again, and owners are told."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, func, insert, not_, select, update

from orchestrator.records import Event
from orchestrator.states import PROJECT_ENDED
from orchestrator.store import events, routing, wakes, workers
from orchestrator.store.database import now_ms
from orchestrator.store.signals import DEFAULT_LIFE_MS
from orchestrator.store.tables import projects, runs, signals
from registry.ids import new_id
from registry.queues import DEFAULT


@dataclass(frozen=True)
class Alert:
    """A signal that was raised because nobody serves a queue."""

    signal_id: str
    owner_id: str
    project_id: str


def depths(connection: Connection) -> dict[str, int]:
    """Runs that wait for a free slot, by queue."""
    query = select(runs.c.queue, func.count()).where(wakes.SENT).group_by(runs.c.queue)
    return {queue or DEFAULT: int(count) for queue, count in connection.execute(query)}


def any_due(connection: Connection, served: frozenset[str]) -> bool:
    """Whether `postpone` has something to do."""
    due = select(runs.c.id).where(wakes.SENT, runs.c.due_at <= now_ms(), not_(routing.within(served)))
    return connection.execute(due.limit(1)).first() is not None


def postpone(connection: Connection, served: frozenset[str], limit: int) -> list[Alert]:
    """Puts off the next look at waking runs whose queue nobody serves: a message lies there already, and another each
    minute would only pile up. The first time, each project's owner is told; returns what was raised."""
    due = (
        select(runs.c.id)
        .where(wakes.SENT, runs.c.due_at <= now_ms(), not_(routing.within(served)))
        .order_by(runs.c.due_at)
        .limit(limit)
        .with_for_update(key_share=True, skip_locked=True)
    )
    later = update(runs).where(runs.c.id.in_(due.scalar_subquery()), wakes.SENT)
    moved = connection.execute(
        later.values(due_at=now_ms() + wakes.LAST_RESEND_MS).returning(runs.c.project_id, runs.c.queue)
    ).all()
    missing = {(row.project_id, row.queue or DEFAULT) for row in moved}
    missing -= {(project, queue) for project, queue in missing if queue in workers.served(connection, lately=True)}
    return [raised for one in sorted(missing) if (raised := _alert(connection, *one)) is not None]


def _alert(connection: Connection, project_id: str, queue: str) -> Alert | None:
    """Tells a project's owner once, for as long as the project lives."""
    query = select(projects.c.owner_id, projects.c.status).where(projects.c.id == project_id)
    project: Row[Any] = connection.execute(query).one()  # type: ignore[assignment]
    once = f"unserved:{project_id}:{queue}"
    told = select(signals.c.id).where(signals.c.dedupe_key == once)
    if project.status in PROJECT_ENDED or connection.execute(told).first() is not None:
        return None
    row = {
        "id": new_id(),
        "owner_id": project.owner_id,
        "project_id": project_id,
        "kind": "alert",
        "status": "open",
        "title": f"No worker serves the queue {queue}, and work of this project waits there",
        "body": f"It goes on as soon as a worker is started with --queues {queue}. `officina doctor` shows the queues.",
        "options": [],
        "priority": "high",
        "schema": {},
        "dedupe_key": once,
    }
    times = {"created_at": now_ms(), "expires_at": now_ms() + DEFAULT_LIFE_MS}
    connection.execute(insert(signals).values(row | times))
    data = {"signalId": row["id"], "signalKind": "alert", "title": row["title"], "schema": {}}
    events.append(connection, project_id, [Event("signal.raised", data)])
    return Alert(str(row["id"]), project.owner_id, project_id)
