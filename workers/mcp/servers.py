"""The MCP servers of one worker process: one event loop in a thread of its own, one line per server (spec: engine 18).

Nothing is imported or started before the first agent that names a server. A process that was forked begins anew.
"""

import asyncio
import concurrent.futures
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from registry.errors import SkillError
from registry.mcp import Server, Servers
from registry.skills.context import SkillContext
from registry.skills.skill import Skill
from workers.mcp import tools
from workers.mcp.connection import Line, ServerDown, ServerSaid
from workers.net.guard import Guard

log = logging.getLogger(__name__)

#: Told of what a run lacks: (server, tool or None for all of it, reason).
LeftOut = Callable[[str, str | None, str], None]

#: Seconds between looks at who is idle, and at a call under way.
_LOOK_S: Final = 1.0
_CALL_LOOK_S: Final = 0.1
R = TypeVar("R")


@dataclass(frozen=True)
class Timing:
    """In seconds."""

    start: float = 30.0
    call: float = 120.0
    idle: float = 300.0


@dataclass(frozen=True)
class Listed:
    """How a server fares, for people."""

    server: Server
    #: `ready`, `failed`, `disabled`.
    state: str
    reason: str = ""
    tools: tuple[Skill, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


class McpServers:
    """Every server this process talks to. Safe from any thread."""

    def __init__(
        self, configured: Callable[[], Servers], guard: Guard, taken: frozenset[str], timing: Timing | None = None
    ) -> None:
        """
        Args:
            configured: what there is now.
            taken: names that no server's tool may have.
        """
        self._configured = configured
        self._guard = guard
        self._taken = taken
        self._timing = timing or Timing()
        self._lock = threading.Lock()
        self._pid = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lines: dict[str, Line] = {}

    def skills(self, ids: Iterable[str], left_out: LeftOut) -> list[Skill]:
        """The tools of these servers, which are started for it, in the order of the ids; what fails is left out."""
        configured = self._configured()
        wanted = [configured[id_] for id_ in dict.fromkeys(ids) if id_ in configured]
        for id_ in dict.fromkeys(ids):
            if id_ not in configured:
                left_out(id_, None, "it is not configured")
        found: dict[str, Skill] = {}
        for one in self._look(wanted):
            id_ = one.server.id
            if one.state != "ready":
                log.warning("the MCP server %s is left out: %s", id_, one.reason)
                left_out(id_, None, one.reason)
            for name, reason in one.left_out:
                left_out(id_, name, reason)
            for skill in one.tools:
                if skill.name in self._taken or skill.name in found:
                    log.warning("the tool %s of the MCP server %s is left out: the name is taken", skill.name, id_)
                    left_out(id_, skill.name, "the name is taken")
                else:
                    found[skill.name] = skill
        return list(found.values())

    def look(self) -> list[Listed]:
        """Every configured server, started to see how it fares."""
        return self._look(list(self._configured().values()))

    def close(self) -> None:
        """Ends every server; the next agent that wants one starts it again."""
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                return
        self._wait(self._close_all(), 30.0)

    def _look(self, servers: Sequence[Server]) -> list[Listed]:
        asked = [one for one in servers if one.config.enabled]
        answers: dict[str, Any] = {}
        if asked:
            answers = self._wait(self._list_all(asked), 2 * self._timing.start + 10)
        return [self._listed(one, answers.get(one.id)) for one in servers]

    def _listed(self, server: Server, answer: Any) -> Listed:
        if not server.config.enabled:
            return Listed(server, "disabled", "it is switched off (enabled: false)")
        if isinstance(answer, BaseException):
            return Listed(server, "failed", str(answer) or type(answer).__name__)
        lost: list[tuple[str, str]] = []
        made = tools.made_of(
            server,
            answer,
            lambda request, kind, context: self._ask(server, request, kind, context),
            timeout_s=self._timing.call,
            left_out=lambda name, reason: lost.append((name, reason)),
        )
        return Listed(server, "ready", "", tuple(made), tuple(lost))

    def _ask(self, server: Server, request: Any, kind: Any, context: SkillContext) -> Any:
        """One request of a call; whatever goes wrong is its result."""
        seconds = max(0.001, min(self._timing.call, context.deadline.left))
        try:
            return self._wait(self._on_line(server, request, kind, seconds), seconds + 1, context.check)
        except ServerDown as down:
            context.emit("mcp.failed", {"server": server.id, "reason": str(down)})
            raise SkillError("tool_failed", f"the server {server.id} is down: {down}", retryable=True) from None
        except ServerSaid as fault:
            raise SkillError("tool_failed", f"the server {server.id} refuses: {fault}") from None
        except TimeoutError as late:
            raise SkillError("timeout", f"the server {server.id}: {late or 'no answer in time'}") from None

    async def _on_line(self, server: Server, request: Any, kind: Any, seconds: float) -> Any:
        return await self._line(server).ask(request, kind, seconds)

    async def _list_all(self, servers: Sequence[Server]) -> dict[str, Any]:
        lines = [self._line(server) for server in servers]
        found = await asyncio.gather(*(line.tools() for line in lines), return_exceptions=True)
        return {server.id: answer for server, answer in zip(servers, found, strict=True)}

    def _line(self, server: Server) -> Line:
        """The line to a server; one that was configured anew gets another."""
        known = self._lines.get(server.id)
        if known is None or known.server.digest != server.digest:
            if known is not None:
                self._ending(known)
            known = self._lines[server.id] = Line(server, self._guard, start_s=self._timing.start)
        return known

    def _ending(self, line: Line) -> None:
        task = asyncio.ensure_future(line.close())
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    async def _close_all(self) -> None:
        lines, self._lines = list(self._lines.values()), {}
        await asyncio.gather(*(line.close() for line in lines), return_exceptions=True)

    async def _tidy(self) -> None:
        """Ends what nobody has used for long."""
        while True:
            await asyncio.sleep(min(_LOOK_S, self._timing.idle))
            for line in list(self._lines.values()):
                if line.is_open and line.idle_s >= self._timing.idle:
                    await line.close()

    def _wait(self, work: Coroutine[Any, Any, R], seconds: float, check: Callable[[], None] = lambda: None) -> R:
        """Runs something on the loop; what `check` raises ends the wait and the work."""
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        until = time.monotonic() + seconds
        try:
            while True:
                try:
                    return future.result(_CALL_LOOK_S)
                except concurrent.futures.TimeoutError:
                    if future.done():
                        raise  # its own
                    check()
                    if time.monotonic() > until:
                        raise TimeoutError("no answer in time") from None
        finally:
            future.cancel()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._pid, self._lines = os.getpid(), {}
                self._endings: set[asyncio.Future[None]] = set()
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="mcp", daemon=True).start()
                asyncio.run_coroutine_threadsafe(self._tidy(), self._loop)
            return self._loop
