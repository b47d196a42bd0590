"""Moves of `leases`: one holder at a time, and another when it falls silent."""

from sqlalchemy import Connection, or_, select, update

from orchestrator.store.database import now_ms
from orchestrator.store.house_tables import leases
from orchestrator.store.sql import insert_or_ignore


def elect(connection: Connection, name: str, holder: str, ttl_ms: int) -> bool:
    """Takes or renews a lease; False while someone else holds it."""
    insert_or_ignore(connection, leases, [{"name": name, "holder": holder, "until": 0}])
    mine = or_(leases.c.holder == holder, leases.c.until <= now_ms())
    moved = update(leases).where(leases.c.name == name, mine).values(holder=holder, until=now_ms() + ttl_ms)
    return connection.execute(moved).rowcount == 1


def resign(connection: Connection, name: str, holder: str) -> None:
    """Gives a lease back, so that another need not wait for its end."""
    connection.execute(update(leases).where(leases.c.name == name, leases.c.holder == holder).values(until=0))


def holder(connection: Connection, name: str) -> str | None:
    """Who holds a lease, or held it last; None: nobody ever did."""
    return connection.execute(select(leases.c.holder).where(leases.c.name == name)).scalar()
