"""Tables and moves of webhooks: who may start what from outside, and which deliveries were taken."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    Index,
    Row,
    Table,
    Text,
    UniqueConstraint,
    delete,
    func,
    insert,
    select,
    update,
)

from orchestrator.store import columns
from orchestrator.store.database import now_ms
from orchestrator.store.tables import metadata
from orchestrator.store.thread_tables import triggers

webhooks = Table(
    "webhooks",
    metadata,
    columns.key(),
    Column("owner_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    #: active, paused, failed
    Column("status", Text, nullable=False),
    Column("reason", Text),
    #: Said where a delivery brings no text; of one that starts projects: what to do with what arrives.
    Column("detail", Text, nullable=False),
    #: Who it speaks to; None: it starts projects.
    Column("agent_id", Text),
    Column("thread_id", Text),
    #: {kind: brief} | {kind: generator, generatorId}; None: it speaks in a thread.
    Column("action", columns.JsonText),
    Column("mode", Text, nullable=False),
    #: {agentId, mode, permissions, gates} of the run that made it.
    Column("maker", columns.JsonText),
    #: Encrypted; `shown_at`: a person has seen it, and it is not shown again.
    Column("secret", Text, nullable=False),
    columns.time("shown_at"),
    Column("call_key", Text),
    columns.time("created_at", nullable=False),
    columns.time("updated_at", nullable=False),
    columns.time("last_fired_at"),
    UniqueConstraint("call_key"),
    Index("ix_webhooks_owner_id", "owner_id"),
)

#: What was taken: each signature once, and each id a sender gave once within a day.
deliveries = Table(
    "deliveries",
    metadata,
    Column("hook_id", Text, ForeignKey("webhooks.id", ondelete="CASCADE"), primary_key=True),
    #: `id:...` as the sender said, `signature:...`
    Column("key", Text, primary_key=True),
    Column("at", BigInteger, nullable=False),
    #: What it began; None: it waits in the queue of its thread.
    Column("run_id", Text),
    Column("project_id", Text),
    Index("ix_deliveries_hook_id_at", "hook_id", "at"),
)


def get(connection: Connection, hook_id: str, owner_id: str | None = None) -> Row[Any] | None:
    """A webhook, of an owner where one is given."""
    query = select(webhooks).where(webhooks.c.id == hook_id)
    if owner_id is not None:
        query = query.where(webhooks.c.owner_id == owner_id)
    return connection.execute(query).one_or_none()


def lock(connection: Connection, hook_id: str) -> Row[Any] | None:
    """The same, held against other deliveries until the transaction ends."""
    connection.execute(update(webhooks).where(webhooks.c.id == hook_id).values(updated_at=webhooks.c.updated_at))
    return get(connection, hook_id)


def of_owner(connection: Connection, owner_id: str) -> list[Row[Any]]:
    """All an owner has, the eldest first."""
    query = select(webhooks).where(webhooks.c.owner_id == owner_id)
    return list(connection.execute(query.order_by(webhooks.c.created_at, webhooks.c.id)))


def of_call(connection: Connection, call_key: str | None) -> str | None:
    """The webhook this very call made before."""
    if call_key is None:
        return None
    return connection.execute(select(webhooks.c.id).where(webhooks.c.call_key == call_key)).scalar()


def create(connection: Connection, row: Mapping[str, Any]) -> None:
    connection.execute(insert(webhooks).values(dict(row) | {"created_at": now_ms(), "updated_at": now_ms()}))


def change(connection: Connection, hook_id: str, values: Mapping[str, Any]) -> None:
    connection.execute(update(webhooks).where(webhooks.c.id == hook_id).values(dict(values) | {"updated_at": now_ms()}))


def show_once(connection: Connection, owner_id: str, hook_id: str) -> str | None:
    """The encrypted secret, for the one time somebody looks at it; None: it was shown, or there is none."""
    mine = (webhooks.c.id == hook_id) & (webhooks.c.owner_id == owner_id) & webhooks.c.shown_at.is_(None)
    shown = update(webhooks).where(mine).values(shown_at=now_ms()).returning(webhooks.c.secret)
    return connection.execute(shown).scalar()


def remove(connection: Connection, owner_id: str, hook_id: str) -> bool:
    """Deletes a webhook with what it has in queues; what it started stays. False: it was gone."""
    mine = (webhooks.c.id == hook_id) & (webhooks.c.owner_id == owner_id)
    if connection.execute(delete(webhooks).where(mine)).rowcount != 1:
        return False
    connection.execute(delete(triggers).where(triggers.c.source_id == hook_id))
    return True


def taken(connection: Connection, hook_id: str, key: str) -> Row[Any] | None:
    """The delivery of this key."""
    query = select(deliveries).where(deliveries.c.hook_id == hook_id, deliveries.c.key == key)
    return connection.execute(query).one_or_none()


def recent(connection: Connection, hook_id: str, since: int) -> int:
    """Deliveries taken since a moment; each has one signature."""
    query = select(func.count()).where(
        deliveries.c.hook_id == hook_id, deliveries.c.at > since, deliveries.c.key.like("signature:%")
    )
    return int(connection.execute(query).scalar_one())


def forget(connection: Connection, hook_id: str, before: int) -> None:
    """Lets go of deliveries that cannot come again."""
    connection.execute(delete(deliveries).where(deliveries.c.hook_id == hook_id, deliveries.c.at < before))


def take(
    connection: Connection, hook_id: str, keys: list[str], at: int, *, run_id: str | None, project_id: str | None
) -> None:
    rows = [{"hook_id": hook_id, "key": key, "at": at, "run_id": run_id, "project_id": project_id} for key in keys]
    connection.execute(insert(deliveries), rows)
    connection.execute(update(webhooks).where(webhooks.c.id == hook_id).values(last_fired_at=at))
