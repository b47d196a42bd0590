"""What one worker process carries: its services, the runs it holds, and their heartbeat.

Made on first use in the process that executes (after a fork, too), never at import. Every held run's lease is renewed
in one batch; a run that is ours no more is told to stop.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

from orchestrator import crashpoints, plugins, queue, tracing
from orchestrator.broadcast import Broadcast
from orchestrator.known import PluginCards, load_presets, mcp_servers, playbooks, registries
from orchestrator.live import Live
from orchestrator.ports import wiring
from orchestrator.ports.documents import StoredDocuments
from orchestrator.ports.signals import DeskSignals
from orchestrator.records import RunRecord
from orchestrator.settings import Settings, get_settings
from orchestrator.store import actions, agents, repairs, requests, runs, tasks, wakes, workers
from orchestrator.store.database import Database, get_database
from orchestrator.store_journal import StoreJournal
from orchestrator.workspaces.jail import JailedWorkspace
from registry.agents import AgentDefinition
from registry.base import Json
from registry.graph.validation import Registries, check_registries, parse_agent
from registry.ids import new_id
from registry.jsontext import digest
from registry.packs import PACKS, names
from registry.presets import Presets
from registry.skills import catalogue
from workers.alone import Cells, Held
from workers.carrying import Carried, Carrier
from workers.drain import Drain
from workers.engine.services import Services
from workers.engine.targets import Target, of_row
from workers.mcp.wiring import Lazily
from workers.models.choose import client_for
from workers.models.embedding import embeddings_for
from workers.models.painting import PlainPainter
from workers.net.wiring import guard_for
from workers.plugins.tools import PluginTools
from workers.refilling import Refiller
from workers.sandbox.jobs import Allowed, JobKeeper
from workers.sandbox.limits import MIB
from workers.sandbox.process import find_sandbox
from workers.standby import server
from workers.web.wiring import web_for

log = logging.getLogger(__name__)


#: Seconds after which a call under way learns that its run was cancelled or taken over.
LOOK_S = 0.5


class Runtime:
    """The worker's side of the store: claims, carries, renews, lets go."""

    def __init__(
        self, settings: Settings, slots: int, *, shared: bool = False, queues: frozenset[str] | None = None
    ) -> None:
        """
        Args:
            settings: what is in force.
            slots: runs it carries at once.
            shared: whether runs have neighbours in this process; suspects then get a process of their own.
            queues: only runs of these are carried here; none: of whichever.
        """
        tracing.start("worker")
        self.settings = settings
        self.slots = slots
        self.queues = queues
        self.worker_id = new_id()
        self.database = get_database(settings)
        self.services = services(settings)
        self.lease_ms = round(settings.limits.lease_s * 1000)
        #: Milliseconds a lease has left that should have been renewed by now.
        self._neglected_ms = round((settings.limits.lease_s - settings.limits.renew_s) * 500)
        self._held: dict[str, Held] = {}
        #: Runs that went on elsewhere while a thread here is still in a call of theirs.
        self._stuck: set[Held] = set()
        #: Signals and requests whose call is under way here, outside of a run.
        self._acting: set[str] = set()
        #: Called when this process should make room for a fresh one, with the reason.
        self.retire: Callable[[str], None] = lambda reason: None
        self._lock = threading.Lock()
        self._forks = forks = server() if shared else None
        cells = Cells(settings, self.database, self._holding, forks, lambda why: self.retire(why)) if forks else None
        self._carrier = Carrier(
            self.database,
            self.services,
            self.worker_id,
            lambda session: self._holding(session.record.id, session),
            cells.carry if cells else None,
            Refiller(self._refill).ask,
            queues,
        )
        # Where processes carry runs, each carries one: nothing follows it without a message.
        self._drain = Drain(self._carrier, settings, self._room) if shared and settings.drain_ms else None
        if self._drain is not None and isinstance(self.services.journal, StoreJournal):
            self.services.journal.pass_on = self._drain.pass_on
        self._stop = threading.Event()
        self._idle = threading.Condition(self._lock)
        about = {"id": self.worker_id, "host": socket.gethostname(), "pid": os.getpid(), "slots": slots}
        about["queues"] = sorted(queues) if queues is not None else None
        about["routing"] = settings.routing
        self.database.write(lambda c: workers.register(c, about))
        crashpoints.reached("registered")
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    @property
    def has_room(self) -> bool:
        """Whether it could carry one more run; unknown where processes of a pool carry them."""
        with self._lock:
            return self.slots == 0 or len(self._held) < self.slots

    def carry(self, run_id: str) -> Carried:
        """Claims a run and carries it as far as it goes, and after it what else is ready, while that goes fast."""
        if self._stop.is_set():
            return Carried("stopping")
        return self._carrier.carry(run_id) if self._drain is None else self._drain.carry(run_id)

    def stop(self, grace_s: float) -> bool:
        """Claims nothing more, lets steps finish, gives every lease back; False when some had to be taken away."""
        self._stop.set()
        with self._idle:
            for session in self._held.values():
                session.leave.set()
            calm = self._idle.wait_for(lambda: not self._held and not self._acting, timeout=grace_s)
        if not calm:
            log.warning("leaving %d runs in the middle of a step", len(self._held))
            self.database.write(lambda c: runs.release(c, self.worker_id, refund=True))
        self.services.leave()
        tracing.flush()
        crashpoints.reached("leaving")
        self.database.write(lambda c: workers.leave(c, self.worker_id))
        return calm

    @contextmanager
    def acting(self, row_id: str) -> Iterator[None]:
        """Around a call outside of a run: it is kept from being given up, and an orderly leave waits for it."""
        with self._lock:
            self._acting.add(row_id)
        try:
            yield
        finally:
            with self._idle:
                self._acting.discard(row_id)
                self._idle.notify_all()

    @property
    def stopping(self) -> bool:
        """Whether it takes nothing new."""
        return self._stop.is_set()

    def _refill(self, project_ids: Sequence[str]) -> None:
        """Sends what may follow wake-ups that were just claimed."""
        queue.send(self.settings, self.database.write(lambda c: wakes.refill(c, project_ids)))

    def _room(self) -> int:
        """Runs it could take beside those it carries; none while it stops."""
        with self._lock:
            return 0 if self._stop.is_set() else max(0, self.slots - len(self._held))

    @contextmanager
    def _holding(self, run_id: str, held: Held) -> Iterator[None]:
        with self._lock:
            if run_id in self._held:  # it was lost here, and claimed again before that thread came back
                self._held[run_id].stopped.set()
            self._held[run_id] = held
            if self._stop.is_set():  # it began to stop while the run was loaded
                held.leave.set()
        try:
            yield
        finally:
            with self._idle:
                if self._held.get(run_id) is held:
                    del self._held[run_id]
                self._stuck.discard(held)
                self._idle.notify_all()

    def _beat(self) -> None:
        """Renews leases and shows that this worker lives, until the process ends; in between it looks for cancels."""
        renewed = time.monotonic()
        while not self._stop.wait(min(LOOK_S, self.settings.limits.renew_s)):
            try:
                due = time.monotonic() - renewed >= self.settings.limits.renew_s
                self._look(renew=due)
                renewed = time.monotonic() if due else renewed
            except Exception as error:
                log.warning("the heartbeat failed; it is tried again: %s", error)

    def _look(self, *, renew: bool) -> None:
        self._give_up_stuck()
        with self._lock:
            held, acting = dict(self._held), set(self._acting)
        lost: set[str] = set()
        if (held or renew) and self._forks is not None:
            with self.database.read() as connection:
                if runs.any_neglected(connection, self.worker_id, self._neglected_ms):
                    self._forks.get_ready()
        if held and renew:
            lost = self.database.write(lambda c: runs.renew(c, self.worker_id, held, self.lease_ms))
        elif held:
            with self.database.read() as connection:
                lost = runs.not_owned(connection, self.worker_id, held)
                said = repairs.untold(connection, list(held))
            for run_id, found in said.items():
                held[run_id].hear(found)
        if renew:
            self.database.write(lambda c: workers.beat(c, self.worker_id, len(held)))
            if acting:
                self.database.write(lambda c: actions.renew(c, acting))
                self.database.write(lambda c: requests.renew(c, acting, self.lease_ms))
        for run_id in lost:
            held[run_id].stopped.set()

    def _give_up_stuck(self) -> None:
        """Lets runs go on elsewhere whose call is long past its time: no lease is renewed for a thread that is gone."""
        with self._lock:
            stuck = {i: h for i, h in self._held.items() if h.overdue(self.settings.limits.stuck_s)}
            for run_id, held in stuck.items():
                del self._held[run_id]
                self._stuck.add(held)
                held.stopped.set()
            count = len(self._stuck)
        for run_id, held in stuck.items():
            log.error("run %s is stuck in a call that should be over; it goes on elsewhere", run_id)
            move = partial(runs.give_up, run_id=run_id, fence=held.fence, crashed=False)
            queue.send(self.settings, self.database.write(move))
        if count >= self.settings.limits.stuck_calls:
            self.retire(f"{count} calls are stuck in it")


