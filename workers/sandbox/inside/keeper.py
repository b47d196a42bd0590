"""Keeps one program: prepares its folder, starts it confined, watches it, ends all it started, hands out its files.

Orders come on one pipe: JSON behind its length, then the bytes of the input files. The pipe stays open; its end means
"stop", so a parent that dies takes everything with it. The report goes out on another pipe as lines of JSON; the line
of a file is followed by its bytes.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from typing import Any

from . import confine, folder, watch

#: Seconds between two looks at memory and disk. Waiting for the program's end does not depend on it.
LOOK_S = 0.1


def main(orders_fd: int, report_fd: int) -> None:
    """Runs the whole of one execution; every fault before the start is reported as `refused`."""
    os.set_inheritable(orders_fd, False)
    os.set_inheritable(report_fd, False)
    report, parent = Report(report_fd), os.getppid()
    try:
        orders = read_orders(orders_fd)
        confine.keeper(orders)
        owner = None if confine.keeper_is_alone() else orders["uid"]
        box = folder.prepare(orders["scratch"], orders["files"], lambda size: read_exactly(orders_fd, size), owner)
        child = start(orders)
    except Exception as fault:
        report.line({"refused": f"{type(fault).__name__}: {fault}"})
        return
    report.line({"started": True})
    status, reason = Watcher(orders, orders_fd, child, box, parent).wait()
    watch.sweep(child)
    if os.getppid() != parent:
        # Nobody is left to read a report or to remove the folder.
        folder.clear(box)
        os.rmdir(orders["scratch"])  # noqa: PTH106
        return
    report.line({"ended": status, "reason": reason})
    if orders["collect"] and reason != "stopped":
        for path, content, why_not in folder.collect(box, orders["limits"]):
            report.file(path, content, why_not)


def read_orders(fd: int) -> dict[str, Any]:
    """Ten digits that give the length of the JSON, then the JSON; file contents follow and stay in the pipe."""
    size = int(read_exactly(fd, 10))
    orders: dict[str, Any] = json.loads(read_exactly(fd, size))
    return orders


def read_exactly(fd: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(fd, min(size, 1 << 20))
        if not part:
            raise EOFError("the orders ended early")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class Report:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    def line(self, value: dict[str, Any]) -> None:
        self._write(json.dumps(value).encode() + b"\n")

    def file(self, path: str, content: bytes, why_not: str) -> None:
        self.line({"file": path, "size": len(content), "whyNot": why_not})
        self._write(content)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]


def start(orders: dict[str, Any]) -> int:
    """Forks the program; returns once it has been executed.

    Raises:
        OSError: a wall could not be put up, or the program cannot be executed; nothing of it ran.
    """
    faults, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            confine.program(orders)
            os.execve(orders["argv"][0], orders["argv"], orders["env"])
        except BaseException as fault:
            os.write(told, f"{type(fault).__name__}: {fault}".encode()[:2000])
        finally:
            os._exit(127)
    os.close(told)
    fault_text = os.read(faults, 4096)
    os.close(faults)
    _let_go_of_stdio()
    if fault_text:
        raise OSError(f"{orders['argv'][0]} did not start: {fault_text.decode(errors='replace')}")
    return child


def _let_go_of_stdio() -> None:
    """The program's pipes end with the program, so the keeper must not hold them."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


class Watcher:
    """Waits for the program's end, for the order to stop, or for a limit that no rlimit holds."""

    def __init__(self, orders: dict[str, Any], orders_fd: int, child: int, box: int, parent: int) -> None:
        self._limits = orders["limits"]
        self._own_mount = orders["ownMount"]
        self._scratch = orders["scratch"]
        self._uid = orders["uid"]
        self._orders_fd = orders_fd
        self._child = child
        self._box = box
        self._parent = parent
        self._terminated = False

    def wait(self) -> tuple[int | None, str]:
        """The wait status (None: to be ended) and why: stopped, memory, disk, hidden, or empty for its own end."""
        wake = self._listen()
        looked = time.monotonic()
        while True:
            if (status := self._reap()) is not None:
                return status, ""
            ready, _, _ = select.select([wake, self._orders_fd], [], [], LOOK_S)
            if wake in ready:
                os.read(wake, 4096)
            if self._terminated or self._orders_fd in ready or os.getppid() != self._parent:
                return None, "stopped"
            if time.monotonic() - looked >= LOOK_S:
                looked = time.monotonic()
                if reason := self._over_limit():
                    return None, reason

    def _listen(self) -> int:
        """Signals wake the wait through a pipe."""
        wake, poke = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(poke, False)
        signal.set_wakeup_fd(poke, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.signal(signal.SIGTERM, self._terminate)
        return wake

    def _terminate(self, _number: int, _frame: object) -> None:
        self._terminated = True

    def _reap(self) -> int | None:
        """Takes the dead, orphans too; the status of the program when it is among them."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == self._child:
                return status
            if pid == 0:
                return None

    def _over_limit(self) -> str:
        with confine.seen_as(self._uid):
            if watch.memory(self._limits["memory"]) > self._limits["memory"]:
                return "memory"
            used = 0 if self._own_mount else watch.nameless_bytes(self._scratch)
        try:
            named, entries = folder.usage(self._box, self._own_mount, self._limits)
        except PermissionError:
            return "hidden"
        used += named
        # A full file system of its own only gives the program errors; a shared one has to be protected.
        if entries > self._limits["scratchEntries"] or (used > self._limits["scratch"] and not self._own_mount):
            return "disk"
        return ""
