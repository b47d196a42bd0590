"""Moves of `runs`: made queued, leased, taken back, woken. Claims stand in `claims`, ends in `endings`."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, case, exists, insert, select, update

from orchestrator.records import Event, Wake
from orchestrator.states import RUN_ENDED
from orchestrator.store import routing, wakes
from orchestrator.store.database import now_ms
from orchestrator.store.rows import Shared, insert_all
from orchestrator.store.sql import among, several
from orchestrator.store.tables import runs, tasks
from registry.errors import Refused
from registry.ids import new_id

#: The claim of a run whose worker died counts, though a checkpoint has cleared it since: the next step is suspect.
SUSPECT = {"claims": case((runs.c.claims > 0, runs.c.claims), else_=1)}

#: What a parked run may wait on with a time in `due_at`.
TIMED = ("timer", "backoff", "gate", "children")

#: The times of a run that is made and waits for a place.
_FRESH: Shared = (("created_at", now_ms()), ("due_at", now_ms() + wakes.UNSENT_MS))
_OURS = (among(runs.c.id, several("ids")), runs.c.worker_id == bindparam("worker"), runs.c.status == "running")
#: Those of a worker that nobody has locked just now.
_MINE_FREE = select(runs.c.id).where(*_OURS).order_by(runs.c.id).with_for_update(key_share=True, skip_locked=True)
_RENEW = update(runs).where(runs.c.id.in_(_MINE_FREE.scalar_subquery())).values(due_at=now_ms() + bindparam("lease_ms"))
_OWNED = select(runs.c.id).where(*_OURS)
_NEGLECTED = select(
    exists().where(
        runs.c.status == "running",
        runs.c.worker_id != bindparam("worker"),
        runs.c.due_at <= now_ms() + bindparam("left_ms"),
    )
)
_QUEUE_TASKS = (
    update(tasks)
    .where(among(tasks.c.id, several("ids")), tasks.c.status == "pending")
    .values(status="queued")
    .returning(
        *(tasks.c.id, tasks.c.position, tasks.c.attempt),
        *(tasks.c.agent_id, tasks.c.agent_name, tasks.c.definition_digest),
    )
)


def make_roots(connection: Connection, ready: Sequence[Row[Any]], project: Row[Any]) -> None:
    """Gives each ready task its root run, `queued`, in the transaction that made it ready."""
    if ready:
        insert_queued(connection, [root(task, project) for task in ready])


def make_later(connection: Connection, task: Row[Any], project: Row[Any], wait_ms: int) -> None:
    """A task's next root run, which waits so long on its back-off before the clock queues it."""
    waits = {"status": "waiting", "waiting_on": "backoff"}
    row = root(task, project) | waits
    connection.execute(insert(runs).values(row | {"created_at": now_ms(), "due_at": now_ms() + wait_ms}))


def root(task: Row[Any], project: Row[Any]) -> dict[str, Any]:
    """The row of a task's next root run, at its beginning."""
    return {
        "id": new_id(),
        "project_id": project.id,
        "task_id": task.id,
        "kind": "root",
        "agent_id": task.agent_id,
        "agent_name": task.agent_name,
        "definition_digest": task.definition_digest,
        "status": "queued",
        "attempt": task.attempt + 1,
        "mode": project.mode,
        "permissions": project.permissions,
        "approvals": project.approvals,
        "priority": project.priority,
    }


