"""The desk in Redis: what waits for a person, where every surface finds it at once. The rows stay the truth.

One hash per owner, signal id -> card. A change touches its own cards only, so that an answer costs the same however
much else waits. The hash can be lost whole: `refresh` makes it agree with the rows again, which the clock does every
few seconds.
"""

import json
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import ColumnElement, Row, select

from orchestrator.events import redis_client
from orchestrator.settings import Settings
from orchestrator.store import signals as moves
from orchestrator.store.database import get_database
from orchestrator.store.tables import signals
from orchestrator.terminal.wording import visible
from registry import masking
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


def refresh_all(settings: Settings) -> int:
    """The same for everybody who has a desk."""
    if settings.redis is None:
        return 0
    with get_database(settings).read() as connection:
        owners = set(
            connection.execute(select(signals.c.owner_id).where(signals.c.status == "open").distinct()).scalars()
        )
    return sum(refresh(settings, owner) for owner in sorted(owners | {settings.owner}))


def pending(settings: Settings, owner_id: str) -> list[dict[str, Json]]:
    """What waits for this person, the longest waiting first: from Redis, or from the rows where Redis shows nothing.

    A desk that was lost, or never was, costs a look at the rows and is filled again on the way.
    """
    shown: list[str] = []
    if settings.redis is not None:
        try:
            shown = redis_client(settings.redis).hvals(key(owner_id))  # type: ignore[assignment]
        except Exception as error:
            _untold(owner_id, error)
    cards: list[dict[str, Json]] = [json.loads(text) for text in shown]
    if not cards:
        refresh(settings, owner_id)
        cards = [card(row) for row in _rows(settings, (signals.c.owner_id == owner_id) & (signals.c.status == "open"))]
    return sorted(cards, key=lambda one: (one["createdAt"], one["id"]))


def card(row: Row[Any]) -> dict[str, Json]:
    """A signal as the desk shows it."""
    return moves.record(row).to_json(row.run_id) | {
        "shown": shown(row),
        "projectId": row.project_id,
        "taskId": row.task_id,
        "agent": row.agent_name,
        "createdAt": row.created_at,
        "expiresAt": row.expires_at,
    }


def shown(row: Row[Any]) -> dict[str, Json]:
    """The words of a signal made fit to be seen, from the stored record alone: what draws nothing is written out.

    The input is whole but for secrets: nobody says yes to what they could not read.
    """
    action = row.action or {}
    words = {
        "title": row.title,
        "agent": row.agent_name,
        "reason": row.reason,
        "body": row.body,
        "skill": action.get("skill"),
        "input": json.dumps(masking.mask(action["input"]), ensure_ascii=False, indent=2) if action else None,
    }
    return {name: visible(str(text)) for name, text in words.items() if text is not None}


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