def services(settings: Settings) -> Services:
    """The engine's outside in a worker."""
    database = get_database(settings)
    desk = DeskSignals(settings, database)
    skills = catalogue.build()
    names.taken(skills)
    net = guard_for(settings)
    ports = wiring.wire(settings, skills, embeddings_for(settings, net))
    known = registries(settings, skills, stand_in=settings.stand_in or not settings.has_model)
    checker, presets = Checker(known, partial(_known_now, settings)), load_presets(settings, known)
    for fault in presets.faults:
        log.warning("a preset is left out: %s", fault)

    shell = settings.shell
    keeper = JobKeeper(
        find_sandbox,
        Allowed(shell.network, shell.memory_mib * MIB, shell.job_s),
        over=lambda owner: _is_over(database, owner),
    )

    @lru_cache(maxsize=256)
    def folder(name: str) -> JailedWorkspace:
        root = settings.workspaces / name
        root.mkdir(parents=True, exist_ok=True)
        return JailedWorkspace(root)

    return Services(
        catalogue=skills,
        packs=PACKS,
        journal=StoreJournal(database, lease_ms=round(settings.limits.lease_s * 1000), notifier=Broadcast(settings)),
        model=lambda run: client_for(settings, script=run.script, rehearsal=run.rehearsal),
        limits=settings.limits,
        workspace=lambda run: folder(run.workspace) if run.workspace else None,
        sandbox=lambda _run: find_sandbox(),
        jobs=lambda run: keeper.of(folder(run.workspace).root) if run.workspace else None,
        leave=keeper.close,
        signals=lambda _run: desk,
        memory=ports.memory,
        notebook=ports.notebook,
        net=net,
        web=web_for(settings, net),
        connections=ports.connections,
        schedules=ports.schedules,
        meter=ports.meter,
        painter=PlainPainter(settings, net),
        studio=ports.studio,
        threads=ports.threads,
        agents=ports.agents,
        documents=lambda run: playbooks(settings, _folder(settings, run)),
        kept_documents=StoredDocuments(database),
        scheduler=ports.scheduler,
        webhooks=ports.webhooks,
        mcp=Lazily(settings, net, list(skills)),
        plugins=PluginTools(settings, skills, find_sandbox),
        check=checker.run,
        check_definition=checker.definition,
        targets=lambda run: _targets(settings, database, run, presets),
        task_cost_micro=int(settings.task_cost_usd * 1_000_000),
        listeners=Live(settings),
        model_timeout_s=settings.model_timeout_s,
    )


