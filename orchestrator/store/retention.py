"""What is kept beside runs and has come to the end of its time: memories that expire, what was said, old plans.

How many rows somebody may have is seen to where rows are written.
"""

from sqlalchemy import Connection, delete, select

from orchestrator.store import passages
from orchestrator.store.database import now_ms
from orchestrator.store.kept import memories
from orchestrator.store.memories import DAY_MS
from orchestrator.store.notebook_tables import agendas


def forget(connection: Connection, recall_days: int, agenda_days: int, limit: int) -> int:
    """Deletes at most so many rows of a kind; the most it deleted of one."""
    now = int(connection.execute(select(now_ms())).scalar_one())
    expired = select(memories.c.id).where(memories.c.expires_at <= now).limit(limit).scalar_subquery()
    stale = select(agendas.c.id).where(agendas.c.updated_at < now - agenda_days * DAY_MS).limit(limit).scalar_subquery()
    return max(
        connection.execute(delete(memories).where(memories.c.id.in_(expired))).rowcount,
        connection.execute(delete(agendas).where(agendas.c.id.in_(stale))).rowcount,
        passages.forget_said(connection, now - recall_days * DAY_MS, limit),
    )
