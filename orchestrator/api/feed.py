"""Traces as they grow, for everybody who looks on: one listener a process, one look at the rows for all of a trace.

Redis says that a trace has grown; the rows say how. Nobody is sent anything: each reader asks for what follows the
last line it has, from the lines lately read or else from the rows, so that a slow one costs a number. Where Redis is
away, or a message was lost, the number of each trace's last line is looked at, in one statement for all.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import select

from orchestrator.records import Event
from orchestrator.redis_clients import connect_async
from orchestrator.settings import Settings
from orchestrator.states import PROJECT_ENDED
from orchestrator.store import events
from orchestrator.store.database import get_database
from orchestrator.store.tables import projects, traces
from registry.jsontext import compact

log = logging.getLogger(__name__)

#: Seconds between looks at all traces that somebody follows: while Redis talks to us, and while it does not.
LOOK_S: Final = 1.0
DEAF_S: Final = 0.25
#: Lines of a trace that are kept for those who follow, and that are read at once.
KEPT: Final = 1_000
BATCH: Final = 500
#: Looks at rows that this process makes at once.
READERS: Final = 4
_PATTERN: Final = "officina:trace:*"


@dataclass(frozen=True)
class Line:
    """A line as it is sent."""

    seq: int
    text: bytes


@dataclass
class _Trace:
    """What is known of a trace while somebody follows it."""

    readers: int = 0
    #: Number of its last line that was seen; None: nobody has looked yet.
    head: int | None = None
    #: The last lines up to `head`, without gaps.
    recent: deque[Line] = field(default_factory=lambda: deque(maxlen=KEPT))
    #: Its project has ended, and `head` is its last line.
    over: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    #: Times everybody was to say that all is well.
    beats: int = 0

    def since(self, after: int) -> list[Line] | None:
        """The lines that follow a number, of those at hand; None: the rows have to be asked."""
        if self.head is None or (after < self.head and (not self.recent or self.recent[0].seq > after + 1)):
            return None
        return [line for line in self.recent if line.seq > after]

    def tell(self) -> None:
        told, self.changed = self.changed, asyncio.Event()
        told.set()


class Feed:
    """Every trace that somebody follows in this process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._beat_s = settings.api.heartbeat_s
        self._database = get_database(settings)
        self._traces: dict[str, _Trace] = {}
        self._grown: set[str] = set()
        self._woken = asyncio.Event()
        self._hears = False
        self._closed = False
        self._others = 0
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="feed")

    @property
    def readers(self) -> int:
        return self._others + sum(trace.readers for trace in self._traces.values())

    @property
    def closed(self) -> bool:
        """Whether every stream has to end."""
        return self._closed

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Counts a stream that follows something else than a trace."""
        self._others += 1
        try:
            yield
        finally:
            self._others -= 1

    async def run(self) -> None:
        """Listens and looks until it is cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._hear())
                tasks.create_task(self._watch())
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Ends every stream: the process is about to; whoever follows goes on elsewhere from the last line it has."""
        self._closed = True
        for trace in self._traces.values():
            trace.tell()

    async def follow(self, trace_id: str, after: int) -> AsyncIterator[list[Line]]:
        """The lines that follow a number, as they come; an empty list says that all is well and nothing is new.

        Ends when the trace's project has ended and all was told.
        """
        trace = self._traces.setdefault(trace_id, _Trace())
        trace.readers += 1
        if trace.head is None:  # until somebody has looked, everybody who comes asks the rows
            self._grown.add(trace_id)
            self._woken.set()
        beats = trace.beats
        try:
            while not self._closed:
                changed = trace.changed
                lines, over = trace.since(after), trace.over
                if lines is None:
                    lines, over = await self._read(trace_id, after)
                if lines:
                    after = lines[-1].seq
                    yield lines
                elif over:
                    return
                elif beats != trace.beats:
                    beats = trace.beats
                    yield []
                else:
                    await changed.wait()
        finally:
            trace.readers -= 1
            if not trace.readers:
                self._traces.pop(trace_id, None)

    async def _watch(self) -> None:
        """Looks at what is said to have grown, and now and then at everything."""
        loop = asyncio.get_running_loop()
        beat = loop.time() + self._beat_s
        while True:
            try:
                async with asyncio.timeout(LOOK_S if self._hears else DEAF_S):
                    await self._woken.wait()
                ids, self._grown = self._grown & self._traces.keys(), set()
            except TimeoutError:
                ids = set(self._traces)
            self._woken.clear()
            if loop.time() >= beat:  # one timer for everybody
                beat = loop.time() + self._beat_s
                for trace in self._traces.values():
                    trace.beats += 1
                    trace.tell()
            try:
                if ids:
                    await self._look(ids)
            except Exception as error:  # the database is away: whoever follows waits with us
                log.warning("traces cannot be looked at: %s", error)
                await asyncio.sleep(DEAF_S)

    async def _look(self, ids: set[str]) -> None:
        found = await asyncio.get_running_loop().run_in_executor(self._threads, self._heads, sorted(ids))
        await asyncio.gather(*(self._advance(trace_id, *known) for trace_id, known in found.items()))

    async def _advance(self, trace_id: str, seq: int, over: bool) -> None:
        """Takes in what a trace has grown by."""
        trace = self._traces.get(trace_id)
        if trace is None or (trace.head == seq and trace.over == over):
            return
        if trace.head is None:
            trace.head = seq  # who has just come reads what was before by himself
        while trace.head < seq:
            lines, _ = await self._read(trace_id, trace.head)
            if not lines:
                return
            trace.recent.extend(lines)
            trace.head = lines[-1].seq
        trace.over = over
        trace.tell()

    def _heads(self, ids: list[str]) -> dict[str, tuple[int, bool]]:
        """Of each trace the number of its last line, and whether its project had ended at that moment."""
        query = select(traces.c.id, traces.c.seq, projects.c.status).outerjoin(projects, projects.c.id == traces.c.id)
        found: dict[str, tuple[int, bool]] = {}
        with self._database.read() as connection:
            for start in range(0, len(ids), BATCH):
                rows = connection.execute(query.where(traces.c.id.in_(ids[start : start + BATCH])))
                found |= {row.id: (int(row.seq), row.status in PROJECT_ENDED) for row in rows}
        return found

    async def _read(self, trace_id: str, after: int) -> tuple[list[Line], bool]:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._rows, trace_id, after)

    def _rows(self, trace_id: str, after: int) -> tuple[list[Line], bool]:
        """Lines after a number; and, when there is none, whether none will come."""
        # The state first: what is read after an end was seen holds all there is.
        status = select(projects.c.status).where(projects.c.id == trace_id)
        with self._database.read() as connection:
            over = connection.execute(status).scalar() in PROJECT_ENDED
            found = events.after(connection, trace_id, after, BATCH)
        return [Line(event.seq, encoded(event, trace_id)) for event in found], over and not found

    async def _hear(self) -> None:
        """Notes what Redis says; comes back when it was away."""
        while True:
            url = self._settings.redis
            if url is not None:
                try:
                    await self._listen(url)
                except asyncio.CancelledError:
                    raise
                except Exception as error:
                    log.debug("Redis is away, the rows are looked at more often: %s", error)
            self._hears = False
            await asyncio.sleep(LOOK_S)

    async def _listen(self, url: str) -> None:
        redis = connect_async(url, socket_connect_timeout=2, health_check_interval=10)
        listener = redis.pubsub(ignore_subscribe_messages=True)
        try:
            await listener.psubscribe(_PATTERN)
            self._hears = True
            self._grown |= self._traces.keys()  # whatever was said while nobody heard
            self._woken.set()
            while True:
                message = await listener.get_message(timeout=5)
                if message is not None:
                    self._grown.add(message["channel"].decode().rpartition(":")[2])
                    self._woken.set()
        finally:
            with suppress(Exception):
                await listener.aclose()  # type: ignore[no-untyped-call]
                await redis.aclose()


def encoded(event: Event, trace_id: str) -> bytes:
    """A line as a server-sent event: its number is the id a client comes back with."""
    from fastapi.sse import format_sse_event

    value = event.to_json(trace_id)
    try:
        return format_sse_event(data_str=compact(value), id=str(event.seq))
    except UnicodeEncodeError:  # half a character in what a model or page said
        import json

        return format_sse_event(data_str=json.dumps(value, separators=(",", ":"), allow_nan=False), id=str(event.seq))
