"""Whether those whose streams are open may still listen: one look at the rows for all of them, while there is somebody.

A key may be revoked and a session ended while something is streamed to whoever showed it, and whoever took it away
means that nothing more is to be heard with it.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from orchestrator.keys import Who
from orchestrator.settings import Settings
from orchestrator.store import access
from orchestrator.store.database import get_database

log = logging.getLogger(__name__)

#: Seconds between looks: for about so long a stream outlives its key.
LOOK_S: Final = 2.0
#: Keys and sessions looked at in one statement.
BATCH: Final = 500


class Standing:
    """Everybody in this process to whom something is streamed."""

    def __init__(self, settings: Settings) -> None:
        self._database = get_database(settings)
        #: What to call when a key or session is of no use any more, by its row.
        self._told: dict[str, set[Callable[[], None]]] = {}
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def watch(self, who: Who, tell: Callable[[], None]) -> Iterator[None]:
        """Calls `tell`, at most once, when the key or session is of no use any more."""
        if who.pass_id is None:
            yield
            return
        self._told.setdefault(who.pass_id, set()).add(tell)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            yield
        finally:
            others = self._told.get(who.pass_id, set())
            others.discard(tell)
            if not others:
                self._told.pop(who.pass_id, None)

    async def close(self) -> None:
        """Looks no more: the process is about to end."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> None:
        while self._told:
            await asyncio.sleep(LOOK_S)
            ids = sorted(self._told)
            try:
                in_force = await asyncio.to_thread(self._in_force, ids)
            except Exception as error:  # the database is away: who may listen is known when it is back
                log.warning("keys cannot be looked at: %s", error)
                continue
            for pass_id in set(ids) - in_force:
                for tell in self._told.pop(pass_id, set()):
                    tell()

    def _in_force(self, ids: list[str]) -> set[str]:
        found: set[str] = set()
        with self._database.read() as connection:
            for start in range(0, len(ids), BATCH):
                found |= access.standing(connection, ids[start : start + BATCH])
        return found
