"""Which queued runs get a wake-up: as many as their project has places free, and a few at a time.

A mark is a place: what runs and what is marked are never more than the project has places, so that claiming a marked
run needs no look at the others. Whoever marks holds the project's row for that.

The queue of the broker is first come, first served, so no project may fill it: of the runs that are to begin, other
than those of fan-outs, only a few wait in it, more of a project with priority, and no more of an owner than a few
projects would have. What is under way goes on as soon as it can: people and parents wait for it. Each that is claimed
makes room for the next (`refill`). So a project of one task stands behind a few messages of one with ten thousand
tasks, and not behind all of them.

The rows are marked in the transaction that made them ready and the messages go out after its commit; a process that
dies in between costs time only, since the clock sends again when a row's `due_at` has passed.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, case, exists, func, select, text, update

from orchestrator.records import Wake
from orchestrator.states import PROJECT_ENDED
from orchestrator.store import routing
from orchestrator.store.database import now_ms
from orchestrator.store.sql import among, several
from orchestrator.store.tables import projects, runs, tasks

#: Milliseconds until the clock sends the first wake-up again; doubles with each, up to the second number.
FIRST_RESEND_MS, LAST_RESEND_MS = 2_000, 60_000
#: Milliseconds until the clock looks at a row that waits for a place.
UNSENT_MS = 10_000
#: What runs of no task are for; that of a plan says so by itself.
_TASKLESS = {"thread": "a message", "compact": "summing up"}
#: A run that waits for a place. Spelled out, because a planner takes a partial index only for the words it is made of.
UNSENT = text("runs.status = 'queued' AND runs.wakes = 0")
#: A run that has a wake-up and nobody has claimed.
SENT = text("runs.status = 'queued' AND runs.wakes > 0")
#: Children come with their parent, who waits for all of them.
CHILDREN = ("spawn", "item")
#: What has a share of the queue: a run of a plan's own, or of a conversation, that has not begun.
_FRESH = runs.c.kind.not_in(CHILDREN) & runs.c.started_at.is_(None)
#: Wake-ups of one project that wait in the queue at once: so many and one for each step of its priority (0 to 9).
SHARE = 3
#: The same for all projects of an owner.
OWNER_SHARE = 32
#: Other projects of its owner that the claims of one may help to their wake-ups, and those of several together.
NEIGHBOURS, MOST_NEIGHBOURS = 4, 16
#: Waiting runs that a claim looks at to find one of its owner.
LOOKED_AT = 200
_own, _other = projects.alias("own"), projects.alias("other")
_OF_PROJECT = (
    *(projects.c.id, projects.c.owner_id, projects.c.status),
    *(projects.c.max_parallel, projects.c.owner_parallel, projects.c.priority),
)
_unsent, _UNSENT = runs.alias("unsent"), text("unsent.status = 'queued' AND unsent.wakes = 0")
#: A run that has a place.
_PLACED = (runs.c.status == "running") | ((runs.c.status == "queued") & (runs.c.wakes > 0))
_OPEN = projects.c.status.not_in(sorted(PROJECT_ENDED))


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
    found: Row[Any] = connection.execute(_LOCK, {"project": project_id}).one()
    return found


def any_unsent(project_id: Any) -> ColumnElement[bool]:
    """Whether some run of the project waits for a place; may stand in a query of `runs`."""
    return exists().where(_unsent.c.project_id == project_id, _UNSENT)


def owner_waits(project_id: Any) -> ColumnElement[bool]:
    """Whether some run of the project's owner waits for a place, of the few hundred that an index gives first: who is
    missed, the clock finds. May stand in a query of `runs`."""
    some = select(_unsent.c.project_id).where(_UNSENT).limit(LOOKED_AT).subquery()
    owner = select(_own.c.owner_id).where(_own.c.id == project_id).correlate(runs).scalar_subquery()
    return exists().where(some.c.project_id == _other.c.id, _other.c.owner_id == owner)


def free_places(connection: Connection, project_id: str, max_parallel: int) -> int:
    """Places that neither a running nor a marked run has; counted under the project's lock."""
    return max_parallel - int(connection.execute(_AT_WORK, {"project": project_id}).scalar_one())


def room(connection: Connection, project: Row[Any]) -> int:
    """The same within what the owner may have at work over all projects. That is a brake: projects are locked one by
    one, and two that mark at once may together go beyond it by what they mark."""
    free = free_places(connection, project.id, project.max_parallel)
    if project.owner_parallel is None or free <= 0:
        return free
    at_work = int(connection.execute(_AT_WORK_FOR_OWNER, {"owner": project.owner_id}).scalar_one())
    return min(free, int(project.owner_parallel) - at_work)


def take(connection: Connection, project_id: str) -> list[Wake]:
    """Marks the oldest queued runs of a project for a wake-up, no more than it has places free, nor than its share of
    the queue.

    Most often nothing waits for a place, which is one look. The lock is taken without waiting, because a caller that
    did not lock the project first holds what comes after it in the lock order: if somebody else has the project just
    now, it is their transaction, the next one or the clock that marks.
    """
    whose = {"project": project_id}
    if not connection.execute(_WAITS, whose).scalar():
        return []
    project: Row[Any] | None = connection.execute(_LOCK_FREE, whose).one_or_none()
    places = 0 if project is None else room(connection, project)
    if project is None or places <= 0:
        return []
    share = min(places, _share(connection, project))
    found = connection.execute(_OLDEST_BEGUN, whose | {"most": places}).scalars().all()
    left = min(share, places - len(found))
    if left > 0:
        found = [*found, *connection.execute(_OLDEST_FRESH, whose | {"most": left}).scalars()]
    return mark(connection, list(found))


