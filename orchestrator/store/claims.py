"""Claims of `runs`: queued -> running under a new fence and a lease, for runs that have a place.

A claim that comes alone and thirty-two that come together cost nearly the same, so they are taken together wherever
several are at hand: claims of threads, children of one parent, root runs alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, exists, func, select, update

from orchestrator.records import Event
from orchestrator.states import PROJECT_ENDED
from orchestrator.store import events, routing, wakes
from orchestrator.store.database import now_ms
from orchestrator.store.sql import among, several
from orchestrator.store.tables import projects, runs, tasks

#: What a claim has to know of a run.
_FACTS = (
    *(runs.c.id, runs.c.project_id, runs.c.task_id, runs.c.parent_id),
    *(runs.c.kind, runs.c.depth, runs.c.wakes),
)
_OPEN_PROJECT = exists().where(projects.c.id == runs.c.project_id, projects.c.status.not_in(sorted(PROJECT_ENDED)))
_LOCKED = select(runs.c.id).where(among(runs.c.id, several("ids"))).order_by(runs.c.id).with_for_update(key_share=True)
#: queued -> running. The rows are locked in one order: another worker may be claiming some of them, too.
_CLAIM = (
    update(runs)
    .where(
        runs.c.id.in_(_LOCKED.scalar_subquery()),
        runs.c.status == "queued",
        (runs.c.wakes > 0) | among(runs.c.id, several("placed")),
        _OPEN_PROJECT,
    )
    .values(
        status="running",
        waiting_on=None,
        fence=runs.c.fence + 1,
        claims=runs.c.claims + 1,
        worker_id=bindparam("worker"),
        due_at=now_ms() + bindparam("lease_ms"),
        started_at=func.coalesce(runs.c.started_at, now_ms()),
    )
    .returning(
        *(runs.c.id, runs.c.fence, runs.c.claims, runs.c.crashes),
        *(runs.c.attempt, runs.c.agent_id, runs.c.resumed_by),
    )
)
_READY: Select[Any] = select(*_FACTS).where(runs.c.status == "queued").order_by(runs.c.created_at, runs.c.id)
_MARKED = _READY.where(among(runs.c.id, several("ids")), runs.c.wakes > 0)
_ALIKE = _READY.where(
    *(runs.c.project_id == bindparam("project"), runs.c.kind == "root", runs.c.started_at.is_(None)),
    *(wakes.UNSENT, runs.c.definition_digest == bindparam("definition")),
).limit(bindparam("most"))
_LOCK_TASKS = (
    select(tasks.c.id, tasks.c.status)
    .where(among(tasks.c.id, several("ids")))
    .order_by(tasks.c.id)
    .with_for_update(key_share=True)
)
_BEGIN_TASKS = (
    update(tasks)
    .where(among(tasks.c.id, several("ids")))
    .values(status="running", started_at=func.coalesce(tasks.c.started_at, now_ms()))
)


@dataclass(frozen=True)
class Claim:
    """A run this worker owns from now on: `fence` goes with every write."""

    run_id: str
    fence: int
    #: Claims since the last checkpoint, this one included.
    claims: int
    #: Processes of its own that died with it since then.
    crashes: int = 0
    #: Its project, where runs of it or of its owner wait that may have a wake-up now; None: none do.
    refills: str | None = None

    @property
    def suspect(self) -> bool:
        """Whether a worker died or fell silent over it: it may have been the run."""
        return self.claims > 1


@dataclass(frozen=True)
class Alike:
    """Root runs of one project and one definition that may begin in one slot after another."""

    project_id: str
    definition_digest: str
    #: Those that were marked for a wake-up just now, which nobody was sent.
    marked: tuple[str, ...]
    #: How many at most.
    limit: int


def claim(connection: Connection, run_id: str, worker_id: str, lease_ms: int) -> Claim | None:
    """queued -> running: a new fence and a lease; None when there is nothing to do (someone else has it, its project
    has ended, or all places of the project are taken).
    """
    return claim_all(connection, [run_id], worker_id, lease_ms).get(run_id)


def claim_all(
    connection: Connection,
    run_ids: Sequence[str],
    worker_id: str,
    lease_ms: int,
    queues: frozenset[str] | None = None,
) -> dict[str, Claim]:
    """The same for several runs, by their ids; those that could not be claimed are not in it, nor are those of other
    queues than these (None: of whichever).

    A run that was marked for a wake-up has its place already; another takes one under its project's lock.
    """
    found: Sequence[Row[Any]] = connection.execute(_queued_here(queues), {"ids": list(run_ids)}).all()
    placed = _placed(connection, [row for row in found if not row.wakes])
    return _claim(connection, [row for row in found if row.wakes or row.id in placed], placed, worker_id, lease_ms)


def claim_siblings(
    connection: Connection,
    run_id: str,
    limit: int,
    worker_id: str,
    lease_ms: int,
    queues: frozenset[str] | None = None,
) -> dict[str, Claim]:
    """The same for marked runs that the parent of this one made and nobody has claimed, oldest place first; what
    somebody else is claiming just now is passed over."""
    found = connection.execute(_siblings_here(queues), {"run": run_id, "most": limit}).all()
    return _claim(connection, found, [], worker_id, lease_ms)


def claim_alike(connection: Connection, wanted: Sequence[Alike], worker_id: str, lease_ms: int) -> dict[str, Claim]:
    """The same for runs that were marked just now, and then for others that wait for a wake-up: oldest first, as many
    as there are places, without one."""
    projects_of = {id_: wakes.lock_places(connection, id_) for id_ in sorted({alike.project_id for alike in wanted})}
    found: list[Row[Any]] = []
    placed: list[str] = []
    for alike in wanted:
        if alike.marked:
            found += connection.execute(_MARKED, {"ids": alike.marked}).all()
        project = projects_of[alike.project_id]
        free = min(alike.limit - len(alike.marked), wakes.room(connection, project) - len(placed))
        if free > 0:
            like = {"project": project.id, "definition": alike.definition_digest, "most": free}
            waiting = connection.execute(_ALIKE, like).all()
            found += waiting
            placed += [row.id for row in waiting]
    return _claim(connection, found, placed, worker_id, lease_ms)


def _claim(
    connection: Connection, ready: Sequence[Row[Any]], placed: Sequence[str], worker_id: str, lease_ms: int
) -> dict[str, Claim]:
    """queued -> running for runs with a place. The attempt is counted here, before any work, so that a run that kills
    its worker cannot do so for ever."""
    if not ready:
        return {}
    before = _lock_tasks(connection, [row.task_id for row in ready if row.kind == "root" and row.task_id is not None])
    mine = {"ids": [row.id for row in ready], "placed": placed, "worker": worker_id, "lease_ms": lease_ms}
    claimed = connection.execute(_CLAIM, mine).all()
    _tell_claims(connection, claimed, {row.id: row for row in ready}, before)
    by_id = {row.id: row for row in ready}
    return {c.id: Claim(c.id, c.fence, c.claims, c.crashes, _refills(by_id[c.id])) for c in claimed}


def _refills(row: Row[Any]) -> str | None:
    """The project whose wake-ups in the queue are one fewer by this claim, where there is something to put in."""
    return str(row.project_id) if getattr(row, "more", False) and row.kind not in wakes.CHILDREN else None


def _placed(connection: Connection, unmarked: Sequence[Row[Any]]) -> list[str]:
    """Those of these runs that a free place is left for; locks their projects, so that no two get the same place."""
    placed: list[str] = []
    for project_id in sorted({row.project_id for row in unmarked}):
        project = wakes.lock_places(connection, project_id)
        free = max(0, wakes.room(connection, project))
        placed += [row.id for row in unmarked if row.project_id == project_id][:free]
    return placed


def _lock_tasks(connection: Connection, task_ids: Sequence[str]) -> dict[str, str]:
    """Locks tasks before their runs; gives their statuses."""
    if not task_ids:
        return {}
    return {row.id: row.status for row in connection.execute(_LOCK_TASKS, {"ids": task_ids})}


def _tell_claims(
    connection: Connection, claimed: Sequence[Row[Any]], found: Mapping[str, Row[Any]], before: Mapping[str, str]
) -> None:
    """Moves the tasks of claimed root runs, and writes what the traces say of the claims."""
    whose = {row.id: found[row.id].task_id for row in claimed if found[row.id].kind == "root"}
    begun = [task_id for task_id in whose.values() if before.get(task_id, "running") != "running"]
    if begun:
        connection.execute(_BEGIN_TASKS, {"ids": begun})
    lines: dict[str, list[Event]] = {}
    for row in claimed:
        run = found[row.id]
        told = lines.setdefault(run.project_id, [])
        if run.kind == "root" and run.task_id in begun:
            data = {"status": "running", "from": before[run.task_id]}
            told.append(Event("task.status", data, task_id=run.task_id))
        shared = {"task_id": run.task_id, "run_id": row.id, "agent_id": row.agent_id}
        if row.resumed_by:
            told.append(Event("run.resumed", {"by": row.resumed_by}, **shared))
        if row.resumed_by in (None, "lease") or row.claims > 1:
            above = {} if run.parent_id is None else {"parentRunId": run.parent_id}
            told.append(Event("run.started", {"attempt": row.attempt, "depth": run.depth} | above, **shared))
    events.append_all(connection, {project_id: told for project_id, told in lines.items() if told})


@lru_cache(8)
def _queued_here(queues: frozenset[str] | None) -> Select[Any]:
    """Of some runs those that wait in these queues, and whether others wait for the wake-up that a claim makes room
    for."""
    waits = wakes.any_unsent(runs.c.project_id) | wakes.owner_waits(runs.c.project_id)
    mine = (among(runs.c.id, several("ids")), runs.c.status == "queued", routing.within(queues))
    return select(*_FACTS, waits.label("more")).where(*mine).order_by(runs.c.id)


@lru_cache(8)
def _siblings_here(queues: frozenset[str] | None) -> Select[Any]:
    parent = select(runs.c.parent_id).where(runs.c.id == bindparam("run")).scalar_subquery()
    here = (runs.c.parent_id == parent) & (runs.c.status == "queued") & (runs.c.wakes > 0)
    query = select(*_FACTS).where(here, routing.within(queues)).order_by(runs.c.position)
    return query.limit(bindparam("most")).with_for_update(key_share=True, skip_locked=True)
