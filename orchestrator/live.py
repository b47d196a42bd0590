"""What agents say while they say it, for whoever looks on: through Redis, never stored, and free while nobody does.

A trace has the whole message a moment later. A piece that is lost, or comes to somebody who joined in the middle, is
made up for by it.
"""

import json
import logging
import threading
import time
from collections import OrderedDict
from dataclasses import asdict
from typing import Final

from orchestrator.deltas import Delta, channel, read
from orchestrator.events import redis_client
from orchestrator.settings import Settings

log = logging.getLogger(__name__)

#: Seconds for which the answer to whether somebody listens is good, and traces it is remembered of.
GOOD_S: Final = 0.5
REMEMBERED: Final = 1_000


class Live:
    """Speaks to those who listen; one per process, safe from any thread, never raises."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.redis
        self._lock = threading.Lock()
        #: When it was last looked who listens to a trace, and whether somebody did.
        self._known: OrderedDict[str, tuple[float, bool]] = OrderedDict()

    def listened(self, trace_id: str) -> bool:
        """Whether somebody listens: one question to Redis, and none where the answer is fresh."""
        if self._url is None or not trace_id:
            return False
        now = time.monotonic()
        with self._lock:
            looked, found = self._known.get(trace_id, (-GOOD_S, False))
        if now - looked < GOOD_S:
            return found
        try:
            ((_, count),) = redis_client(self._url).pubsub_numsub(channel(trace_id))
            found = int(count) > 0
        except Exception as error:
            log.debug("nobody is told live of trace %s: %s", trace_id, error)
            found = False
        with self._lock:
            self._known[trace_id] = (now, found)
            self._known.move_to_end(trace_id)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return found

    def say(self, trace_id: str, delta: Delta) -> bool:
        """Sends a piece; False when nobody was there to hear it."""
        if self._url is None:
            return False
        try:
            heard = redis_client(self._url).publish(channel(trace_id), json.dumps(asdict(delta)))
            return int(heard) > 0
        except Exception as error:
            log.debug("a piece of trace %s was not sent: %s", trace_id, error)
            return False


__all__ = ["Delta", "Live", "channel", "read"]
