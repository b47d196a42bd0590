"""The history of a thread: the messages of its runs, one run after the other. Nothing of it is ever written twice.

A run knows the number of the run its history begins with; what was said from there on is read when the run is loaded,
with one query, and by nobody else. So a message costs the same in the thousandth run of a thread as in its first, and
a run that begins with an empty history, or with that of the last few, is a number that differs.
"""

from typing import Any, cast

from sqlalchemy import Connection, Row, func, literal, select, tuple_

from orchestrator.records import MessageRecord
from orchestrator.store.tables import messages, runs
from orchestrator.store.thread_tables import thread_runs
from registry.base import Json

#: `kind` of a message that sums up those before it.
SUMMARY = "compaction"


def before(connection: Connection, run_id: str) -> list[MessageRecord]:
    """The messages a run of a thread carries on, oldest first."""
    mine = _place(connection, run_id)
    query = (
        select(
            *(messages.c.number, messages.c.history, messages.c.body),
            thread_runs.c.number.label("run_number"),
            thread_runs.c.history_from,
        )
        .join(thread_runs, thread_runs.c.run_id == messages.c.run_id)
        .where(
            thread_runs.c.thread_id == mine.thread_id,
            thread_runs.c.number >= mine.history_from,
            thread_runs.c.number < mine.number,
        )
        .order_by(thread_runs.c.number, messages.c.number)
    )
    found = [] if mine.history_from == mine.number else cast("list[Row[Any]]", connection.execute(query).all())
    return [MessageRecord(row.number, row.history, _fitted(connection, mine, row)) for row in found]


def page(
    connection: Connection, thread_id: str, limit: int, after: tuple[int, int] | None, *, latest: bool = False
) -> list[Row[Any]]:
    """What was said in a thread, oldest first: those that follow a run and a message of it, or the last ones."""
    place = (thread_runs.c.number, messages.c.number)
    query = (
        select(*(messages.c.number, messages.c.run_id, messages.c.body), thread_runs.c.number.label("run_number"))
        .join(thread_runs, thread_runs.c.run_id == messages.c.run_id)
        .where(thread_runs.c.thread_id == thread_id)
        .limit(limit)
    )
    if latest:
        found = connection.execute(query.order_by(*(column.desc() for column in place))).all()
        return list[Any](found)[::-1]
    if after is not None:
        query = query.where(tuple_(*place) > tuple_(literal(after[0]), literal(after[1])))
    return list[Any](connection.execute(query.order_by(*place)).all())


def left_by(connection: Connection, run_id: str) -> str | None:
    """The latest run before this one that has left a state."""
    mine = _place(connection, run_id)
    query = (
        select(runs.c.id)
        .join(thread_runs, thread_runs.c.run_id == runs.c.id)
        .where(thread_runs.c.thread_id == mine.thread_id, thread_runs.c.number < mine.number, runs.c.checkpoint > 0)
        .order_by(thread_runs.c.number.desc())
        .limit(1)
    )
    return connection.execute(query).scalar()


def _place(connection: Connection, run_id: str) -> Row[Any]:
    return connection.execute(select(thread_runs).where(thread_runs.c.run_id == run_id)).one()


def _fitted(connection: Connection, mine: Row[Any], row: Row[Any]) -> dict[str, Json]:
    """A message as it reads in this history. A summary names how many messages it covers by their places in the history
    of its own run; where that began elsewhere, the places are others here.

    One that knew less than this history holds is no summary of it, and what it covered is read again.
    """
    until = row.body.get("coveredUntil")
    if row.body.get("kind") != SUMMARY or row.history_from == mine.history_from or type(until) is not int:
        return dict(row.body)
    if row.history_from > mine.history_from:
        return {key: value for key, value in row.body.items() if key not in ("coveredFrom", "coveredUntil")}
    skipped = (
        select(func.count())
        .join(thread_runs, thread_runs.c.run_id == messages.c.run_id)
        .where(
            thread_runs.c.thread_id == mine.thread_id,
            thread_runs.c.number >= row.history_from,
            thread_runs.c.number < mine.history_from,
            messages.c.history == row.history,
        )
    )
    return dict(row.body) | {"coveredUntil": max(0, until - int(connection.execute(skipped).scalar_one()))}
