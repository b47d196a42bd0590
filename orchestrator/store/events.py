"""Moves of `events` and `traces`: a trace only grows, its numbers have no gaps, and no secret gets into it."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select, update

from orchestrator.records import Event
from orchestrator.store.rows import insert_all
from orchestrator.store.tables import events, traces
from registry.masking import mask_each


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


def number(connection: Connection, trace_id: str, lines: Sequence[Event]) -> int:
    """Numbers the lines, which `store` then writes; returns the last number."""
    if not lines:
        return last(connection, trace_id)
    # The one door to every trace: what looks like a secret stays outside.
    for line, data in zip(lines, mask_each([line.data for line in lines]), strict=True):
        line.data = data
    taken = update(traces).where(traces.c.id == trace_id).values(seq=traces.c.seq + len(lines)).returning(traces.c.seq)
    end = connection.execute(taken).scalar_one()
    for seq, line in enumerate(lines, end - len(lines) + 1):
        line.seq = seq
    return int(end)


def store(connection: Connection, lines: Mapping[str, Sequence[Event]]) -> None:
    """Writes numbered lines, by the traces they belong to."""
    insert_all(connection, events, [_row(trace_id, line) for trace_id, some in lines.items() for line in some])


def last(connection: Connection, trace_id: str) -> int:
    return int(connection.execute(select(traces.c.seq).where(traces.c.id == trace_id)).scalar() or 0)


def after(connection: Connection, trace_id: str, seq: int, limit: int = 1_000) -> list[Event]:
    """The lines that follow a number, in order."""
    query = select(events).where(events.c.trace_id == trace_id, events.c.seq > seq).order_by(events.c.seq).limit(limit)
    return [
        Event(r.kind, r.data, r.task_id, r.run_id, r.agent_id, r.node_id, at=r.at, seq=r.seq)
        for r in connection.execute(query)
    ]


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