def _known_now(settings: Settings, known: Registries, run: RunRecord) -> Registries:
    """The registries with what there is for this run at this moment."""
    documents = playbooks(settings, _folder(settings, run)).names
    mine = PluginCards(settings, run.owner_id)
    return replace(known, documents=documents, mcp_servers=mcp_servers(settings).names, plugins=mine)


def _folder(settings: Settings, run: RunRecord) -> Path | None:
    return settings.workspaces / run.workspace if run.workspace else None


class Checker:
    """Both levels of validation; a definition is looked at once, its digest says which it is.

    Documents, plugins and MCP servers come and go while a worker runs, and differ from one to another: a definition
    that names any is judged by those there are now.
    """

    def __init__(self, known: Registries, now: Callable[[Registries, RunRecord], Registries]) -> None:
        self._known = known
        self._now = now
        self._seen: dict[object, list[str]] = {}

    def run(self, run: RunRecord) -> list[str]:
        """Faults of the definition a run starts with."""
        return self._faults(run.definition_digest, run.definition, run)

    def definition(self, body: dict[str, Json], run: RunRecord) -> list[str]:
        """Faults of a definition a run is about to use."""
        return self._faults(digest(body), body, run)

    def _faults(self, of: str, body: dict[str, Json], run: RunRecord) -> list[str]:
        documents = any(isinstance(name, str) and "." not in name for name in body.get("skills") or ())
        known = (
            self._now(self._known, run) if documents or body.get("mcpServers") or body.get("plugins") else self._known
        )
        plugged = tuple(sorted((known.plugins or {}).items())) if body.get("plugins") else ()
        key = (of, known.documents, known.mcp_servers, plugged)
        if key not in self._seen:
            agent, findings = parse_agent(body, known.limits)
            if agent is not None:
                findings = [*findings, *check_registries(agent, known, at_run_start=True)]
            if len(self._seen) > 1_000:
                self._seen.clear()
            self._seen[key] = [f"{f.code}: {f.message}" for f in findings if f.severity == "error"]
        return self._seen[key]


