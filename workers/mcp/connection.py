"""One server and this worker's line to it: started when it is wanted, listed, asked, ended when nobody asks any more.

Everything here runs on the event loop of `servers.py`; a line is one task, which opens what it closes.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any, Final, TypeVar

import mcp_types as types
from mcp import ClientSession
from mcp.shared.exceptions import MCPError

from registry.mcp import Server
from workers.mcp import http
from workers.mcp.stdio import Program
from workers.net.guard import Guard

#: Pages and tools that are read of one server.
MAX_PAGES: Final = 32
MAX_TOOLS: Final = 512
#: Seconds in which a server that did not start is not tried again.
REST_S: Final = 15.0
#: Seconds the end of a line may take.
_END_S: Final = 15.0

R = TypeVar("R")


class ServerDown(Exception):
    """The server did not start, or it ended; the message says why."""


class ServerSaid(Exception):
    """The server answered with a fault of the request."""


class Line:
    """The line to one server, as it is configured."""

    def __init__(self, server: Server, guard: Guard, *, start_s: float) -> None:
        #: As it is written, with its references to the environment.
        self.server = server
        self.used_at = time.monotonic()
        self._guard = guard
        self._start_s = start_s
        self._opening = asyncio.Lock()
        self._session: ClientSession | None = None
        self._task: asyncio.Task[None] | None = None
        self._program: Program | None = None
        self._stop = asyncio.Event()
        self._listed: list[types.Tool] | None = None
        self._failed: tuple[float, str] | None = None
        self._busy = 0

    @property
    def idle_s(self) -> float:
        """Seconds since anybody used it."""
        return 0.0 if self._busy else time.monotonic() - self.used_at

    @property
    def is_open(self) -> bool:
        return self._session is not None

    async def tools(self) -> list[types.Tool]:
        """What the server offers; asked again when it has said that this changed.

        Raises:
            ServerDown: it does not run; ServerSaid: it cannot list them.
        """
        with self._in_use():
            session = await self._open()
            if self._listed is None:
                self._listed = await self._list(session)
            return self._listed

    async def ask(self, request: Any, kind: type[R], seconds: float) -> R:
        """One request; a server that is not there is started first.

        Raises:
            ServerDown: it does not start, or ended before it answered.
            ServerSaid: it answers with a fault.
            TimeoutError: no answer in time.
        """
        with self._in_use():
            return await self._ask(await self._open(), request, kind, seconds)

    async def close(self) -> None:
        """Ends the line and the server with it."""
        self._stop.set()
        task, self._session, self._listed = self._task, None, None
        if task is not None and not task.done():
            done, _ = await asyncio.wait([task], timeout=_END_S)
            if not done:
                task.cancel()

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self.used_at = time.monotonic()

    async def _open(self) -> ClientSession:
        async with self._opening:
            if self._session is not None:
                return self._session
            if self._failed is not None and time.monotonic() < self._failed[0]:
                raise ServerDown(self._failed[1])
            try:
                self._session = await self._start()
            except ServerDown as down:
                self._failed = time.monotonic() + REST_S, str(down)
                raise
            self._failed, self._listed = None, None
            return self._session

    async def _start(self) -> ClientSession:
        try:
            server = self.server.expanded()
        except KeyError as missing:
            raise ServerDown(f"the environment variable {missing.args[0]} is not set") from None
        ready: asyncio.Future[ClientSession] = asyncio.get_running_loop().create_future()
        self._stop = stop = asyncio.Event()
        program = self._program = Program(server, stop.set) if server.kind == "stdio" else None
        task = self._task = asyncio.create_task(self._live(server, program, ready, stop))
        first: list[asyncio.Future[Any]] = [ready, task]
        await asyncio.wait(first, timeout=self._start_s, return_when=asyncio.FIRST_COMPLETED)
        if ready.done() and not ready.cancelled() and ready.exception() is None:
            return ready.result()
        reason = _words(ready.exception()) if ready.done() else f"it was not ready within {self._start_s:g} s"
        stop.set()
        if not ready.done():
            ready.cancel()
            task.cancel()
        await asyncio.wait([task], timeout=_END_S)
        last = program.last_words if program is not None else ""
        fault = program.fault if program is not None else None
        raise ServerDown((fault or reason) + (f" ({last})" if last else ""))

    async def _live(
        self, server: Server, program: Program | None, ready: "asyncio.Future[ClientSession]", stop: asyncio.Event
    ) -> None:
        """The whole life of the line: it ends when it is told to, or when the server is gone."""
        try:
            async with AsyncExitStack() as stack:
                open_streams = program.streams() if program is not None else http.streams(server, self._guard)
                reads, writes = await stack.enter_async_context(open_streams)
                about = types.Implementation(name="officina", version="1")
                made = ClientSession(reads, writes, client_info=about, message_handler=self._hear)
                session = await stack.enter_async_context(made)
                await _greet(session)
                if not ready.done():
                    ready.set_result(session)
                await stop.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(ServerDown(_words(error)))
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            if self._task is asyncio.current_task():
                self._session = None

    async def _hear(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._listed = None

    async def _list(self, session: ClientSession) -> list[types.Tool]:
        found: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor) if cursor is not None else None
            page = await self._ask(session, types.ListToolsRequest(params=params), types.ListToolsResult, self._start_s)
            found += page.tools
            cursor = page.next_cursor
            if cursor is None or len(found) >= MAX_TOOLS:
                break
        return found[:MAX_TOOLS]

    async def _ask(self, session: ClientSession, request: Any, kind: type[R], seconds: float) -> R:
        stop, task = self._stop, self._task
        asking = asyncio.create_task(session.send_request(request, kind))  # type: ignore[type-var]
        gone = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([asking, gone], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            if gone.done():
                raise ServerDown(self._ended())
            raise TimeoutError(f"no answer within {seconds:g} s")
        except MCPError as error:
            if error.error.code == types.CONNECTION_CLOSED:
                raise ServerDown(self._ended()) from None
            raise ServerSaid(error.error.message[:2_000]) from None
        except (ServerDown, TimeoutError, asyncio.CancelledError):
            raise
        except ValueError as error:
            raise ServerSaid(f"its answer does not fit the protocol: {str(error)[:300]}") from None
        except Exception as error:  # a broken stream, in the words of whichever library
            raise ServerDown(_words(error)) from None
        finally:
            asking.cancel()
            gone.cancel()
            if stop.is_set() and self._task is task:
                self._session = None

    def _ended(self) -> str:
        fault = self._program.fault if self._program is not None else None
        return "it ended before it answered" + (f": {fault}" if fault else "")


async def _greet(session: ClientSession) -> None:
    """The handshake that nearly every server knows, else the one of those that know no other."""
    try:
        await session.initialize()
    except MCPError as refused:
        try:
            await session.discover()
        except MCPError:
            raise refused from None


def _words(error: BaseException | None) -> str:
    """The first reason of an error, out of the groups that task groups make of it."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, MCPError) and error.error.code == types.CONNECTION_CLOSED:
        return "it ended at once"
    if isinstance(error, FileNotFoundError):
        return f"{error.filename or 'the program'} is not there"
    if isinstance(error, asyncio.CancelledError):
        return "it was given up"
    return (str(error).splitlines() or [type(error).__name__])[0][:400] or type(error).__name__
