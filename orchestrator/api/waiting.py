"""Requests that wait for calls that workers make: one look at the rows for all of them, while somebody waits."""

import asyncio
import logging
from typing import Final

from orchestrator.settings import Settings
from orchestrator.store import requests
from orchestrator.store.database import get_database

log = logging.getLogger(__name__)

#: Seconds between looks: soon at first, seldomer for what takes long.
SOON_S, SELDOM_S = 0.03, 0.3
_GROWTH: Final = 1.2


class Waiting:
    """Everybody in this process who waits for a call."""

    def __init__(self, settings: Settings) -> None:
        self._database = get_database(settings)
        self._waited: dict[str, asyncio.Event] = {}
        self._looking: asyncio.Task[None] | None = None
        self._pause = SOON_S
        self._closed = False

    async def over(self, request_id: str, seconds: float) -> bool:
        """Waits until a call is over; False when it is not within the time, or this process is about to end."""
        if self._closed or seconds <= 0:
            return False
        told = self._waited.setdefault(request_id, asyncio.Event())
        self._pause = SOON_S
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            async with asyncio.timeout(seconds):
                await told.wait()
        except TimeoutError:
            return False
        finally:
            self._waited.pop(request_id, None)
        return not self._closed

    def close(self) -> None:
        """Lets everybody go who waits: the calls go on, and can be asked about elsewhere."""
        self._closed = True
        for told in self._waited.values():
            told.set()

    async def _look(self) -> None:
        while self._waited and not self._closed:
            await asyncio.sleep(self._pause)
            self._pause = min(self._pause * _GROWTH, SELDOM_S)
            try:
                done = await asyncio.to_thread(self._done, list(self._waited))
            except Exception as error:  # the database is away: whoever waits waits with us
                log.warning("calls cannot be looked at: %s", error)
                continue
            for request_id in done:
                if (told := self._waited.get(request_id)) is not None:
                    told.set()

    def _done(self, ids: list[str]) -> list[str]:
        with self._database.read() as connection:
            return requests.done(connection, ids)
