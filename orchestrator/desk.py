"""The desk in Redis: what waits for a person, where every surface finds it at once. The rows stay the truth.

One hash per owner, signal id -> card. It can be lost whole: `refresh` writes it again from the rows, and the clock does
so when it finds a difference.
"""

import logging
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

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


def key(owner_id: str) -> str:
    return f"officina:signals:{owner_id}"


def refresh(settings: Settings, owner_id: str) -> int:
    """Makes the desk show just what the rows say is open; returns how many cards were wrong or missing."""
    if settings.redis is None:
        return 0
    with get_database(settings).read() as connection:
        truth = {str(card["id"]): compact(card) for card in open_cards(connection, owner_id)}
    try:
        return _show(redis_client(settings.redis), owner_id, truth)
    except Exception as error:  # the rows stand; the clock looks again
        log.debug("the desk of %s was not told: %s", owner_id, error)
        return 0


def open_cards(connection: Connection, owner_id: str) -> list[dict[str, Json]]:
    """The owner's open signals, oldest first, as the desk shows them."""
    query = select(signals).where(signals.c.owner_id == owner_id, signals.c.status == "open")
    rows = connection.execute(query.order_by(signals.c.created_at, signals.c.id)).all()
    return [
        moves.record(row).to_json(row.run_id)
        | {
            "projectId": row.project_id,
            "taskId": row.task_id,
            "agent": row.agent_name,
            "createdAt": row.created_at,
            "expiresAt": row.expires_at,
        }
        for row in rows
    ]


def _show(redis: "Redis", owner_id: str, truth: dict[str, str]) -> int:
    shown: dict[str, str] = redis.hgetall(key(owner_id))  # type: ignore[assignment]
    gone = [name for name in shown if name not in truth]
    new = {name: card for name, card in truth.items() if shown.get(name) != card}
    if gone or new:
        pipe = redis.pipeline(transaction=False)
        if new:
            pipe.hset(key(owner_id), mapping=new)  # type: ignore[arg-type]
        if gone:
            pipe.hdel(key(owner_id), *gone)
        pipe.publish(f"{key(owner_id)}:changed", "1")
        pipe.execute()
    return len(gone) + len(new)