def _is_over(database: Database, owner: str) -> bool:
    """Whether a task has ended; or, where there is no task, a run."""
    with database.read() as connection:
        return tasks.has_ended(connection, owner)


def _targets(settings: Settings, database: Database, run: RunRecord, presets: Presets) -> list[Target]:
    """Agents of the project, then those its owner saved, then presets that can run, then those of the owner's plugins;
    the first of an id wins."""
    with database.read() as connection:
        rows = agents.at_hand(connection, run.owner_id, run.project_id)
    found = [of_row(row) for row in rows]
    there = {target.id for target in found}
    found += [_preset(p.agent) for id_, p in presets.items() if id_ not in there and not p.lacks]
    there |= set(presets)
    for plugin in plugins.enabled(settings, run.owner_id).values():
        made = (AgentDefinition.model_validate(dict(body)) for body in plugin.document.get("agents") or ())
        found += [replace(_preset(agent), level="plugin") for agent in made if agent.id not in there]
    return found


def _preset(agent: AgentDefinition) -> Target:
    return Target(agent.id, agent.name, digest=agent.definition_digest, definition=agent.to_json())


_runtime: Runtime | None = None
_queues: frozenset[str] | None = None
_pid = 0
_making = threading.Lock()


def serve(queues: frozenset[str]) -> None:
    """Names the queues of this process, and of those it forks, before they have a runtime."""
    global _queues
    _queues = queues


def runtime(slots: int | None = None, *, shared: bool = False) -> Runtime:
    """The runtime of this process; a forked child makes its own."""
    global _runtime, _pid
    with _making:
        if _runtime is None or _pid != os.getpid():
            settings = get_settings()
            made = Runtime(settings, slots or settings.worker_slots, shared=shared, queues=_queues)
            _runtime, _pid = made, os.getpid()
        return _runtime
