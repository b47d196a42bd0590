"""Which queued runs get a wake-up: as many as their project has places free.

A mark is a place: what runs and what is marked are never more than the project has places, so that claiming a marked
run needs no look at the others. Whoever marks holds the project's row for that.

The rows are marked in the transaction that made them ready and the messages go out after its commit; a process that
dies in between costs time only, since the clock sends again when a row's `due_at` has passed.
"""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, case, exists, func, select, text, update

from orchestrator.records import Wake
from orchestrator.store.database import now_ms
from orchestrator.store.tables import projects, runs, tasks

#: Milliseconds until the clock sends the first wake-up again; doubles with each, up to the second number.
FIRST_RESEND_MS, LAST_RESEND_MS = 2_000, 60_000
#: Milliseconds until the clock looks at a row that waits for a place.
UNSENT_MS = 10_000
#: What runs of no task are for; that of a plan says so by itself.
_TASKLESS = {"thread": "a message", "compact": "summing up"}
#: A run that waits for a place. Spelled out, because a planner takes a partial index only for the words it is made of.
UNSENT = text("runs.status = 'queued' AND runs.wakes = 0")
_unsent, _UNSENT = runs.alias("unsent"), text("unsent.status = 'queued' AND unsent.wakes = 0")


def queued(by: str | None) -> dict[str, Any]:
    """The columns of a run that becomes `queued`."""
    return {
        "status": "queued",
        "waiting_on": None,
        "worker_id": None,
        "resumed_by": by,
        "wakes": 0,
        "due_at": now_ms() + UNSENT_MS,
    }


def queued_soon(by: str | None) -> dict[str, Any]:
    """The same for a run that most likely has a place: if its mark found the project busy, the clock looks soon."""
    return queued(by) | {"due_at": now_ms() + FIRST_RESEND_MS}


def lock_places(connection: Connection, project_id: str) -> Row[Any]:
    """Locks the project's row; first in a transaction that will mark for certain, or claims what has no mark."""
    query = select(projects.c.status, projects.c.max_parallel).where(projects.c.id == project_id)
    found: Row[Any] = connection.execute(query.with_for_update(key_share=True)).one()  # type: ignore[assignment]
    return found


def any_unsent(project_id: Any) -> ColumnElement[bool]:
    """Whether some run of the project waits for a place; may stand in a query of `runs`."""
    return exists().where(_unsent.c.project_id == project_id, _UNSENT)


def free_places(connection: Connection, project_id: str, max_parallel: int) -> int:
    """Places that neither a running nor a marked run has; counted under the project's lock."""
    taken = (runs.c.status == "running") | ((runs.c.status == "queued") & (runs.c.wakes > 0))
    count = connection.execute(select(func.count()).where(runs.c.project_id == project_id, taken)).scalar_one()
    return max_parallel - int(count)


def take(connection: Connection, project_id: str) -> list[Wake]:
    """Marks the oldest queued runs of a project for a wake-up, no more than it has places free.

    Most often nothing waits for a place, which is one look. The lock is taken without waiting, because a caller that
    did not lock the project first holds what comes after it in the lock order: if somebody else has the project just
    now, it is their transaction, the next one or the clock that marks.
    """
    if not connection.execute(select(any_unsent(project_id))).scalar():
        return []
    room = select(projects.c.max_parallel).where(projects.c.id == project_id)
    most = connection.execute(room.with_for_update(key_share=True, skip_locked=True)).scalar()
    places = 0 if most is None else free_places(connection, project_id, most)
    if places <= 0:
        return []
    # All runs of a project have its priority.
    mine = runs.c.project_id == project_id
    first = select(runs.c.id).where(mine, UNSENT).order_by(runs.c.created_at, runs.c.id).limit(places)
    return mark(connection, list(connection.execute(first.with_for_update(key_share=True, skip_locked=True)).scalars()))


def advance(connection: Connection, project_id: str) -> list[Wake]:
    """The same as a transaction of its own, which waits for the project."""
    lock_places(connection, project_id)
    return take(connection, project_id)


def mark(connection: Connection, run_ids: list[str]) -> list[Wake]:
    """Counts one more wake-up for each of these queued runs and names them for the messages."""
    if not run_ids:
        return []
    # 2, 4, 8 ... seconds, as far as the last interval: shifting is the one power both dialects share.
    wait = case((runs.c.wakes >= 5, LAST_RESEND_MS), else_=FIRST_RESEND_MS * _power_of_two(runs.c.wakes))
    moved = (
        update(runs)
        .where(runs.c.id.in_(run_ids), runs.c.status == "queued")
        .values(wakes=runs.c.wakes + 1, due_at=now_ms() + wait)
        .returning(runs.c.id)
    )
    ids = set(connection.execute(moved).scalars())
    named = (
        select(
            *(runs.c.id, runs.c.kind, runs.c.agent_name, runs.c.priority),
            *(projects.c.title, tasks.c.key, tasks.c.title.label("task")),
        )
        .join(projects, projects.c.id == runs.c.project_id)
        .join(tasks, tasks.c.id == runs.c.task_id, isouter=True)
        .where(runs.c.id.in_(ids))
        .order_by(runs.c.priority.desc(), runs.c.created_at, runs.c.id)
    )
    return [Wake(r.id, r.title, _about(r), r.agent_name, r.priority) for r in connection.execute(named)]


def _about(row: Any) -> str | None:
    """What a run is for, as a person reads it in a monitor."""
    if row.key is None:
        return _TASKLESS.get(row.kind)
    return row.task if row.task == row.key else f"{row.key}: {row.task}"


def _power_of_two(column: Any) -> Any:
    return case(*((column == n, 2**n) for n in range(5)), else_=32)
