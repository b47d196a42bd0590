"""Fast runs follow one another in a slot, without a message each: a fan-out must cost little beside its model calls.

A job whose child ends at once goes on with what that end made ready, its parent after the last child, or else with all
siblings that nobody has claimed yet, in threads of their own, so that they commit together. Their wake-ups are in the
queue all the same; one that comes later finds its run taken. A job that is older than the limit takes nothing more.

How long children take is remembered by their definition. Where they were fast before, a fan-out takes its children at
once, as many as there are slots, and only the others get a chord. So runs that wait for a model stay one job each, as
people expect in Flower, and are spread over workers by the queue.

Root runs follow one another as well, where one spent only a few milliseconds in calls of models and tools: what its end
made ready, and what else of its project waits and has its definition. Other projects stand in the queue meanwhile,
which is why a run that waits for anybody is not followed that way.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from orchestrator import queue
from orchestrator.records import RunRecord, Wake
from orchestrator.settings import Settings
from orchestrator.states import RUN_ENDED
from orchestrator.store.claims import Alike
from workers.carrying import NOTHING, Carried, Carrier, Claimed

log = logging.getLogger(__name__)

#: Seconds in calls of models and tools with which a root run is fast, and how many may follow one at once.
FAST_ROOT_S, ROOTS = 0.01, 32
#: Ended runs whose late messages are known without a look at the rows.
REMEMBERED = 10_000


class Drain:
    """Carries what is ready after a run, while it goes fast.

    Args:
        room: how many more runs the process may take just now.
    """

    def __init__(self, carrier: Carrier, settings: Settings, room: Callable[[], int]) -> None:
        self._carrier = carrier
        self._settings = settings
        self._room = room
        self._limit_s = settings.drain_ms / 1000
        self._helpers = ThreadPoolExecutor(settings.worker_slots, thread_name_prefix="helper")
        #: What the end of the run that this thread carries has made ready.
        self._here = threading.local()
        #: Runs that ended here; the messages of some are still to come, and an ended run never begins again.
        self._over: dict[str, None] = {}
        #: Seconds the last child of a definition took.
        self._pace: dict[str, float] = {}

    def carry(self, run_id: str) -> Carried:
        """Claims a run and carries it, and what may follow it; gives what came of the last one."""
        if run_id in self._over:
            return NOTHING
        begun = time.monotonic()
        claimed = self._carrier.claim(run_id)
        return NOTHING if claimed is None else self._carry(claimed, begun, job=True)

    def pass_on(self, wakes: Sequence[Wake]) -> None:
        """Keeps wake-ups for the thread that carries the run which made them; elsewhere sends them."""
        kept: list[Wake] | None = getattr(self._here, "ready", None)
        if kept is None:
            queue.send(self._settings, wakes)
        else:
            kept += wakes

    def _carry(self, claimed: Claimed, begun: float, *, job: bool = False) -> Carried:
        while True:
            done, ready = self._one(claimed)
            self._remember(claimed.claim.run_id, done.word)
            if done.children:
                done, more = self._take(done)
                begun = time.monotonic()  # whatever went before, the children begin now
            else:
                more = self._more(claimed, ready, done, begun, first=job)
            job = False
            if not more or done.children:
                self._lend(more, begun)
                return done
            claimed = more[0]
            self._lend(more[1:], begun)

    def _lend(self, claimed: Sequence[Claimed], begun: float) -> None:
        """Gives runs threads of their own."""
        for one in claimed:
            self._helpers.submit(self._help, one, begun)

    def _help(self, claimed: Claimed, begun: float) -> None:
        """The same in a thread without a job: children it makes go without a chord, for there is none to replace."""
        try:
            queue.send(self._settings, self._carry(claimed, begun).children)
        except Exception:  # the row stands, and the clock looks again
            log.exception("run %s was not carried", claimed.claim.run_id)

    def _one(self, claimed: Claimed) -> tuple[Carried, list[Wake]]:
        ready: list[Wake] = []
        self._here.ready = ready
        begun = time.monotonic()
        try:
            done = self._carrier.carry_claimed(claimed)
            if claimed.record is not None and claimed.record.parent_id is not None:
                if len(self._pace) > REMEMBERED:
                    self._pace.clear()
                self._pace[claimed.record.definition_digest] = time.monotonic() - begun
            return done, ready
        except BaseException:
            queue.send(self._settings, ready)
            raise
        finally:
            self._here.ready = None

    def _take(self, done: Carried) -> tuple[Carried, list[Claimed]]:
        """Claims the children of a fan-out, if all their like were fast; gives the others to the chord."""
        fast = all(self._pace.get(digest, self._limit_s) < self._limit_s for digest in done.by)
        room = self._room() if fast else 0
        if not room:
            return done, []
        mine = {wake.run_id for wake in [w for w in done.children if self._carrier.serves(w)][:room]}
        others = tuple(wake for wake in done.children if wake.run_id not in mine)
        return replace(done, children=others), self._carrier.claim_these(sorted(mine))

    def _remember(self, run_id: str, word: str) -> None:
        if word in RUN_ENDED:
            self._over[run_id] = None
            if len(self._over) > REMEMBERED:
                self._over.pop(next(iter(self._over)), None)

    def _more(self, last: Claimed, ready: list[Wake], done: Carried, begun: float, *, first: bool) -> list[Claimed]:
        """Claims what follows a run that has ended; what it does not take gets its message.

        Args:
            first: whether it is the run of the job itself, so that nothing has followed it yet.
        """
        in_time = time.monotonic() - begun < self._limit_s
        if last.record is not None and last.record.parent_id is None:
            return self._more_roots(last.record, ready, done, in_time=in_time or first)
        child = last.record is not None
        fast = child and done.word in RUN_ENDED and in_time
        room = self._room() if fast else 0
        mine = [wake.run_id for wake in ready if self._carrier.serves(wake)][:room]
        queue.send(self._settings, [wake for wake in ready if wake.run_id not in mine])
        if mine:
            return self._carrier.claim_these(mine)
        return self._carrier.claim_siblings(last.claim.run_id, room) if room else []

    def _more_roots(self, last: RunRecord, ready: list[Wake], done: Carried, *, in_time: bool) -> list[Claimed]:
        """The same after a root run; a job takes some once however long it took itself: on a machine that is slow just
        now, messages would make it slower."""
        fast = done.word == "completed" and done.called_s < FAST_ROOT_S
        room = min(self._room(), ROOTS) if fast and in_time else 0
        queue.send(self._settings, ready[room:])
        if not room:
            return []
        marked = tuple(wake.run_id for wake in ready[:room])
        return self._carrier.claim_alike(Alike(last.project_id or "", last.definition_digest, marked, room))
