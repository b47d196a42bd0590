"""Moves of `api_keys` and `sessions`: who may come in, found by the digest of what they show."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, Text, bindparam, delete, false, func, insert, or_, select, update

from orchestrator.store.database import now_ms
from orchestrator.store.kept import api_keys, sessions
from orchestrator.store.sql import take_turns

#: Milliseconds between two notes of a key's use: a row that is read at each request need not be written at each.
_NOTED_MS = 60_000


# Every request sends one of the next two: written once for each number of digests (as many as the installation has
# keys), where a list of values would be written into the statement anew each time.


@cache
def _key(many: int) -> Any:
    k = api_keys.c
    return select(
        *(k.id, k.owner_id, k.name, k.scopes, k.expires_at),
        or_(k.last_used_at.is_(None), k.last_used_at < now_ms() - _NOTED_MS).label("unnoted"),
        func.coalesce(k.expires_at <= now_ms(), false()).label("expired"),
    ).where(k.digest.in_(_places(many)), k.revoked_at.is_(None))


@cache
def _session(many: int) -> Any:
    s = sessions.c
    in_force = (s.kind == "session", s.expires_at > now_ms())
    return select(s.id, s.owner_id, s.expires_at).where(s.digest.in_(_places(many)), *in_force)


def _places(many: int) -> list[Any]:
    return [bindparam(f"digest_{number}", type_=Text) for number in range(many)]


def _placed(digests: Sequence[str]) -> dict[str, str]:
    return {f"digest_{number}": digest for number, digest in enumerate(digests)}


def create_key(connection: Connection, row: Mapping[str, Any]) -> None:
    connection.execute(insert(api_keys).values(dict(row) | {"created_at": now_ms()}))


def keys_of(connection: Connection, owner_id: str) -> list[Row[Any]]:
    """The owner's keys, revoked ones included, the oldest first."""
    query = select(api_keys).where(api_keys.c.owner_id == owner_id)
    return list(connection.execute(query.order_by(api_keys.c.created_at, api_keys.c.id)))


def key_by_digest(connection: Connection, digests: Sequence[str]) -> Row[Any] | None:
    """The key with one of these digests, unless it was revoked: whether it has expired, and whether its use should be
    noted."""
    found: Row[Any] | None = connection.execute(_key(len(digests)), _placed(digests)).first()
    return found


def in_force(connection: Connection, owner_id: str) -> int:
    """The owner's keys that are neither revoked nor expired; whoever is about to make one waits for others who do."""
    take_turns(connection, f"keys {owner_id}")
    lasting = or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > now_ms())
    mine = (api_keys.c.owner_id == owner_id) & api_keys.c.revoked_at.is_(None) & lasting
    return int(connection.execute(select(func.count()).where(mine)).scalar_one())


def note_use(connection: Connection, key_id: str) -> None:
    connection.execute(update(api_keys).where(api_keys.c.id == key_id).values(last_used_at=now_ms()))


def revoke(connection: Connection, owner_id: str, key_id: str) -> bool:
    """False when the owner has no such key in force."""
    mine = (api_keys.c.owner_id == owner_id) & (api_keys.c.id == key_id) & api_keys.c.revoked_at.is_(None)
    return connection.execute(update(api_keys).where(mine).values(revoked_at=now_ms())).rowcount == 1


def open_session(connection: Connection, row: Mapping[str, Any], life_ms: int) -> None:
    """Writes a session or a one-time code, and clears away what is past its time."""
    connection.execute(delete(sessions).where(sessions.c.expires_at <= now_ms()))
    times = {"created_at": now_ms(), "expires_at": now_ms() + life_ms}
    connection.execute(insert(sessions).values(dict(row) | times))


def session_by_digest(connection: Connection, digests: Sequence[str]) -> Row[Any] | None:
    found: Row[Any] | None = connection.execute(_session(len(digests)), _placed(digests)).first()
    return found


def redeem(connection: Connection, digests: Sequence[str]) -> str | None:
    """Uses a one-time code up; gives whose it was, or None when there is none (any more)."""
    taken = delete(sessions).where(
        sessions.c.digest.in_(digests), sessions.c.kind == "code", sessions.c.expires_at > now_ms()
    )
    owner = connection.execute(taken.returning(sessions.c.owner_id)).scalar()
    return None if owner is None else str(owner)


def standing(connection: Connection, ids: Sequence[str]) -> set[str]:
    """Those of these keys and sessions that are in force: neither taken away nor past their time."""
    lasting = or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > now_ms())
    of_programs = select(api_keys.c.id).where(api_keys.c.id.in_(ids), api_keys.c.revoked_at.is_(None), lasting)
    of_people = select(sessions.c.id).where(
        sessions.c.id.in_(ids), sessions.c.kind == "session", sessions.c.expires_at > now_ms()
    )
    return set(connection.execute(of_programs.union_all(of_people)).scalars())


def close_session(connection: Connection, digests: Sequence[str]) -> list[tuple[str, str]]:
    """Forgets a session; returns its id and whose it was, as there is one of the digests or none."""
    gone = delete(sessions).where(sessions.c.digest.in_(digests)).returning(sessions.c.id, sessions.c.owner_id)
    return [(row.id, row.owner_id) for row in connection.execute(gone)]
