"""A server that is a program: it starts behind its keeper, and every line it says is bounded."""

import asyncio
import contextlib
import os
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import mcp_types
from mcp.shared.message import SessionMessage

from registry.mcp import Server
from workers.sandbox.limits import MIB, Limits

_KEEPER: Final = str(Path(__file__).with_name("keeper.py"))
#: Bytes of one message.
MAX_LINE: Final = 8 * MIB
#: Lines that are no message, as some programs greet their user on standard output.
MAX_GARBAGE: Final = 1_000
#: Messages and bytes within a minute: a server that says more keeps the others from their turn.
MAX_PER_MINUTE: Final = (20_000, 256 * MIB)
#: What is kept of standard error, for the words about a server that did not start.
_STDERR: Final = 4_096
#: Seconds a server has to leave by itself once its input is closed; then everything it started is killed.
_LEAVE_S: Final = 2.0
_KILL_S: Final = 6.0
#: What a program gets of the worker's own environment: no setting, and so no secret of ours.
_INHERITED: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")


class Hostile(Exception):
    """The server broke a bound; it is ended."""


class Program:
    """One running program."""

    def __init__(self, server: Server, gone: Callable[[], None]) -> None:
        self._server = server
        self._gone = gone
        self._said: deque[bytes] = deque(maxlen=8)
        #: Why it was ended by us; None: it ended by itself, or runs.
        self.fault: str | None = None

    @property
    def last_words(self) -> str:
        """The end of what it wrote to standard error, on one line."""
        text = b"".join(self._said)[-_STDERR:].decode(errors="replace").strip()
        return " / ".join(line.strip() for line in text.splitlines()[-3:])[:400]

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """Starts it; its messages, and where messages to it go. At the end nothing of it is left.

        Raises:
            OSError: it cannot be started.
        """
        process, life = await self._start()
        says, heard = anyio.create_memory_object_stream[Any](0)
        to_it, orders = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.create_task(self._listen(process, says)),
            asyncio.create_task(self._speak(process, orders)),
            asyncio.create_task(self._overhear(process)),
        ]
        try:
            yield heard, to_it
        finally:
            await self._end(process, life, tasks)
            for stream in (says, heard, to_it, orders):
                stream.close()

    async def _start(self) -> tuple[asyncio.subprocess.Process, int]:
        config = self._server.config
        limits = Limits()
        folder = self._server.folder / (config.cwd or ".")
        watched, life = os.pipe()
        bounds = f"{limits.memory},{limits.processes},{limits.handles}"
        command = [sys.executable, "-I", "-S", _KEEPER, str(watched), bounds, str(config.command), *config.args]
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={name: os.environ[name] for name in _INHERITED if name in os.environ} | config.env,
                cwd=folder,
                pass_fds=(watched,),
                start_new_session=True,
                limit=MAX_LINE,
            )
        except BaseException:
            os.close(life)
            raise
        finally:
            os.close(watched)
        return process, life

    async def _listen(self, process: asyncio.subprocess.Process, says: Any) -> None:
        assert process.stdout is not None
        garbage, since, lines, size = 0, time.monotonic(), 0, 0
        try:
            async for line in _lines(process.stdout):
                if time.monotonic() - since > 60:
                    since, lines, size = time.monotonic(), 0, 0
                lines, size = lines + 1, size + len(line)
                if lines > MAX_PER_MINUTE[0] or size > MAX_PER_MINUTE[1]:
                    raise Hostile("it says more than anybody can listen to")
                try:
                    message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    garbage += bool(line.strip())
                    if garbage > MAX_GARBAGE:
                        raise Hostile("its standard output is no protocol") from None
                    continue
                await says.send(SessionMessage(message))
        except Hostile as fault:
            self.fault = str(fault)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            pass
        finally:
            says.close()
            self._gone()

    async def _speak(self, process: asyncio.subprocess.Process, orders: Any) -> None:
        assert process.stdin is not None
        with contextlib.suppress(OSError, anyio.ClosedResourceError):
            async for order in orders:
                text = order.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode() + b"\n")
                await process.stdin.drain()

    async def _overhear(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while piece := await process.stderr.read(_STDERR):
            self._said.append(piece)

    async def _end(self, process: asyncio.subprocess.Process, life: int, tasks: list[asyncio.Task[None]]) -> None:
        """Input closed, a moment to leave, then the keeper's end of the life line: it kills the rest."""
        try:
            if process.stdin is not None:
                process.stdin.close()
            if not await _ended(process, 0.0 if self.fault else _LEAVE_S):
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
                await _ended(process, _KILL_S)
        finally:
            os.close(life)
            with contextlib.suppress(ProcessLookupError):
                if process.returncode is None:
                    process.kill()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        try:
            yield await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            return
        except asyncio.LimitOverrunError:
            raise Hostile(f"it sent a line of more than {MAX_LINE // MIB} MiB") from None


async def _ended(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Whether it ended within so many seconds; not by waiting for its pipes, which what it started may still hold."""
    until = time.monotonic() + seconds
    while process.returncode is None and time.monotonic() < until:
        await asyncio.sleep(0.01)
    return process.returncode is not None
