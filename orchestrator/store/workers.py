"""Moves of `workers`: a heartbeat row per worker process."""

from collections import Counter
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from orchestrator.store import runs as moves
from orchestrator.store.database import now_ms
from orchestrator.store.tables import runs, workers
from registry.queues import DEFAULT

#: A worker not seen for so many milliseconds counts no more.
SILENT_MS = 60_000
_BEAT = update(workers).where(workers.c.id == bindparam("worker")).values(active=bindparam("at_work"), seen_at=now_ms())


def register(connection: Connection, worker: dict[str, Any]) -> None:
    connection.execute(insert(workers).values(worker | {"started_at": now_ms(), "seen_at": now_ms()}))


def beat(connection: Connection, worker_id: str, active: int) -> None:
    connection.execute(_BEAT, {"worker": worker_id, "at_work": active})


def leave(connection: Connection, worker_id: str) -> None:
    connection.execute(update(workers).where(workers.c.id == worker_id).values(active=0, stopped_at=now_ms()))


def bury(connection: Connection, host: str, pid: int) -> list[str]:
    """Takes back what a process of this host held that is known to be dead; returns the ids of its runs."""
    mine = (workers.c.host == host, workers.c.pid == pid, workers.c.stopped_at.is_(None))
    found = connection.execute(select(workers.c.id).where(*mine).order_by(workers.c.id)).scalars().all()
    freed: list[str] = []
    for worker_id in found:
        freed += moves.release(connection, worker_id, refund=False)
        leave(connection, worker_id)
    return freed


def seen(connection: Connection, host: str) -> dict[int, int]:
    """When each process of this host that has not left was last seen, by its number; the latest row of a number."""
    living = select(workers.c.pid, workers.c.seen_at).where(workers.c.host == host, workers.c.stopped_at.is_(None))
    return {row.pid: row.seen_at for row in connection.execute(living.order_by(workers.c.started_at))}


def others(connection: Connection, routing: str) -> tuple[list[tuple[str, int]], int]:
    """Living workers that send runs to queues by other rules than these, by host and pid; and how many live at all."""
    lives = (workers.c.stopped_at.is_(None), workers.c.seen_at > now_ms() - SILENT_MS)
    query = select(workers.c.host, workers.c.pid, workers.c.routing).where(*lives)
    found = connection.execute(query.order_by(workers.c.host, workers.c.pid)).all()
    return [(row.host, row.pid) for row in found if row.routing != routing], len(found)


def served(connection: Connection, *, lately: bool = False) -> frozenset[str]:
    """Queues that living workers serve; `lately`: also those of workers that have just left, as in a rolling update."""
    return frozenset(serving(connection, lately=lately))


def serving(connection: Connection, *, lately: bool = False) -> Counter[str]:
    """The same with how many workers serve each."""
    lives = workers.c.seen_at > now_ms() - SILENT_MS
    if not lately:
        lives &= workers.c.stopped_at.is_(None)
    rows = connection.execute(select(workers.c.queues).where(lives)).scalars()
    return Counter(name for queues in rows for name in queues or [DEFAULT])


def slots(connection: Connection) -> dict[str, tuple[int, int]]:
    """Living worker processes that serve each queue, and the slots they have; one that serves two counts for both."""
    lives = (workers.c.stopped_at.is_(None), workers.c.seen_at > now_ms() - SILENT_MS)
    found: dict[str, tuple[int, int]] = {}
    for row in connection.execute(select(workers.c.queues, workers.c.slots).where(*lives)):
        for name in row.queues or [DEFAULT]:
            processes, of_them = found.get(name, (0, 0))
            found[name] = processes + 1, of_them + row.slots
    return found


def idle_slots(connection: Connection) -> int:
    """Slots of living workers that carry no run."""
    living = (workers.c.stopped_at.is_(None), workers.c.seen_at > now_ms() - SILENT_MS)
    slots = connection.execute(select(func.coalesce(func.sum(workers.c.slots), 0)).where(*living)).scalar_one()
    busy = connection.execute(select(func.count()).where(runs.c.status == "running")).scalar_one()
    return max(0, int(slots) - int(busy))
