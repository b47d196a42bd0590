"""What the engine is given: the outside of a run, in one place, so that a worker and `graph run` differ only here."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from orchestrator.journal import Journal
from orchestrator.limits import Limits
from orchestrator.records import RunRecord
from registry.base import Json
from registry.connections import Connections
from registry.packs import Pack
from registry.playbooks import Playbook
from registry.skills.context import Sandbox, Signals, Workspace
from registry.skills.jobs import Jobs
from registry.skills.metering import Meter
from registry.skills.network import Network
from registry.skills.notebook import Notebook
from registry.skills.pages import Web
from registry.skills.ports import Agents, Memories, Schedules, Studio, Threads
from registry.skills.registry import SkillRegistry
from registry.skills.skill import Skill
from registry.skills.triggers import Scheduler, Webhooks
from workers.engine.speech import Listeners, Nobody
from workers.engine.targets import Target
from workers.models.model import ModelClient
from workers.models.painting import Painter


def _nothing(_run: RunRecord) -> None:
    return None


class KeptDocuments(Protocol):
    """Documents as runs began with them."""

    def keep(self, books: Iterable[Playbook]) -> None:
        """Stores documents under their digests."""
        ...

    def get(self, digest: str) -> Playbook:
        """One that was stored."""
        ...


class Serving(Protocol):
    """Gives the tools of MCP servers by id; says which server, or tool of it, is left out, and why."""

    def __call__(self, ids: Sequence[str], left_out: Callable[[str, str | None, str], None]) -> Sequence[Skill]: ...


def no_servers(ids: Sequence[str], left_out: Callable[[str, str | None, str], None]) -> Sequence[Skill]:
    """Where no server can be started, each is left out."""
    for id_ in ids:
        left_out(id_, None, "MCP servers cannot be started here")
    return ()


#: Told which source, or which tool of it, is left out, and why.
LeftOut = Callable[[str, str | None, str], None]


class Plugins(Protocol):
    """The plugins of owners, each call of one behind the sandbox's wall."""

    def skills(self, owner_id: str, ids: Sequence[str], left_out: LeftOut) -> Sequence[Skill]:
        """The tools of these plugins."""
        ...

    def hook(
        self, owner_id: str, name: str, payload: dict[str, Json], *, timeout_s: float, cancelled: Callable[[], bool]
    ) -> Json:
        """What the hook `<plugin>.<function>` answers.

        Raises:
            LookupError: no plugin of the owner has it.
            SkillError: it could not run, or failed.
        """
        ...


class NoPlugins:
    """Where no plugin can run, each is left out."""

    def skills(self, owner_id: str, ids: Sequence[str], left_out: LeftOut) -> Sequence[Skill]:
        for id_ in ids:
            left_out(id_, None, "plugins cannot run here")
        return ()

    def hook(
        self, owner_id: str, name: str, payload: dict[str, Json], *, timeout_s: float, cancelled: Callable[[], bool]
    ) -> Json:
        raise LookupError(name)


class ForgottenDocuments:
    """Where there are no documents, none is kept."""

    def keep(self, books: Iterable[Playbook]) -> None:
        """Keeps nothing."""

    def get(self, digest: str) -> Playbook:
        raise KeyError(digest)


@dataclass
class Services:
    """One per worker process; everything in it is safe to use from many runs at once."""

    catalogue: SkillRegistry
    packs: Mapping[str, Pack]
    journal: Journal
    #: Which client plays the model of a run: a real one, the stand-in, scripted turns.
    model: Callable[[RunRecord], ModelClient]
    limits: Limits = field(default_factory=Limits)
    workspace: Callable[[RunRecord], Workspace | None] = _nothing
    sandbox: Callable[[RunRecord], Sandbox | None] = _nothing
    #: Commands and jobs in the workspace of a run.
    jobs: Callable[[RunRecord], Jobs | None] = _nothing
    signals: Callable[[RunRecord], Signals | None] = _nothing
    memory: Memories | None = None
    notebook: Notebook | None = None
    schedules: Schedules | None = None
    scheduler: Scheduler | None = None
    webhooks: Webhooks | None = None
    studio: Studio | None = None
    threads: Threads | None = None
    agents: Agents | None = None
    #: Who makes pictures, and what they cost at most.
    painter: Painter | None = None
    #: Everything that goes out; None: no skill and no hook reaches a host.
    net: Network | None = None
    web: Web | None = None
    connections: Connections | None = None
    meter: Meter | None = None
    #: Tools every agent has beside its own (stub tools of a scripted run); they hide pack tools of the same name.
    extra_tools: Iterable[Skill] = ()
    #: The documents there are now, for a run of this workspace.
    documents: Callable[[RunRecord], Mapping[str, Playbook]] = field(default=lambda _run: {})
    kept_documents: KeptDocuments = field(default_factory=ForgottenDocuments)
    #: The tools of MCP servers, which are started for it; told of each server or tool that is left out, and why.
    mcp: Serving = no_servers
    plugins: Plugins = field(default_factory=NoPlugins)
    #: Faults of a run's definition; any of them stops it before its first step.
    check: Callable[[RunRecord], list[str]] = field(default=lambda _run: [])
    #: The same for a definition that a run is about to use: a child's, the target's of a handoff.
    check_definition: Callable[[dict[str, Json], RunRecord], list[str]] = field(default=lambda _definition, _run: [])
    #: Agents that a run may spawn or hand over to.
    targets: Callable[[RunRecord], Sequence[Target]] = field(default=lambda _run: ())
    now_ms: Callable[[], int] = field(default=lambda: time.time_ns() // 1_000_000)
    #: Micro-USD one task may cost; None: no limit of its own.
    task_cost_micro: int | None = None
    #: Called when this process leaves: ends what it keeps beside its runs.
    leave: Callable[[], None] = field(default=lambda: None)
    #: Who hears what runs say while they say it.
    listeners: Listeners = field(default_factory=Nobody)
    #: Seconds one model call may take.
    model_timeout_s: float = 120

    def ports(self, run: RunRecord) -> dict[str, Any]:
        """The ports every call of a run gets, as a context names them."""
        return {
            "workspace": self.workspace(run),
            "sandbox": self.sandbox(run),
            "jobs": self.jobs(run),
            "signals": self.signals(run),
            "memory": self.memory,
            "notebook": self.notebook,
            "schedules": self.schedules,
            "scheduler": self.scheduler,
            "webhooks": self.webhooks,
            "studio": self.studio,
            "threads": self.threads,
            "agents": self.agents,
            "net": self.net,
            "web": self.web,
            "connections": self.connections,
            "meter": self.meter,
        }
