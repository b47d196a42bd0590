"""The desk in Redis: what waits for a person, where every surface finds it at once. The rows stay the truth.

One hash per owner, signal id -> card. A change touches its own cards only, so that an answer costs the same however
much else waits. The hash can be lost whole: `refresh` makes it agree with the rows again, which the clock does every
few seconds.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import ColumnElement, Row, select

from orchestrator.events import redis_client
from orchestrator.settings import Settings
from orchestrator.store import signals as moves
from orchestrator.store.database import get_database
from orchestrator.store.tables import signals
from registry.base import Json
from registry.jsontext import compact

if TYPE_CHECKING:
    from redis import Redis

log = logging.getLogger(__name__)

#: Cards read and written at once when many are missing.
BATCH: Final = 500


def key(owner_id: str) -> str:
    return f"officina:signals:{owner_id}"


def changed(settings: Settings, owner_id: str, signal_ids: Sequence[str]) -> None:
    """Shows these signals if they are open, and takes them away if they are not."""
    if signal_ids:
        _update(settings, owner_id, signals.c.id.in_(signal_ids))


def run_ended(settings: Settings, owner_id: str, run_id: str) -> None:
    """Takes away what a run that has ended asked; what outlives it stays."""
    _update(settings, owner_id, signals.c.run_id == run_id)


def refresh(settings: Settings, owner_id: str) -> int:
    """Makes the desk show just what the rows say is open; returns how many cards were wrong or missing.

    A card never changes while its signal is open, so ids are all that has to be compared.
    """
    if settings.redis is None:
        return 0
    query = select(signals.c.id).where(signals.c.owner_id == owner_id, signals.c.status == "open")
    with get_database(settings).read() as connection:
        truth = set(connection.execute(query).scalars())
    try:
        redis = redis_client(settings.redis)
        shown: set[str] = set(redis.hkeys(key(owner_id)))  # type: ignore[arg-type]
        missing, gone = sorted(truth - shown), sorted(shown - truth)
        for start in range(0, len(missing), BATCH):
            rows = _rows(settings, signals.c.id.in_(missing[start : start + BATCH]))
            _write(redis, owner_id, [row for row in rows if row.status == "open"], ())
        _write(redis, owner_id, (), gone)
    except Exception as error:  # the rows stand; the clock looks again
        _untold(owner_id, error)
        return 0
    return len(missing) + len(gone)


def card(row: Row[Any]) -> dict[str, Json]:
    """A signal as the desk shows it."""
    return moves.record(row).to_json(row.run_id) | {
        "projectId": row.project_id,
        "taskId": row.task_id,
        "agent": row.agent_name,
        "createdAt": row.created_at,
        "expiresAt": row.expires_at,
    }


def _update(settings: Settings, owner_id: str, which: ColumnElement[bool]) -> None:
    if settings.redis is None:
        return
    rows = _rows(settings, which)
    try:
        still = [row for row in rows if row.status == "open"]
        _write(redis_client(settings.redis), owner_id, still, [row.id for row in rows if row.status != "open"])
    except Exception as error:
        _untold(owner_id, error)


def _rows(settings: Settings, which: ColumnElement[bool]) -> list[Row[Any]]:
    with get_database(settings).read() as connection:
        return list(connection.execute(select(signals).where(which)).all())


def _write(redis: "Redis", owner_id: str, still: Iterable[Row[Any]], gone: Sequence[str]) -> None:
    """Puts cards there and takes others away, and tells whoever looks at the desk."""
    cards = {str(row.id): compact(card(row)) for row in still}
    if not cards and not gone:
        return
    pipe = redis.pipeline(transaction=False)
    if cards:
        pipe.hset(key(owner_id), mapping=cards)  # type: ignore[arg-type]
    if gone:
        pipe.hdel(key(owner_id), *gone)
    pipe.publish(f"{key(owner_id)}:changed", "1")
    pipe.execute()


def _untold(owner_id: str, error: Exception) -> None:
    log.debug("the desk of %s was not told: %s", owner_id, error)
