"""Moves around what was said in runs that have ended: which are not looked through yet, and their messages.

Nothing is indexed while a run works, nor when it ends: an agent that looks back brings the index up to date first. So
a step costs what it did, and agents that never look back cost nothing.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, exists, func, select

from orchestrator.store.database import now_ms
from orchestrator.store.notebook_tables import recalled_runs
from orchestrator.store.sql import insert_or_ignore
from orchestrator.store.tables import agents, messages, projects, runs
from orchestrator.store.thread_tables import thread_runs

#: Kinds of runs in which an agent works for itself, not on one item of many.
KINDS = ("root", "spawn")


def unseen(
    connection: Connection,
    owner_id: str,
    agent_id: str,
    *,
    project_id: str | None,
    threads_only: bool,
    since_ms: int,
    limit: int,
) -> list[Row[Any]]:
    """Ended runs of an agent whose messages are not among the passages yet, the latest first: id, thread, end.

    Args:
        project_id: only those of this project.
        threads_only: only those of threads that have no agent of their own by this id.
    """
    own = exists().where(agents.c.project_id == runs.c.project_id, agents.c.key == agent_id)
    query = (
        select(runs.c.id, runs.c.ended_at, thread_runs.c.thread_id, thread_runs.c.number)
        .join(projects, projects.c.id == runs.c.project_id)
        .outerjoin(thread_runs, thread_runs.c.run_id == runs.c.id)
        .where(
            runs.c.agent_id == agent_id,
            runs.c.ended_at.is_not(None),
            runs.c.ended_at >= since_ms,
            runs.c.kind.in_(KINDS),
            projects.c.owner_id == owner_id,
            ~exists().where(recalled_runs.c.run_id == runs.c.id),
        )
        .order_by(runs.c.ended_at.desc(), runs.c.id)
    )
    if project_id is not None:
        query = query.where(runs.c.project_id == project_id)
    if threads_only:
        query = query.where(projects.c.kind == "thread", ~own)
    return list(connection.execute(query.limit(limit)))


def take(connection: Connection, run_ids: Sequence[str]) -> None:
    """Notes that these runs are looked through."""
    insert_or_ignore(connection, recalled_runs, [{"run_id": id_} for id_ in run_ids], at=now_ms())


def said(connection: Connection, run_id: str) -> list[Row[Any]]:
    """The messages of a run in order."""
    query = select(messages.c.number, messages.c.history, messages.c.body).where(messages.c.run_id == run_id)
    return list(connection.execute(query.order_by(messages.c.number)))


def before(connection: Connection, thread_id: str, number: int) -> int:
    """How many messages a thread had before its run of this number."""
    query = (
        select(func.count())
        .select_from(messages.join(thread_runs, thread_runs.c.run_id == messages.c.run_id))
        .where(thread_runs.c.thread_id == thread_id, thread_runs.c.number < number)
    )
    return int(connection.execute(query).scalar_one())


def place(connection: Connection, run_id: str) -> Row[Any] | None:
    """Which run of which thread it is; None: of none."""
    return connection.execute(select(thread_runs).where(thread_runs.c.run_id == run_id)).one_or_none()
