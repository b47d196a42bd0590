"""Moves of `workers`: a heartbeat row per worker process."""

from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from orchestrator.store.database import now_ms
from orchestrator.store.tables import runs, workers

#: A worker not seen for so many milliseconds counts no more.
SILENT_MS = 60_000


def register(connection: Connection, worker: dict[str, Any]) -> None:
    connection.execute(insert(workers).values(worker | {"started_at": now_ms(), "seen_at": now_ms()}))


def beat(connection: Connection, worker_id: str, active: int) -> None:
    connection.execute(update(workers).where(workers.c.id == worker_id).values(active=active, seen_at=now_ms()))


def leave(connection: Connection, worker_id: str) -> None:
    connection.execute(update(workers).where(workers.c.id == worker_id).values(active=0, stopped_at=now_ms()))


def idle_slots(connection: Connection) -> int:
    """Slots of living workers that carry no run."""
    living = (workers.c.stopped_at.is_(None), workers.c.seen_at > now_ms() - SILENT_MS)
    slots = connection.execute(select(func.coalesce(func.sum(workers.c.slots), 0)).where(*living)).scalar_one()
    busy = connection.execute(select(func.count()).where(runs.c.status == "running")).scalar_one()
    return max(0, int(slots) - int(busy))
