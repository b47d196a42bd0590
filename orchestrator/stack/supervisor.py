"""Keep processes alive: one thread starts them, starts again what ends, and ends all of them in order."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

from orchestrator.stack.processes import Process

#: Seconds before a process that ended is started again: doubled each time, forgotten after a healthy while.
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30
HEALTHY_S = 60
LOOK_S = 0.2


@dataclass(frozen=True)
class Part:
    """A process to keep alive."""

    name: str
    start: Callable[[], Process]
    stage: int = 0
    """Parts of a higher stage end before those of a lower one begin to."""
    grace_s: float = 5
    """Seconds it may take to end before it is killed."""
    log: Path | None = None
    """Where it says why it ended; named when it did."""
    buried: Callable[[int], None] = lambda pid: None
    """Called with the number of a process that has ended by itself; it must not wait for anything."""
    silent: Callable[[int], bool] = lambda pid: False
    """Whether a process that runs shows no life any more: it is killed, and started again."""


class Supervisor:
    """Keeps parts alive until `stop`.

    Every process is started by the supervisor's own thread, which outlives them all: the kernel ends a process with
    the thread that started it (see `tether`).
    """

    def __init__(self, say: Callable[[str], None], changed: Callable[[], None] = lambda: None) -> None:
        """
        Args:
            say: receives one line when a part ended, could not start, or had to be killed.
            changed: called after any part started; it runs in the supervisor's thread.
        """
        self._say = say
        self._changed = changed
        self._kept: list[_Kept] = []
        self._new: SimpleQueue[tuple[Part, Future[None]]] = SimpleQueue()
        self._stop = threading.Event()
        self._hurry = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisor")

    @property
    def pids(self) -> dict[str, int]:
        """Process id of every part that runs."""
        return {kept.part.name: kept.process.pid for kept in list(self._kept) if kept.process}

    def start(self) -> None:
        self._thread.start()

    def add(self, part: Part) -> None:
        """Starts a part and keeps it; an error of its first start is the caller's."""
        started: Future[None] = Future()
        self._new.put((part, started))
        started.result()

    def keep(self, part: Part) -> None:
        """Keeps a part that is started at the next look; for the supervisor's own thread."""
        self._kept.append(_Kept(part, None))

    def stop(self) -> None:
        """Ends every part, the highest stage first, and returns when none is left."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def hurry(self) -> None:
        """Cuts every grace short; safe in a signal handler."""
        self._hurry.set()

    def tick(self) -> None:
        """Looks at every part once; for a subclass that has more to look after."""
        now = time.monotonic()
        for kept in self._kept:
            self._look(kept, now)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._take_in()
                self.tick()
        finally:
            self._end_all()

    def _take_in(self) -> None:
        try:
            part, started = self._new.get(timeout=LOOK_S)
        except Empty:
            return
        try:
            self._kept.append(_Kept(part, part.start()))
        except BaseException as error:
            started.set_exception(error)
        else:
            self._changed()
            started.set_result(None)

    def _look(self, kept: "_Kept", now: float) -> None:
        process = kept.process
        if process is None:
            if now >= kept.due:
                self._start_again(kept)
        elif not process.running:
            process.kill()  # what it left behind in its session
            kept.process = None
            kept.part.buried(process.pid)
            self._wait(kept, f"ended ({process.outcome})")
        elif kept.part.silent(process.pid):
            self._say(f"{kept.part.name} shows no sign of life; killing it")
            process.kill()
        elif now - process.started > HEALTHY_S:
            kept.delay_s = FIRST_DELAY_S

    def _start_again(self, kept: "_Kept") -> None:
        try:
            kept.process = kept.part.start()
        except Exception as error:
            self._wait(kept, f"did not start ({error})")
        else:
            self._changed()

    def _wait(self, kept: "_Kept", why: str) -> None:
        where = f"; see {kept.part.log}" if kept.part.log else ""
        self._say(f"{kept.part.name} {why}; starting it again in {kept.delay_s:g} s{where}")
        kept.due = time.monotonic() + kept.delay_s
        kept.delay_s = min(kept.delay_s * 2, LONGEST_DELAY_S)

    def _end_all(self) -> None:
        for stage in sorted({kept.part.stage for kept in self._kept}, reverse=True):
            self._end([kept for kept in self._kept if kept.part.stage == stage and kept.process])

    def _end(self, ending: "list[_Kept]") -> None:
        asked = time.monotonic()
        for kept in ending:
            if kept.process:
                kept.process.ask()
        for kept in ending:
            process, grace_s = kept.process, kept.part.grace_s
            if process is None:
                continue
            while process.running and time.monotonic() < asked + grace_s and not self._hurry.wait(0.02):
                pass
            if process.running and not self._hurry.is_set():
                self._say(f"{kept.part.name} did not end within {grace_s:g} s; killing it")
            process.kill()
            kept.process = None


@dataclass
class _Kept:
    part: Part
    process: Process | None
    delay_s: float = field(default_factory=lambda: FIRST_DELAY_S)
    due: float = 0.0
