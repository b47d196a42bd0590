"""Moves of `events` and `traces`: a trace only grows, its numbers have no gaps, and no secret gets into it."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select, update

from orchestrator.records import Event
from orchestrator.store.rows import insert_all, update_all
from orchestrator.store.sql import among
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
    taken = update(traces).where(traces.c.id == trace_id).values(seq=traces.c.seq + len(lines)).returning(traces.c.seq)
    end = connection.execute(taken).scalar_one()
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
    locked = select(traces.c.id, traces.c.seq).where(among(traces.c.id, sorted(lines))).order_by(traces.c.id)
    ends: dict[str, int] = {}
    for row in connection.execute(locked.with_for_update(key_share=True)):
        for seq, line in enumerate(lines[row.id], int(row.seq) + 1):
            line.seq = seq
        ends[row.id] = int(row.seq) + len(lines[row.id])
    update_all(connection, traces, [{"id": id_, "seq": end} for id_, end in sorted(ends.items())])
    return ends


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
