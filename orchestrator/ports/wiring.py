"""The ports over rows, made together for whoever calls skills: a worker, the command line, the API."""

from dataclasses import dataclass, replace
from functools import cache

from orchestrator.known import load_presets, mcp_servers, playbooks, registries
from orchestrator.ports.agents import StoredAgents
from orchestrator.ports.connections import StoredConnections
from orchestrator.ports.memory import StoredMemories
from orchestrator.ports.meter import CountingMeter
from orchestrator.ports.notebook import notebook
from orchestrator.ports.scheduler import StoredScheduler
from orchestrator.ports.schedules import StoredSchedules
from orchestrator.ports.studio import StoredStudio
from orchestrator.ports.threads import StoredThreads
from orchestrator.ports.voices import Rooms
from orchestrator.ports.webhooks import StoredWebhooks
from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from orchestrator.vault import Vault
from registry.graph.validation import Registries
from registry.packs import PACKS
from registry.presets import Presets
from registry.skills.notebook import Embeddings, Notebook
from registry.skills.registry import SkillRegistry


@dataclass(frozen=True)
class RowPorts:
    memory: StoredMemories
    notebook: Notebook
    connections: StoredConnections
    schedules: StoredSchedules
    meter: CountingMeter
    studio: StoredStudio
    agents: StoredAgents
    threads: StoredThreads
    scheduler: StoredScheduler
    webhooks: StoredWebhooks


def wire(settings: Settings, skills: SkillRegistry, embeddings: Embeddings | None = None) -> RowPorts:
    """The ports of this installation; nothing is opened before the first call.

    Args:
        embeddings: what compares texts by their meaning, where something does.
    """
    database = get_database(settings)
    tools = [*skills, *(tool for pack in PACKS.values() for tool in pack.tools)]
    outside = [tool.name for tool in tools if tool.open_world]

    @cache
    def known() -> Registries:
        return registries(settings, skills, stand_in=settings.stand_in or not settings.has_model)

    def known_now() -> Registries:
        """The same with the documents and servers of this moment: people add them while workers run."""
        return replace(known(), documents=playbooks(settings).names, mcp_servers=mcp_servers(settings).names)

    @cache
    def presets() -> Presets:
        return load_presets(settings, known())

    rooms = Rooms(
        presets=lambda: {id_: preset.agent for id_, preset in presets().items() if not preset.lacks},
        max_cost_micro=int(settings.project_cost_usd * 1_000_000),
        max_parallel=settings.limits.parallel_tasks,
        skills=tuple(sorted(skill.name for skill in skills)),
        script={} if settings.stand_in else None,
    )

    return RowPorts(
        memory=StoredMemories(database, outside=outside, most=settings.keeping.memories),
        notebook=notebook(
            database,
            settings.keeping,
            outside=outside,
            embeddings=embeddings,
            nearness=settings.embeddings.nearness if settings.embeddings else 1.0,
        ),
        connections=StoredConnections(settings, database),
        schedules=StoredSchedules(settings, database, skills),
        meter=CountingMeter(settings),
        studio=StoredStudio(database, skills),
        threads=StoredThreads(database),
        agents=StoredAgents(database, known_now, lambda: [card.name for card in presets().cards]),
        scheduler=StoredScheduler(database, rooms),
        webhooks=StoredWebhooks(lambda: Vault(settings), database, rooms, settings.by),
    )
