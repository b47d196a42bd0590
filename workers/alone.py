"""A suspect carries its next step in a process of its own, where it takes no neighbour with it (spec: reliability).

A run whose worker died or fell silent may be the reason or a bystander. Its next step, up to the next checkpoint, is
executed in a process forked from one that has everything imported and nothing open. A step that ends there proves the
run innocent, and its worker carries on with it; a process that dies there counts against the run. The worker keeps the
lease meanwhile, and watches: a process that is silent for too long is killed.
"""

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from typing import Any, Protocol

from orchestrator import crashpoints, queue
from orchestrator.journal import Journal
from orchestrator.records import Checkpoint, RepairRecord, Wake
from orchestrator.settings import Settings, get_settings
from orchestrator.store import loading, runs
from orchestrator.store.database import Database, get_database
from orchestrator.store.runs import Claim
from registry.errors import LeaseStale, Unavailable
from workers.carrying import Carried
from workers.engine import loop
from workers.engine.session import Session

log = logging.getLogger(__name__)

#: Seconds between signs of life of such a process, and between looks of its worker.
LOOK_S = 0.25
#: Seconds such a process may take until its first sign of life: the first of a worker waits for all the imports.
BEGIN_S = 60
#: Processes of this kind one worker has at once, at least.
PLACES = 4
#: What such a process says when its run got past the step.
INNOCENT = "innocent"


class Held(Protocol):
    """What a worker holds: it can be told to stop or to leave, and says whether a call in it is stuck."""

    stopped: threading.Event
    leave: threading.Event

    @property
    def fence(self) -> int: ...

    def overdue(self, slack_s: float) -> bool: ...

    def hear(self, repairs: Iterable[RepairRecord]) -> None: ...


class Suspect:
    """A run that is carried by a process of its own; its worker renews the lease."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.stopped, self.leave = threading.Event(), threading.Event()

    @property
    def fence(self) -> int:
        return self.claim.fence

    def overdue(self, slack_s: float) -> bool:
        """Never: its process is watched by other means."""
        return False

    def hear(self, repairs: Iterable[RepairRecord]) -> None:
        """Leaves them to whoever loads the run next."""


class Cells:
    """The processes of one worker that carry suspects."""

    def __init__(
        self, settings: Settings, database: Database, hold: Callable[[str, Held], AbstractContextManager[None]]
    ) -> None:
        self._settings = settings
        self._database = database
        self._hold = hold
        self._places = threading.BoundedSemaphore(max(PLACES, os.cpu_count() or 1))
        # A fork server, so that no thread, lock or connection of this process is copied.
        self._context: BaseContext = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["workers.warm"])

    def carry(self, claim: Claim) -> Carried | None:
        """Lets a claimed suspect make its next step; None when it got past it and is still this worker's."""
        suspect = Suspect(claim)
        # It may wait here for a place, and its process for its imports: neither counts against it.
        self._database.write(lambda c: runs.hold_back(c, claim.run_id, claim.fence))
        with self._hold(claim.run_id, suspect), self._places:
            if suspect.stopped.is_set():
                return Carried("lost")
            said = self._step(suspect)
        if said == INNOCENT and not suspect.stopped.is_set():
            return None
        if said is not None:
            return Carried(said)
        if suspect.stopped.is_set():
            return Carried("lost")
        log.warning("run %s took its process down", claim.run_id)
        ready = self._database.write(lambda c: runs.give_up(c, claim.run_id, claim.fence, crashed=True))
        queue.send(self._settings, ready)
        return Carried("crashed")

    def _step(self, suspect: Suspect) -> str | None:
        """What the process said at its end; None when it died."""
        claim = suspect.claim
        hears, says = self._context.Pipe(duplex=False)
        process: Any = self._context.Process(target=_live, args=(claim.run_id, claim.fence, says), daemon=True)  # type: ignore[attr-defined]
        process.start()
        says.close()
        silent_at = time.monotonic() + BEGIN_S
        try:
            while True:
                if wait([hears], LOOK_S):
                    try:
                        word = str(hears.recv_bytes().decode())
                    except (EOFError, OSError):
                        return None
                    if word:
                        return word
                    silent_at = time.monotonic() + self._settings.limits.stuck_s
                if suspect.stopped.is_set() or time.monotonic() > silent_at:
                    return None
        finally:
            process.kill()
            process.join()
            hears.close()


class _Witness:
    """A journal that asks its run to leave as soon as it got past the step."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.session: Session | None = None

    def save(self, checkpoint: Checkpoint) -> list[Wake]:
        made = self._journal.save(checkpoint)
        if checkpoint.number is not None and self.session is not None:
            self.session.leave.set()
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)


def _live(run_id: str, fence: int, says: Connection) -> None:
    """The life of such a process: one step of one run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for its worker, which decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_worker, name="tether", daemon=True).start()
    from workers.runtime import services

    settings = get_settings()
    database = get_database(settings)
    made = services(settings)
    witness = made.journal = _Witness(made.journal)
    try:
        if not database.write(lambda c: runs.begin(c, run_id, fence)):
            says.send_bytes(b"lost")
            return
        with database.read() as connection:
            record = loading.load(connection, run_id, fence)
        session = loop.open_session(record, made)
    except (LeaseStale, Unavailable) as error:  # neither is the run's fault
        says.send_bytes(b"lost" if isinstance(error, LeaseStale) else b"left")
        return
    if session is None:
        says.send_bytes(b"failed")
        return
    witness.session = session
    threading.Thread(target=_show_life, args=(session, says, settings), name="alive", daemon=True).start()
    loop.drive(session)
    crashpoints.reached("stepped")
    queue.send(settings, session.fanned_out)
    innocent = session.status == "running" and session.leave.is_set()
    word = INNOCENT if innocent else "left" if session.status == "running" else session.status
    says.send_bytes(word.encode())


def _show_life(session: Session, says: Connection, settings: Settings) -> None:
    """An empty word now and then, until a call is stuck: then its worker ends this process."""
    while not session.overdue(settings.limits.stuck_s):
        try:
            says.send_bytes(b"")
        except OSError:
            return
        time.sleep(LOOK_S)


def _end_with_worker() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os.kill(os.getpid(), signal.SIGKILL)
