"""Moves of `events` and `traces`: a trace only grows, its numbers have no gaps, and no secret gets into it."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from orchestrator.records import Event
from orchestrator.store.rows import insert_all, update_all
from orchestrator.store.sql import among, several
from orchestrator.store.tables import events, traces
from registry.masking import mask_each

_OF_TRACE = traces.c.id == bindparam("trace")
_LAST = select(traces.c.seq).where(_OF_TRACE)
_TAKE = update(traces).where(_OF_TRACE).values(seq=traces.c.seq + bindparam("many")).returning(traces.c.seq)
_LOCK = (
    select(traces.c.id, traces.c.seq)
    .where(among(traces.c.id, several("ids")))
    .order_by(traces.c.id)
    .with_for_update(key_share=True)
)
#: Lines after a number, their columns in the order of `Event`'s fields.
_AFTER = (
    select(
        *(events.c.kind, events.c.data, events.c.task_id, events.c.run_id, events.c.agent_id, events.c.node_id),
        *(events.c.at, events.c.seq),
    )
    .where(events.c.trace_id == bindparam("trace"), events.c.seq > bindparam("last"))
    .order_by(events.c.seq)
    .limit(bindparam("most"))
)


def open_trace(connection: Connection, trace_id: str) -> None:
    """Begins the trace of a new project or thread."""
    connection.execute(insert(traces).values(id=trace_id, seq=0))


def append(connection: Connection, trace_id: str, lines: Sequence[Event]) -> int:
    """Masks, numbers and stores the lines; returns the last number.

    Call it last in a transaction, before nothing but rows that need its numbers: the counter is the one row every run
    of a project shares, and it is held until the commit.
    """
    end = number(connection, trace_id, lines)
    store(connection, {trace_id: lines})
    return end


def append_all(connection: Connection, lines: Mapping[str, Sequence[Event]]) -> None:
    """The same for several traces."""
    number_all(connection, lines)
    store(connection, lines)


def number(connection: Connection, trace_id: str, lines: Sequence[Event]) -> int:
    """Numbers the lines, which `store` then writes; returns the last number."""
    if not lines:
        return last(connection, trace_id)
    # The one door to every trace: what looks like a secret stays outside.
    for line, data in zip(lines, mask_each([line.data for line in lines]), strict=True):
        line.data = data
    end = connection.execute(_TAKE, {"trace": trace_id, "many": len(lines)}).scalar_one()
    for seq, line in enumerate(lines, end - len(lines) + 1):
        line.seq = seq
    return int(end)


def number_all(connection: Connection, lines: Mapping[str, Sequence[Event]]) -> dict[str, int]:
    """The same for several traces, whose counters are locked in the order of their ids."""
    if len(lines) <= 1:
        return {trace_id: number(connection, trace_id, some) for trace_id, some in lines.items()}
    every = [line for some in lines.values() for line in some]
    for line, data in zip(every, mask_each([line.data for line in every]), strict=True):
        line.data = data
    ends: dict[str, int] = {}
    for row in connection.execute(_LOCK, {"ids": sorted(lines)}):
        for seq, line in enumerate(lines[row.id], int(row.seq) + 1):
            line.seq = seq
        ends[row.id] = int(row.seq) + len(lines[row.id])
    update_all(connection, traces, [{"id": id_, "seq": end} for id_, end in sorted(ends.items())])
    return ends


def store(connection: Connection, lines: Mapping[str, Sequence[Event]]) -> None:
    """Writes numbered lines, by the traces they belong to."""
    insert_all(connection, events, [_row(trace_id, line) for trace_id, some in lines.items() for line in some])


def last(connection: Connection, trace_id: str) -> int:
    return int(connection.execute(_LAST, {"trace": trace_id}).scalar() or 0)


def after(connection: Connection, trace_id: str, seq: int, limit: int = 1_000) -> list[Event]:
    """The lines that follow a number, in order."""
    which = {"trace": trace_id, "last": seq, "most": limit}
    return [Event(*row) for row in connection.execute(_AFTER, which).all()]


def _row(trace_id: str, line: Event) -> dict[str, Any]:
    return {
        "trace_id": trace_id,
        "seq": line.seq,
        "at": line.at,
        "kind": line.kind,
        "task_id": line.task_id,
        "run_id": line.run_id,
        "agent_id": line.agent_id,
        "node_id": line.node_id,
        "data": line.data,
    }
