"""Moves of `plugins`: what an owner installed, with the hash of every file and the grant a person wrote."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from orchestrator.store.database import now_ms
from orchestrator.store.kept import plugins


def all_of(connection: Connection, owner_id: str) -> list[Row[Any]]:
    query = select(plugins).where(plugins.c.owner_id == owner_id).order_by(plugins.c.plugin_id)
    return list(connection.execute(query))


def get(connection: Connection, owner_id: str, plugin_id: str) -> Row[Any] | None:
    """A plugin of an owner; another's is as if it were not there."""
    return connection.execute(select(plugins).where(*_mine(owner_id, plugin_id))).one_or_none()


def save(connection: Connection, owner_id: str, plugin_id: str, values: Mapping[str, Any]) -> str | None:
    """Installs it, in the place of another version; returns the digest of what was there before."""
    before = connection.execute(
        select(plugins.c.digest).where(*_mine(owner_id, plugin_id)).with_for_update()
    ).scalar_one_or_none()
    stamped = dict(values) | {"status": "enabled", "reason": None, "installed_at": now_ms()}
    if before is None:
        connection.execute(insert(plugins).values(owner_id=owner_id, plugin_id=plugin_id, **stamped))
    else:
        connection.execute(update(plugins).where(*_mine(owner_id, plugin_id)).values(**stamped))
    return before


def disable(connection: Connection, owner_id: str, plugin_id: str, reason: str, *, digest: str | None = None) -> bool:
    """Keeps it from running; False when there is none that runs.

    Args:
        digest: only where these are its files: another version may have come meanwhile.
    """
    which = [*_mine(owner_id, plugin_id), plugins.c.status == "enabled"]
    which += [plugins.c.digest == digest] if digest is not None else []
    move = update(plugins).where(*which).values(status="disabled", reason=reason)
    return connection.execute(move).rowcount == 1


def enable(connection: Connection, owner_id: str, plugin_id: str, digest: str) -> bool:
    """Lets it run again, where its files are still these."""
    which = [*_mine(owner_id, plugin_id), plugins.c.digest == digest]
    return connection.execute(update(plugins).where(*which).values(status="enabled", reason=None)).rowcount == 1


def remove(connection: Connection, owner_id: str, plugin_id: str) -> str | None:
    """Forgets it; returns the digest of its files, None when there was none."""
    row = get(connection, owner_id, plugin_id)
    if row is None:
        return None
    connection.execute(delete(plugins).where(*_mine(owner_id, plugin_id)))
    return str(row.digest)


def digests(connection: Connection) -> set[str]:
    """The digests of every owner's: folders that are in use."""
    return set(connection.execute(select(plugins.c.digest)).scalars())


def _mine(owner_id: str, plugin_id: str) -> tuple[Any, ...]:
    return plugins.c.owner_id == owner_id, plugins.c.plugin_id == plugin_id