def insert_queued(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Writes new runs that wait for a place."""
    insert_all(connection, runs, rows, _FRESH)


def queue_ready(connection: Connection, project: Row[Any], task_ids: Sequence[str]) -> list[Event]:
    """pending -> queued for tasks that wait for nothing any more, with a root run each."""
    if not task_ids:
        return []
    ready = sorted(connection.execute(_QUEUE_TASKS, {"ids": task_ids}).all(), key=lambda t: t.position)
    make_roots(connection, ready, project)
    return [Event("task.status", {"status": "queued", "from": "pending"}, task_id=t.id) for t in ready]


def make_planner(connection: Connection, project: Row[Any], agent_name: str, agent_id: str, digest: str) -> None:
    """The run that makes the project's plan, `queued`."""
    row = {
        "id": new_id(),
        "project_id": project.id,
        "kind": "plan",
        "agent_id": agent_id,
        "agent_name": agent_name,
        "definition_digest": digest,
        "status": "queued",
        "attempt": 1,
        "permissions": {},
        "approvals": "park",
        "priority": project.priority,
        "created_at": now_ms(),
        "due_at": now_ms() + wakes.UNSENT_MS,
    }
    connection.execute(insert(runs).values(row))


def renew(connection: Connection, worker_id: str, run_ids: Iterable[str], lease_ms: int) -> set[str]:
    """Extends the leases of a worker's runs in one batch; returns those that are its no more.

    A row locked by its own checkpoint is passed over: that checkpoint renews it.
    """
    held = {"ids": sorted(run_ids), "worker": worker_id}
    connection.execute(_RENEW, held | {"lease_ms": lease_ms})
    return set(held["ids"]) - set(connection.execute(_OWNED, held).scalars())


def not_owned(connection: Connection, worker_id: str, run_ids: Iterable[str]) -> set[str]:
    """Those of these runs that are the worker's no more: cancelled, or taken over."""
    ids = sorted(run_ids)
    return set(ids) - set(connection.execute(_OWNED, {"ids": ids, "worker": worker_id}).scalars())


def any_neglected(connection: Connection, worker_id: str, left_ms: int) -> bool:
    """Whether a lease of another worker has no more than so long left: its runs may soon be suspects."""
    return bool(connection.execute(_NEGLECTED, {"worker": worker_id, "left_ms": left_ms}).scalar())


def expire_leases(connection: Connection, limit: int) -> list[str]:
    """running -> queued for runs whose worker fell silent; returns their ids."""
    due = (
        select(runs.c.id)
        .where(runs.c.status == "running", runs.c.due_at <= now_ms())
        .order_by(runs.c.id)
        .limit(limit)
        .with_for_update(key_share=True, skip_locked=True)
    )
    moved = update(runs).where(runs.c.id.in_(due.scalar_subquery()), runs.c.status == "running")
    return list(connection.execute(moved.values(_taken_back() | SUSPECT).returning(runs.c.id)).scalars())


def release(connection: Connection, worker_id: str, *, refund: bool) -> list[str]:
    """running -> queued for every run of a worker that is known to be gone.

    `refund`: it stopped in an orderly way, so its claims were no attempts.
    """
    values = _taken_back() | ({"claims": _refunded()} if refund else SUSPECT)
    moved = update(runs).where(runs.c.worker_id == worker_id, runs.c.status == "running")
    return list(connection.execute(moved.values(values).returning(runs.c.id)).scalars())


def release_run(connection: Connection, run_id: str, fence: int) -> bool:
    """running -> queued for one run whose worker leaves in an orderly way; its claim was no attempt."""
    values = _taken_back() | {"claims": _refunded(), "due_at": now_ms()}
    mine = update(runs).where(runs.c.id == run_id, runs.c.fence == fence, runs.c.status == "running")
    return connection.execute(mine.values(values)).rowcount == 1


def give_up(connection: Connection, run_id: str, fence: int, *, crashed: bool) -> list[Wake]:
    """running -> queued for one run whose step does not come to an end; returns the wake-ups to send.

    `crashed`: a process that carried nothing else died with it.
    """
    values = _taken_back() | SUSPECT | ({"crashes": runs.c.crashes + 1} if crashed else {})
    mine = update(runs).where(runs.c.id == run_id, runs.c.fence == fence, runs.c.status == "running").values(values)
    project_id = connection.execute(mine.returning(runs.c.project_id)).scalar()
    return [] if project_id is None else wakes.take(connection, project_id)


def hold_back(connection: Connection, run_id: str, fence: int) -> None:
    """A claimed suspect waits for a process of its own: if its worker dies before that begins, none is to blame."""
    mine = (runs.c.id == run_id, runs.c.fence == fence, runs.c.status == "running")
    connection.execute(update(runs).where(*mine, runs.c.claims > 1).values(claims=runs.c.claims - 1))


def begin(connection: Connection, run_id: str, fence: int) -> bool:
    """A suspect that was held back begins: from here on its claim counts. False: it is its worker's no more."""
    mine = (runs.c.id == run_id, runs.c.fence == fence, runs.c.status == "running")
    return connection.execute(update(runs).where(*mine).values(claims=runs.c.claims + 1)).rowcount == 1


def _taken_back() -> dict[str, Any]:
    """The columns of a run whose worker is gone: what a person did to wake it is not lost with the worker."""
    return wakes.queued("lease") | {"resumed_by": case((runs.c.resumed_by == "answer", "answer"), else_="lease")}


def wake_due(connection: Connection, limit: int) -> list[str]:
    """waiting -> queued for timers and back-offs that are due; returns their ids."""
    due = (
        select(runs.c.id)
        .where(runs.c.status == "waiting", runs.c.waiting_on.in_(TIMED), runs.c.due_at <= now_ms())
        .order_by(runs.c.id)
        .limit(limit)
        .with_for_update(key_share=True, skip_locked=True)
    )
    rows = connection.execute(select(runs.c.id, runs.c.waiting_on).where(runs.c.id.in_(due.scalar_subquery()))).all()
    for row in rows:
        connection.execute(
            update(runs)
            .where(runs.c.id == row.id, runs.c.status == "waiting")
            .values(wakes.queued(_by(row.waiting_on)))
        )
    return [row.id for row in rows]


def wake(connection: Connection, run_id: str) -> list[Wake]:
    """waiting on its timer -> queued, because a person said so; the run goes on as if its time had come.

    Raises:
        Refused: `unknown_run`, `run_ended`, `not_sleeping`.
    """
    project_id = connection.execute(select(runs.c.project_id).where(runs.c.id == run_id)).scalar()
    if project_id is not None:
        wakes.lock_places(connection, project_id)
    asleep = (runs.c.status == "waiting") & (runs.c.waiting_on == "timer")
    woken = update(runs).where(runs.c.id == run_id, asleep).values(wakes.queued("answer")).returning(runs.c.project_id)
    if connection.execute(woken).scalar() is None:
        raise _not_asleep(connection, run_id)
    return wakes.take(connection, str(project_id))


def _not_asleep(connection: Connection, run_id: str) -> Refused:
    row = connection.execute(select(runs.c.status, runs.c.waiting_on).where(runs.c.id == run_id)).one_or_none()
    if row is None:
        return Refused(f"there is no run {run_id}", code="unknown_run")
    if row.status in RUN_ENDED:
        return Refused(f"run {run_id} has ended: {row.status}", code="run_ended")
    waits = f" on its {row.waiting_on}" if row.waiting_on else ""
    return Refused(f"run {run_id} does not sleep: it is {row.status}{waits}", code="not_sleeping")


def _refunded() -> Any:
    """One claim less; a checkpoint may have cleared them already."""
    return case((runs.c.claims > 0, runs.c.claims - 1), else_=0)


def _by(waiting_on: str) -> str:
    """What `run.resumed` says of a run whose time came: a gate or a fan-out is resumed by its timer."""
    return "backoff" if waiting_on == "backoff" else "timer"


def overdue_wakes(connection: Connection, limit: int, queues: frozenset[str] | None = None) -> list[Wake]:
    """Wake-ups to send again: queued runs of these queues (None: of all) that nobody claimed since the last one."""
    due = (
        select(runs.c.id)
        .where(runs.c.status == "queued", runs.c.wakes > 0, runs.c.due_at <= now_ms(), routing.within(queues))
        .order_by(runs.c.due_at)
        .limit(limit)
    )
    again = wakes.mark(connection, list(connection.execute(due).scalars()))
    return again + unsent_wakes(connection, limit)


def unsent_wakes(connection: Connection, limit: int) -> list[Wake]:
    """First wake-ups of queued runs that have waited for a place: where there is one now, it is theirs."""
    waiting = select(runs.c.project_id).where(runs.c.status == "queued", runs.c.wakes == 0).distinct().limit(limit)
    found: list[Wake] = []
    for project_id in sorted(connection.execute(waiting).scalars().all()):
        found += wakes.advance(connection, project_id)
    later = update(runs).where(runs.c.status == "queued", runs.c.wakes == 0, runs.c.due_at <= now_ms())
    connection.execute(later.values(due_at=now_ms() + wakes.UNSENT_MS))
    return found
