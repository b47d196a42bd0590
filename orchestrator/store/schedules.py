"""Moves of `schedules` and `firings`: created, claimed when due, and what became of each due time.

A due schedule is claimed by one conditional update, and its firing has the due time in its key: two clocks fire it
once.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, literal, select, tuple_, update

from orchestrator.store.database import now_ms
from orchestrator.store.kept import firings, schedules, triggers
from orchestrator.store.sql import take_turns
from orchestrator.store.tables import projects
from registry.schedules import Schedule


def of_call(connection: Connection, call_key: str | None) -> str | None:
    """The schedule this very call made before."""
    if call_key is None:
        return None
    return connection.execute(select(schedules.c.id).where(schedules.c.call_key == call_key)).scalar()


def of_owner(connection: Connection, owner_id: str) -> list[Row[Any]]:
    """All an owner has, the eldest first."""
    query = select(schedules).where(schedules.c.owner_id == owner_id)
    return list(connection.execute(query.order_by(schedules.c.created_at, schedules.c.id)))


def of_thread(connection: Connection, thread_id: str) -> str | None:
    """The schedule that speaks in a thread."""
    return connection.execute(select(schedules.c.id).where(schedules.c.thread_id == thread_id)).scalar()


def let_go_on(connection: Connection, schedule_id: str, next_run_at: int) -> None:
    """Makes a schedule active again; failures of before are forgotten."""
    values = {"status": "active", "reason": None, "next_run_at": next_run_at, "watched_from": now_ms()}
    connection.execute(update(schedules).where(schedules.c.id == schedule_id).values(values))


def active(connection: Connection, owner_id: str) -> int:
    """How many an owner has that will run again; whoever is about to make one waits for another who does."""
    take_turns(connection, f"schedules {owner_id}")
    mine = select(func.count()).where(schedules.c.owner_id == owner_id, schedules.c.status == "active")
    return int(connection.execute(mine).scalar_one())


def page(connection: Connection, owner_id: str, limit: int, after: tuple[int, str] | None) -> list[Row[Any]]:
    """The owner's, the eldest first: those made after a moment and id."""
    query = select(schedules).where(schedules.c.owner_id == owner_id)
    if after is not None:
        place = tuple_(literal(after[0]), literal(after[1]))
        query = query.where(tuple_(schedules.c.created_at, schedules.c.id) > place)
    return list(connection.execute(query.order_by(schedules.c.created_at, schedules.c.id).limit(limit)))


def get(connection: Connection, owner_id: str, schedule_id: str) -> Row[Any] | None:
    """One of the owner's, with the present time of the database."""
    mine = (schedules.c.owner_id == owner_id) & (schedules.c.id == schedule_id)
    return connection.execute(select(schedules, now_ms().label("now")).where(mine)).one_or_none()


def change(connection: Connection, schedule_id: str, values: Mapping[str, Any]) -> None:
    connection.execute(update(schedules).where(schedules.c.id == schedule_id).values(dict(values)))


def remove(connection: Connection, owner_id: str, schedule_id: str) -> bool:
    """Deletes a schedule with its firings and what it has in queues; what they started stays. False: it was gone."""
    mine = (schedules.c.owner_id == owner_id) & (schedules.c.id == schedule_id)
    if connection.execute(delete(schedules).where(mine)).rowcount != 1:
        return False
    connection.execute(delete(triggers).where(triggers.c.source_id == schedule_id))
    return True


def create(connection: Connection, row: Mapping[str, Any]) -> None:
    connection.execute(insert(schedules).values(dict(row) | {"status": "active"}))


def any_due(connection: Connection) -> bool:
    query = select(schedules.c.id).where(schedules.c.status == "active", schedules.c.next_run_at <= now_ms())
    return connection.execute(query.limit(1)).first() is not None


def due(connection: Connection, limit: int) -> list[Row[Any]]:
    """Schedules whose time has come, the longest due first, with the database's present time."""
    query = select(schedules, now_ms().label("now")).where(
        schedules.c.status == "active", schedules.c.next_run_at <= now_ms()
    )
    return list(connection.execute(query.order_by(schedules.c.next_run_at, schedules.c.id).limit(limit)))


def claim(connection: Connection, row: Row[Any], next_run_at: int | None) -> bool:
    """Moves a due schedule on to its next time; False when another clock did."""
    taken = (
        update(schedules)
        .where(schedules.c.id == row.id, schedules.c.status == "active", schedules.c.next_run_at == row.next_run_at)
        .values(next_run_at=next_run_at, status="active" if next_run_at is not None else "done")
    )
    return connection.execute(taken).rowcount == 1


def record(
    connection: Connection,
    row: Row[Any],
    result: str,
    *,
    reason: str | None = None,
    project_id: str | None = None,
    run_id: str | None = None,
) -> None:
    """Keeps what became of the due time of a claimed schedule."""
    firing = {"schedule_id": row.id, "due_at": row.next_run_at, "result": result, "reason": reason}
    connection.execute(insert(firings).values(at=now_ms(), project_id=project_id, run_id=run_id, **firing))
    values: dict[str, Any] = {"last_result": result}
    if result in ("fired", "queued"):
        values |= {"last_run_at": now_ms(), "runs": schedules.c.runs + 1}
    connection.execute(update(schedules).where(schedules.c.id == row.id).values(values))


def stop(connection: Connection, schedule_id: str, status: str, reason: str) -> None:
    """Ends or pauses a schedule."""
    values = {"status": status, "reason": reason, "next_run_at": None}
    connection.execute(update(schedules).where(schedules.c.id == schedule_id).values(values))


def latest(connection: Connection, schedule_id: str, count: int) -> list[Row[Any]]:
    """The last firings with the state of the project each started (None: it is gone), the latest first."""
    query = (
        select(firings, projects.c.status.label("project_status"))
        .outerjoin(projects, projects.c.id == firings.c.project_id)
        .where(firings.c.schedule_id == schedule_id)
        .order_by(firings.c.due_at.desc())
    )
    return list(connection.execute(query.limit(count)))


def rule(row: Row[Any]) -> Schedule:
    """When a stored schedule runs."""
    return Schedule(
        title=row.title,
        kind=row.kind,
        spec=row.spec,
        timezone=row.timezone,
        action=row.action,
        anchor=row.created_at,
        start_at=row.start_at,
        end_at=row.end_at,
        max_runs=row.max_runs,
    )
