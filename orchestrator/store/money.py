"""Moves of `windows` and `reservations`: what a project, a task or a tree of runs may still use.

Before a call its worst case is reserved in every window it draws on; the checkpoint that books the call settles it. A
reservation is keyed by run and call, so a call that runs again after a crash finds its own. Lock order: windows by id,
after signals and before the trace.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, and_, delete, insert, select, update

from orchestrator.records import Limit, Refusal, Usage
from orchestrator.store.sql import among, insert_or_ignore, several
from orchestrator.store.tables import reservations, windows

_RELEASE = delete(reservations).where(among(reservations.c.run_id, several("ids"))).returning(reservations)


class NoRoom(Exception):
    """Control flow: undoes the reservations a refused call made in other windows."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.window_id)
        self.refusal = refusal


def reserve(connection: Connection, run_id: str, call_key: str, limits: Sequence[Limit], micro: int) -> None:
    """Reserves the worst case of a call in every window.

    Raises:
        NoRoom: one of them is full; the caller's transaction must not commit.
    """
    insert_or_ignore(connection, windows, [{"id": w.window_id, "limit_micro": w.micro} for w in limits])
    mine = and_(reservations.c.run_id == run_id, reservations.c.call_key == call_key)
    held = set(connection.execute(select(reservations.c.window_id).where(mine)).scalars())
    for limit in sorted(limits, key=lambda w: w.window_id):
        if limit.window_id in held:
            continue
        _take(connection, limit.window_id, micro)
        row = {"run_id": run_id, "call_key": call_key, "window_id": limit.window_id, "micro": micro}
        connection.execute(insert(reservations).values(row))


def settle(connection: Connection, run_id: str, costs: Mapping[str, int]) -> None:
    """Books calls: what was reserved for each goes back, what it cost is spent."""
    for call_key, cost in sorted(costs.items()):
        mine = and_(reservations.c.run_id == run_id, reservations.c.call_key == call_key)
        held = connection.execute(delete(reservations).where(mine).returning(reservations)).all()
        for row in sorted(held, key=lambda r: r.window_id):
            connection.execute(
                update(windows)
                .where(windows.c.id == row.window_id)
                .values(
                    reserved_micro=windows.c.reserved_micro - row.micro,
                    spent_micro=windows.c.spent_micro + cost,
                )
            )


def release(connection: Connection, run_ids: Sequence[str]) -> None:
    """Gives back whatever ended runs still had reserved."""
    held = connection.execute(_RELEASE, {"ids": run_ids})
    for row in sorted(held.all(), key=lambda r: r.window_id):
        given = windows.c.reserved_micro - row.micro
        connection.execute(update(windows).where(windows.c.id == row.window_id).values(reserved_micro=given))


def draw(connection: Connection, window_ids: Sequence[str], steps: int, tokens: int, running_ms: int) -> None:
    """Counts what a run used in the windows it shares."""
    for window_id in sorted(window_ids):
        insert_or_ignore(connection, windows, [{"id": window_id, "limit_micro": None}])
        connection.execute(
            update(windows)
            .where(windows.c.id == window_id)
            .values(
                steps=windows.c.steps + steps,
                tokens=windows.c.tokens + tokens,
                running_ms=windows.c.running_ms + running_ms,
            )
        )


def extend(connection: Connection, window_id: str, micro: int) -> None:
    """Opens a new window of the same size: what is spent stays counted, and there is room again."""
    more = windows.c.spent_micro + micro
    connection.execute(update(windows).where(windows.c.id == window_id).values(limit_micro=more))


def renew(connection: Connection, window_id: str) -> None:
    """Lets a shared window begin anew."""
    fresh = {"steps": 0, "tokens": 0, "running_ms": 0}
    connection.execute(update(windows).where(windows.c.id == window_id).values(fresh))


def usage(connection: Connection, window_id: str) -> Usage:
    row = connection.execute(select(windows).where(windows.c.id == window_id)).one_or_none()
    return Usage(0, 0, 0, 0) if row is None else Usage(row.steps, row.tokens, row.running_ms, row.spent_micro)


def _take(connection: Connection, window_id: str, micro: int) -> None:
    room = windows.c.limit_micro.is_(None) | (
        windows.c.spent_micro + windows.c.reserved_micro + micro <= windows.c.limit_micro
    )
    taken = (
        update(windows).where(windows.c.id == window_id, room).values(reserved_micro=windows.c.reserved_micro + micro)
    )
    if connection.execute(taken).rowcount == 1:
        return
    row = connection.execute(select(windows).where(windows.c.id == window_id)).one()
    busy = row.spent_micro + micro <= row.limit_micro
    raise NoRoom(Refusal(window_id, row.limit_micro, row.spent_micro, busy))
