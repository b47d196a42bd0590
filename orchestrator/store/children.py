"""Moves of a fan-out: children are written with the park of their parent, counted down as they end, cancelled whole.

Rows decide when the parent goes on; chords and messages only make it sooner. Lock order: the parent before its child.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from orchestrator.records import UNSET, ChildRecord, Event, Fanout
from orchestrator.states import RUN_ENDED
from orchestrator.store import beginnings, definitions, effects, money, signals, wakes
from orchestrator.store.database import now_ms
from orchestrator.store.sql import among, several
from orchestrator.store.tables import runs

_PARENT = runs.c.id == bindparam("parent")
_OPEN = select(runs.c.open_children).where(_PARENT)
_LOCK = select(runs.c.id).where(among(runs.c.id, several("ids"))).order_by(runs.c.id).with_for_update(key_share=True)
_COUNT_DOWN = (
    update(runs)
    .where(_PARENT)
    .values(open_children=runs.c.open_children - bindparam("gone"), cost_micro=runs.c.cost_micro + bindparam("cost"))
    .returning(runs.c.open_children, runs.c.sequential)
)
_QUEUE_PARENT = (
    update(runs)
    .where(_PARENT, runs.c.status == "waiting", runs.c.waiting_on == "children")
    .values(wakes.queued_soon("children"))
)
_OF_STEP = (
    select(
        *(runs.c.id, runs.c.kind, runs.c.position, runs.c.agent_id, runs.c.agent_name, runs.c.definition_digest),
        *(runs.c.item, runs.c.status, runs.c.result),
    )
    .where(runs.c.parent_id == bindparam("parent"), runs.c.parent_step == bindparam("step"))
    .order_by(runs.c.position)
)


def counted(fanout: Fanout) -> dict[str, Any]:
    """The columns of a parent that parks on this fan-out."""
    return {"open_children": sum(_is_open(c) for c in fanout.children), "sequential": fanout.sequential}


def write(connection: Connection, parent_id: str, fanout: Fanout) -> None:
    """Writes the child rows, each with what it begins with; what cannot even start is written as failed."""
    parent = connection.execute(select(runs).where(runs.c.id == parent_id)).one()
    bodies = {c.definition_digest: c.definition for c in fanout.children if c.definition is not None}
    definitions.keep(connection, bodies)
    shared = {
        "project_id": parent.project_id,
        "task_id": parent.task_id,
        "parent_id": parent_id,
        "parent_step": fanout.step,
        "depth": fanout.depth,
        "trace_parent": fanout.trace_parent,
        "attempt": 1,
        "mode": parent.mode,
        "permissions": parent.permissions,
        "approvals": parent.approvals,
        "priority": parent.priority,
    }
    opened = [child for child in fanout.children if _is_open(child)]
    ready = opened[:1] if fanout.sequential else opened
    later = opened[1:] if fanout.sequential else []
    failed = [child for child in fanout.children if not _is_open(child)]
    made = insert(runs).values(created_at=now_ms())
    for group, statement in (
        (ready, made.values(due_at=now_ms() + wakes.UNSENT_MS)),
        (later, made),
        (failed, made.values(ended_at=now_ms())),
    ):
        if group:
            rows = [shared | _row(child, parent.definition_digest, waits=group is later) for child in group]
            connection.execute(statement, rows)
    if opened:
        beginnings.write(connection, [beginnings.row(c.id, c.input, c.state, c.node_id) for c in opened])


def of_step(connection: Connection, parent_id: str, step: int) -> list[ChildRecord]:
    """The children of one fan-out, in order."""
    rows = connection.execute(_OF_STEP, {"parent": parent_id, "step": step})
    return [
        ChildRecord(
            id=row.id,
            kind=row.kind,
            position=row.position,
            agent_id=row.agent_id,
            agent_name=row.agent_name,
            definition_digest=row.definition_digest,
            item=row.item,
            status=row.status,
            result=row.result,
        )
        for row in rows
    ]


def none_open(connection: Connection, parent_id: str) -> bool:
    """Whether every child has ended; for a parent that has just parked on them again."""
    return bool(connection.execute(_OPEN, {"parent": parent_id}).scalar_one() <= 0)


def lock_parents(connection: Connection, parent_ids: Iterable[str]) -> None:
    connection.execute(_LOCK, {"ids": sorted(parent_ids)})


@dataclass(frozen=True)
class Brought:
    """What a parent takes over from a child that has ended."""

    #: The parent's step that made it.
    step: int
    cost_micro: int
    cost_incomplete: bool


def counted_down(connection: Connection, parent_id: str, gone: Sequence[Brought]) -> bool:
    """So many children less: adds their cost to the parent, lets the next of a sequence begin, queues the parent after
    the last; whether one of these became `queued`. The parent row is locked already.
    """
    values: dict[str, Any] = {"parent": parent_id, "gone": len(gone), "cost": sum(child.cost_micro for child in gone)}
    if any(child.cost_incomplete for child in gone):
        values["cost_incomplete"] = True
    counts = connection.execute(_COUNT_DOWN, values).one()
    if counts.open_children <= 0:
        return connection.execute(_QUEUE_PARENT, {"parent": parent_id}).rowcount > 0
    return bool(counts.sequential) and _next(connection, parent_id, gone[0].step)


def cancel(connection: Connection, parent_id: str, run_ids: Sequence[str]) -> list[Event]:
    """Ends these children of a run and everything below them; their workers lose the fence and stop.

    What they spent so far is the parent's, as if they had ended.
    """
    lines: list[Event] = []
    level = list(run_ids)
    while level:
        open_ones = (runs.c.id.in_(level), runs.c.status.not_in(sorted(RUN_ENDED)))
        connection.execute(select(runs.c.id).where(*open_ones).order_by(runs.c.id).with_for_update(key_share=True))
        gone = connection.execute(
            update(runs)
            .where(*open_ones)
            .values(status="cancelled", fence=runs.c.fence + 1, due_at=None, waiting_on=None, ended_at=now_ms())
            .returning(runs.c.id, runs.c.task_id, runs.c.agent_id, runs.c.cost_micro, runs.c.cost_incomplete)
        ).all()
        _pay(connection, parent_id, gone)
        lines += [Event("run.cancelled", {"reason": "its parent goes on"}, r.task_id, r.id, r.agent_id) for r in gone]
        lines += effects.give_up(connection, [r.id for r in gone])
        lines += signals.close_of_run(connection, [r.id for r in gone], cancelled=True)
        money.release(connection, [r.id for r in gone])
        below = select(runs.c.id).where(runs.c.parent_id.in_(level), runs.c.status.not_in(sorted(RUN_ENDED)))
        level = list(connection.execute(below.order_by(runs.c.id)).scalars())
    return lines


def _pay(connection: Connection, parent_id: str, gone: Sequence[Row[Any]]) -> None:
    values: dict[str, Any] = {"cost_micro": runs.c.cost_micro + sum(r.cost_micro for r in gone)}
    if any(r.cost_incomplete for r in gone):
        values["cost_incomplete"] = True
    if any(r.cost_micro or r.cost_incomplete for r in gone):
        connection.execute(update(runs).where(runs.c.id == parent_id).values(values))


def _next(connection: Connection, parent_id: str, step: int) -> bool:
    """The first child of a sequence that waits for its turn becomes `queued`; False: there is none."""
    waiting = select(func.min(runs.c.position)).where(
        runs.c.parent_id == parent_id, runs.c.parent_step == step, runs.c.waiting_on == "turn"
    )
    here = (runs.c.parent_id == parent_id) & (runs.c.parent_step == step)
    mine = update(runs).where(here, runs.c.waiting_on == "turn", runs.c.position == waiting.scalar_subquery())
    return connection.execute(mine.values(wakes.queued_soon(None))).rowcount > 0


def _is_open(child: ChildRecord) -> bool:
    return child.status not in RUN_ENDED


def _row(child: ChildRecord, parent_digest: str, *, waits: bool) -> dict[str, Any]:
    return {
        "id": child.id,
        "kind": child.kind,
        "position": child.position,
        "agent_id": child.agent_id,
        "agent_name": child.agent_name,
        "definition_digest": child.definition_digest or parent_digest,
        "node_id": child.node_id,
        "item": None if child.item is UNSET else child.item,
        "status": child.status if not waits else "waiting",
        "waiting_on": "turn" if waits else None,
        "result": child.result,
        "error": (child.result or {}).get("error"),
    }
