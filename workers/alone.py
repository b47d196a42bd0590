"""A suspect carries its next step in a process of its own, where it takes no neighbour with it (spec: reliability).

A run whose worker died or fell silent may be the reason or a bystander. Its next step, up to the next checkpoint, is
executed in a process of the fork server. A step that ends there proves the run innocent, and its worker carries on with
it; a process that dies there counts against the run. The worker keeps the lease meanwhile, and watches: a process that
is silent for too long is killed.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from orchestrator import crashpoints, queue, tracing
from orchestrator.journal import Journal
from orchestrator.records import Checkpoint, RepairRecord, Wake
from orchestrator.settings import Settings, get_settings
from orchestrator.store import loading, runs
from orchestrator.store.claims import Claim
from orchestrator.store.database import Database, get_database
from registry.errors import LeaseStale, Unavailable
from workers.carrying import Carried
from workers.engine import loop
from workers.engine.session import Session
from workers.forkserver import ForkServer, end_with
from workers.sandbox.process import find_sandbox

log = logging.getLogger(__name__)

#: Seconds between signs of life of such a process, and between looks of its worker.
LOOK_S = 0.25
#: Seconds such a process may take until its first sign of life: the machine may be busy.
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
        self,
        settings: Settings,
        database: Database,
        hold: Callable[[str, Held], AbstractContextManager[None]],
        server: ForkServer,
        in_vain: Callable[[str], None],
    ) -> None:
        """
        Args:
            settings: what is in force.
            database: where its runs are.
            hold: keeps the lease of a run while it lasts.
            server: what its processes come from.
            in_vain: told, in words, when there is no process to be had: a fresh worker may do better.
        """
        self._settings = settings
        self._database = database
        self._hold = hold
        self._places = threading.BoundedSemaphore(max(PLACES, os.cpu_count() or 1))
        self._server = server
        self._in_vain = in_vain

    def carry(self, claim: Claim) -> Carried | None:
        """Lets a claimed suspect make its next step; None when it got past it and is still this worker's."""
        suspect = Suspect(claim)
        # It may wait here for a place, and its process for its imports: neither counts against it.
        self._database.write(lambda c: runs.hold_back(c, claim.run_id, claim.fence))
        with self._hold(claim.run_id, suspect), self._places:
            if suspect.stopped.is_set():
                return Carried("lost")
            try:
                said = self._step(suspect)
            except OSError as error:  # nothing of the run was done
                self._database.write(lambda c: runs.release_run(c, claim.run_id, claim.fence))
                self._in_vain(f"there is no process for a suspect: {error}")
                return Carried("released")
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
        process = self._server.fork(suspect.claim.run_id, suspect.claim.fence)
        silent_at = time.monotonic() + BEGIN_S
        try:
            while True:
                if wait([process.pipe], LOOK_S):
                    try:
                        word = str(process.pipe.recv_bytes().decode())
                    except (EOFError, OSError):
                        return None
                    if word:
                        return word
                    silent_at = time.monotonic() + self._settings.limits.stuck_s
                if suspect.stopped.is_set() or time.monotonic() > silent_at:
                    return None
        finally:
            self._server.end(process)


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


def get_ready(settings: Settings) -> None:
    """Imports and reads what a step needs, and opens nothing: each process that is forked has it, and none of them has
    to do it again. A worker that died may have left as many suspects as it had slots."""
    from workers.runtime import services

    find_sandbox()  # looks for one by running programs
    services(settings)  # all skills, presets and packs
    _ = get_database(settings).engine.dialect  # the driver
    if settings.has_model:
        from workers.models import pools
        from workers.models.client import OpenAIClient

        # Made and forgotten: much of the SDK is loaded when it is first asked for a thing.
        _ = OpenAIClient(settings), pools.client(None, None).chat.completions


def live(run_id: str, fence: int, says: Connection) -> None:
    """The life of such a process: one step of one run."""
    end_with(says)
    from workers.runtime import services

    settings = get_settings()
    tracing.start("worker")
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
    tracing.flush()
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
