"""What agents say while they say it, for streams that ask for it: pieces without a number, which nobody stores.

A trace is listened to only while somebody here follows it so: whoever speaks to nobody sends nothing. A stream that is
slow, or comes in the middle, misses pieces; the message in the trace makes up for them.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from orchestrator import deltas
from orchestrator.redis_clients import connect_async
from orchestrator.settings import Settings

log = logging.getLogger(__name__)

#: Name of such an event in a stream: clients that know only lines pass over it.
EVENT: Final = "live"
#: Pieces kept for a stream that is slower than an agent speaks.
KEPT: Final = 500
#: Seconds until a trace somebody begins to follow is listened to, and until Redis is tried again.
TURN_S, AWAY_S = 0.1, 2.0


@dataclass
class Pieces:
    """What one stream has not sent yet, the oldest first."""

    waiting: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT))
    came: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, piece: str) -> None:
        self.waiting.append(piece)
        self.came.set()

    async def take(self) -> list[str]:
        """Waits for some."""
        await self.came.wait()
        self.came.clear()
        taken = list(self.waiting)
        self.waiting.clear()
        return taken


class Overhearing:
    """All traces that somebody in this process listens to."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.redis
        self._ears: dict[str, list[Pieces]] = {}
        self._wanted = asyncio.Event()

    @contextmanager
    def of(self, trace_id: str) -> Iterator[Pieces]:
        """What is said in a trace from now on."""
        mine = Pieces()
        self._ears.setdefault(trace_id, []).append(mine)
        self._wanted.set()
        try:
            yield mine
        finally:
            self._ears[trace_id].remove(mine)
            if not self._ears[trace_id]:
                del self._ears[trace_id]

    async def run(self) -> None:
        """Listens until it is cancelled."""
        while self._url is not None:
            await self._wanted.wait()
            try:
                await self._listen(self._url)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                log.debug("nothing is overheard, Redis is away: %s", error)
                await asyncio.sleep(AWAY_S)

    async def _listen(self, url: str) -> None:
        """Until nobody listens to anything."""
        redis = connect_async(url, socket_connect_timeout=2, health_check_interval=10, decode_responses=True)
        listener: Any = redis.pubsub(ignore_subscribe_messages=True)
        heard = set[str]()
        try:
            while self._ears:
                wanted = set(self._ears)
                if fresh := wanted - heard:
                    await listener.subscribe(*map(deltas.channel, fresh))
                if over := heard - wanted:
                    await listener.unsubscribe(*map(deltas.channel, over))
                heard = wanted
                message = await listener.get_message(timeout=TURN_S)
                if message is not None:
                    self._tell(message["channel"].removeprefix(deltas.LIVE), message["data"])
            self._wanted.clear()
        finally:
            with suppress(Exception):
                await listener.aclose()
                await redis.aclose()

    def _tell(self, trace_id: str, said: str) -> None:
        piece = deltas.read(said)
        if piece is None:
            return
        text = json.dumps(piece.to_json(), separators=(",", ":"))
        for ear in self._ears.get(trace_id, ()):
            ear.put(text)
