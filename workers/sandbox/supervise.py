"""Talks to one keeper: feeds its pipes, reads what comes with a cap, and ends it at the deadline or on cancel."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from io import FileIO
from typing import Literal, Protocol, cast

from registry.base import Json
from workers.sandbox.limits import MIB, Limits

#: Seconds until the program must have started; a loaded machine is slow, a broken one is silent.
START_S = 15.0
#: Seconds for taking the output files after the program's end.
COLLECT_S = 10.0
#: Seconds a keeper has to end everything when told to stop, before it is killed itself.
STOP_S = 1.5
#: Seconds between two looks at the cancel flag, which may cost a query.
CANCEL_LOOK_S = 0.25

Late = Literal["", "start", "program", "files"]

_BLOCK = 1 << 16
#: Past so many bytes of one stream it is read slowly: dropping without end would take the worker a whole processor.
_FLOOD_BYTES = 32 * MIB
_FLOOD_NAP_S = 0.005


@dataclass
class Kept:
    """The first bytes of a stream; the rest is read and dropped, so that a writer never waits."""

    most: int
    data: bytearray = field(default_factory=bytearray)
    truncated: bool = False
    seen: int = 0

    def add(self, part: bytes) -> None:
        room = self.most - len(self.data)
        self.data += part[:room]
        self.seen += len(part)
        self.truncated |= len(part) > room


class Stream(Protocol):
    """Where the bytes of a stream go."""

    @property
    def data(self) -> bytes | bytearray: ...

    @property
    def truncated(self) -> bool: ...

    @property
    def seen(self) -> int: ...

    def add(self, part: bytes) -> None: ...


class Talk(Stream, Protocol):
    """A conversation with a program: what it says comes in as a stream, and what it is told is taken here."""

    @property
    def over(self) -> bool:
        """Nothing more is to be said: the program is ended."""
        ...

    def take(self) -> bytes:
        """What is to be said to it now; empty: nothing."""
        ...


@dataclass
class Report:
    """What the keeper says, read as it comes; its other end is near hostile code, so sizes are checked again."""

    limits: Limits
    #: Told when the program has started.
    on_start: Callable[[], None] = lambda: None
    refused: str | None = None
    started_at: float | None = None
    ended_at: float | None = None
    #: A wait status; None: the program was ended.
    status: int | None = None
    reason: str = ""
    files: list[tuple[str, bytes]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    _pending: bytearray = field(default_factory=bytearray)
    _file: tuple[str, int, str] | None = None

    def add(self, part: bytes) -> None:
        """Takes the next bytes.

        Raises:
            ValueError: it is no report.
        """
        self._pending += part
        while self._next():
            pass

    def _next(self) -> bool:
        if self._file is not None:
            path, size, why_not = self._file
            if len(self._pending) < size:
                return False
            self._take(path, bytes(self._pending[:size]), why_not)
            del self._pending[:size]
            self._file = None
            return True
        line, found, _rest = self._pending.partition(b"\n")
        if not found:
            if len(line) > _BLOCK:
                raise ValueError("a line of the report is too long")
            return False
        del self._pending[: len(line) + 1]
        self._line(json.loads(line))
        return True

    def _line(self, said: dict[str, Json]) -> None:
        if "refused" in said:
            self.refused = str(said["refused"])
        elif "started" in said:
            self.started_at = time.monotonic()
            self.on_start()
        elif "ended" in said:
            self.ended_at = time.monotonic()
            self.status, self.reason = said["ended"], str(said["reason"])
        elif "file" in said:
            size = int(said["size"])
            if not 0 <= size <= self.limits.out_file:
                raise ValueError("a file of the report is too large")
            self._file = (str(said["file"]), size, str(said["whyNot"]))

    def _take(self, path: str, content: bytes, why_not: str) -> None:
        if len(self.files) + len(self.left) > 3 * self.limits.out_files:
            raise ValueError("the report names too many files")
        if why_not:
            self.left.append(f"out/{path} was left behind: {why_not}")
        else:
            self.files.append((path, content))


@dataclass
class Pipes:
    """What a keeper and its program talk through: raw files, written and read without waiting."""

    orders: FileIO
    stdin: FileIO
    stdout: FileIO
    stderr: FileIO
    report: FileIO


class Supervisor:
    """One execution, from the first order to the end of the last process."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        pipes: Pipes,
        report: Report,
        kept: tuple[Stream, Stream],
        talk: Talk | None = None,
    ) -> None:
        #: What took too long; empty: nothing did.
        self.late: Late = ""
        self.cancelled = False
        self._process = process
        self._pipes = pipes
        self._report = report
        self._kept = kept
        self._talk = talk
        self._to_write: dict[FileIO, memoryview] = {}
        self._to_read: dict[FileIO, Callable[[bytes], None]] = {
            pipes.stdout: kept[0].add,
            pipes.stderr: kept[1].add,
            pipes.report: report.add,
        }
        self._selector = selectors.DefaultSelector()

    def run(self, orders: bytes, stdin: bytes, timeout_s: float, cancelled: Callable[[], bool]) -> None:
        """Waits until the keeper has said all; leaves no process behind, however it ends.

        Raises:
            ValueError: what came as a report is none.
        """
        self._to_write = {self._pipes.orders: memoryview(orders), self._pipes.stdin: memoryview(stdin)}
        try:
            self._register()
            self._watch(timeout_s, cancelled)
        finally:
            self._stop()
            self._selector.close()

    def _register(self) -> None:
        for file, event in (
            *((file, selectors.EVENT_READ) for file in self._to_read),
            *((file, selectors.EVENT_WRITE) for file in self._to_write),
        ):
            os.set_blocking(file.fileno(), False)
            self._selector.register(file, event)

    def _watch(self, timeout_s: float, cancelled: Callable[[], bool]) -> None:
        began = looked = time.monotonic()
        while self._pipes.report in self._to_read:
            self._move(0.05)
            if self._talk is not None and self._answer(self._talk):
                return
            if any(kept.seen > _FLOOD_BYTES for kept in self._kept):
                time.sleep(_FLOOD_NAP_S)
            now = time.monotonic()
            if now - looked >= CANCEL_LOOK_S:
                looked = now
                self.cancelled = cancelled()
            self.late = self._what_is_late(now, began, timeout_s)
            if self.cancelled or self.late:
                return

    def _answer(self, talk: Talk) -> bool:
        """Says what is to be said; true: the conversation is over."""
        stdin = self._pipes.stdin
        if (said := talk.take()) and not stdin.closed:
            waiting = self._to_write.get(stdin, memoryview(b""))
            self._to_write[stdin] = memoryview(bytes(waiting) + said)
            if not waiting and stdin not in {key.fileobj for key in self._selector.get_map().values()}:
                self._selector.register(stdin, selectors.EVENT_WRITE)
        return talk.over

    def _what_is_late(self, now: float, began: float, timeout_s: float) -> Late:
        report = self._report
        if report.started_at is None:
            return "start" if now - began > START_S else ""
        if report.ended_at is None:
            return "program" if now - report.started_at > timeout_s else ""
        return "files" if now - report.ended_at > COLLECT_S else ""

    def _move(self, timeout: float) -> None:
        for key, _events in self._selector.select(timeout):
            file = cast(FileIO, key.fileobj)
            if file in self._to_read:
                self._read(file)
            else:
                self._write(file)

    def _read(self, file: FileIO) -> None:
        part = file.read(_BLOCK)
        if part:
            self._to_read[file](part)
        elif part == b"":
            self._selector.unregister(file)
            del self._to_read[file]

    def _write(self, file: FileIO) -> None:
        left, broken = self._to_write[file], False
        try:
            left = left[file.write(left) or 0 :] if left else left
        except BrokenPipeError:
            left, broken = memoryview(b""), True
        self._to_write[file] = left
        if not left:
            self._selector.unregister(file)
            # The orders stay open as long as the keeper shall go on, and a program that is talked with hears more.
            kept_open = file is self._pipes.orders or (self._talk is not None and not broken)
            if not kept_open:
                file.close()

    def _stop(self) -> None:
        """The end of the orders tells the keeper to stop; one that does not is killed with its group."""
        self._selector.close()
        self._selector = selectors.DefaultSelector()
        for file in self._to_write:
            file.close()
        for file in self._to_read:
            self._selector.register(file, selectors.EVENT_READ)
        self._drain(time.monotonic() + STOP_S)
        try:
            self._process.wait(0.2)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _drain(self, until: float) -> None:
        """What was still on its way. A fault in the report changes nothing about stopping."""
        while self._to_read and (left := until - time.monotonic()) > 0:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                self._move(left)
