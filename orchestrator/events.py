"""Following a trace live: Redis says that something is new, the rows say what.

Publishing is best effort and carries numbers only; a follower that misses a message finds the lines at its next look.
"""

import logging
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from orchestrator.deltas import LIVE
from orchestrator.records import Event
from orchestrator.redis_clients import connect
from orchestrator.settings import Settings
from orchestrator.store import events
from orchestrator.store.database import get_database

if TYPE_CHECKING:
    from redis import Redis

log = logging.getLogger(__name__)

#: Seconds between looks at the rows when Redis says nothing.
LOOK_S = 1.0


@lru_cache(maxsize=8)
def redis_client(url: str) -> "Redis":
    """A client of this process that answers soon or not at all."""
    return connect(url, socket_timeout=2, socket_connect_timeout=2, decode_responses=True)


def channel(trace_id: str) -> str:
    return f"officina:trace:{trace_id}"


def publish(settings: Settings, trace_id: str, seq: int) -> None:
    """Tells followers that the trace has grown."""
    if settings.redis is None:
        return
    try:
        redis_client(settings.redis).publish(channel(trace_id), seq)
    except Exception as error:
        log.debug("trace %s not published: %s", trace_id, error)


def follow(
    settings: Settings,
    trace_id: str,
    after: int,
    stop: Callable[[], bool],
    hear: Callable[[str], None] | None = None,
) -> Iterator[list[Event]]:
    """Yields new lines in order until `stop` says so; an empty list is a heartbeat, once a second.

    Args:
        hear: takes what agents say while they say it (`orchestrator.live`), as it was sent.
    """
    database = get_database(settings)
    listener = _listen(settings, trace_id, live=hear is not None)
    try:
        while not stop():
            with database.read() as connection:
                lines = events.after(connection, trace_id, after)
            if lines:
                after = lines[-1].seq
            yield lines
            if not lines:
                listener = _wait(listener, hear)
    finally:
        if listener is not None:
            listener.close()


def _listen(settings: Settings, trace_id: str, *, live: bool) -> Any:
    if settings.redis is None:
        return None
    try:
        listener: Any = redis_client(settings.redis).pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
        listener.subscribe(channel(trace_id), *([LIVE + trace_id] if live else []))
    except Exception as error:
        log.debug("following trace %s without Redis: %s", trace_id, error)
        return None
    return listener


def _wait(listener: Any, hear: Callable[[str], None] | None) -> Any:
    """Waits for a message or the next look; gives up on a Redis that went away."""
    if listener is None:
        time.sleep(LOOK_S / 4)
        return None
    try:
        until = time.monotonic() + LOOK_S
        while time.monotonic() < until:
            message = listener.get_message(timeout=LOOK_S)
            if message and hear is not None and message["channel"].startswith(LIVE):
                hear(message["data"])
            elif message:
                break
    except Exception:
        return None
    return listener