def first(connection: Connection, project: Row[Any]) -> list[Wake]:
    """The same for a project that this transaction makes: nobody else knows of it, so that all its places are free and
    nothing needs a lock."""
    free = int(project.max_parallel) if project.owner_parallel is None else room(connection, project)
    share = min(free, _share(connection, project))
    if share <= 0:
        return []
    return mark(connection, list(connection.execute(_OLDEST, {"project": project.id, "most": share}).scalars()))


def refill(connection: Connection, project_ids: Collection[str]) -> list[Wake]:
    """Marks what may follow wake-ups of these projects that were claimed: their own runs, and those of their owners'
    other projects that waited because the owner's share of the queue was used up, by priority and age."""
    ready: list[Wake] = []
    for project_id in sorted(project_ids):
        ready += advance(connection, project_id)
    others = {"ids": list(project_ids), "most": min(NEIGHBOURS * len(project_ids), MOST_NEIGHBOURS)}
    # Locked without waiting: another transaction may hold one of them and want one of these.
    for other in connection.execute(_NEIGHBOURS, others).scalars().all():
        ready += take(connection, other)
    return ready


def _share(connection: Connection, project: Row[Any]) -> int:
    """Wake-ups of its own runs that the project may add to the queue."""
    mine, all_of_owner = connection.execute(_SENT_COUNTS, {"project": project.id, "owner": project.owner_id}).one()
    return max(0, min(SHARE + int(project.priority) - int(mine), OWNER_SHARE - int(all_of_owner)))


def advance(connection: Connection, project_id: str) -> list[Wake]:
    """The same as a transaction of its own, which waits for the project."""
    lock_places(connection, project_id)
    return take(connection, project_id)


def mark(connection: Connection, run_ids: list[str]) -> list[Wake]:
    """Counts one more wake-up for each of these queued runs and names them for the messages."""
    if not run_ids:
        return []
    ids = connection.execute(_MARK, {"ids": run_ids}).scalars().all()
    found = connection.execute(_NAMED, {"ids": ids}).all()
    queues = routing.assign(connection, found)
    return [Wake(r.id, r.title, _about(r), r.agent_name, r.priority, queues[r.id]) for r in found]


def _about(row: Any) -> str | None:
    """What a run is for, as a person reads it in a monitor."""
    if row.key is None:
        return _TASKLESS.get(row.kind)
    return row.task if row.task == row.key else f"{row.key}: {row.task}"


def _power_of_two(column: Any) -> Any:
    return case(*((column == n, 2**n) for n in range(5)), else_=32)


def _oldest(*more: Any) -> Select[Any]:
    """Runs of a project that wait for a place; all of them have its priority."""
    waiting = select(runs.c.id).where(runs.c.project_id == bindparam("project"), UNSENT, *more)
    oldest = waiting.order_by(runs.c.created_at, runs.c.id).limit(bindparam("most"))
    return oldest.with_for_update(key_share=True, skip_locked=True)


_PROJECT: Select[Any] = select(*_OF_PROJECT).where(projects.c.id == bindparam("project"))
_LOCK = _PROJECT.with_for_update(key_share=True)
_LOCK_FREE = _PROJECT.with_for_update(key_share=True, skip_locked=True)
_WAITS = select(any_unsent(bindparam("project")))
_AT_WORK = select(func.count()).where(runs.c.project_id == bindparam("project"), _PLACED)
_OF_ALL = select(func.count()).select_from(runs).join(projects, projects.c.id == runs.c.project_id)
_AT_WORK_FOR_OWNER = _OF_ALL.where(projects.c.owner_id == bindparam("owner"), _OPEN, _PLACED)
_OLDEST, _OLDEST_BEGUN, _OLDEST_FRESH = _oldest(), _oldest(~_FRESH), _oldest(_FRESH)
_SENT_COUNTS = (
    select(func.count(case((runs.c.project_id == bindparam("project"), 1))), func.count())
    .select_from(runs)
    .join(projects, projects.c.id == runs.c.project_id)
    .where(SENT, _FRESH, projects.c.owner_id == bindparam("owner"))
)
_OWNERS = select(_own.c.owner_id).where(among(_own.c.id, several("ids")))
_NEIGHBOURS = (
    select(projects.c.id)
    .where(projects.c.owner_id.in_(_OWNERS), ~among(projects.c.id, several("ids")), any_unsent(projects.c.id), _OPEN)
    .order_by(projects.c.priority.desc(), projects.c.created_at, projects.c.id)
    .limit(bindparam("most"))
)
#: 2, 4, 8 ... seconds, as far as the last interval: shifting is the one power both dialects share.
_WAIT = case((runs.c.wakes >= 5, LAST_RESEND_MS), else_=FIRST_RESEND_MS * _power_of_two(runs.c.wakes))
_MARK = (
    update(runs)
    .where(among(runs.c.id, several("ids")), runs.c.status == "queued")
    .values(wakes=runs.c.wakes + 1, due_at=now_ms() + _WAIT)
    .returning(runs.c.id)
)
_NAMED = (
    select(
        *(runs.c.id, runs.c.kind, runs.c.agent_name, runs.c.priority, runs.c.definition_digest, runs.c.queue),
        *(projects.c.title, tasks.c.key, tasks.c.title.label("task")),
    )
    .join(projects, projects.c.id == runs.c.project_id)
    .join(tasks, tasks.c.id == runs.c.task_id, isouter=True)
    .where(among(runs.c.id, several("ids")))
    .order_by(runs.c.priority.desc(), runs.c.created_at, runs.c.id)
)
