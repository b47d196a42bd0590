"""What exists in this installation: what a definition or a project file may name (spec: engine 4.3)."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from orchestrator.settings import Settings
from registry import mcp, presets
from registry.agents import AgentDefinition
from registry.graph.validation import PackCard, Registries
from registry.mcp import Servers
from registry.packs import PACKS
from registry.playbooks import SHIPPED, Library, Playbooks
from registry.presets import Presets
from registry.skills import catalogue
from registry.skills.registry import SkillRegistry
from registry.teams import SavedAgent


class PluginCards(Mapping[str, frozenset[str]]):
    """The tools of an owner's plugins by id, for whoever judges definitions; what
    reads plugins is loaded, and the rows are asked, only when one names a plugin."""

    def __init__(self, settings: Settings, owner_id: str | None = None) -> None:
        self._settings, self._owner_id = settings, owner_id or settings.owner

    @property
    def _now(self) -> dict[str, frozenset[str]]:
        from orchestrator.plugins import enabled

        return {id_: one.tools for id_, one in enabled(self._settings, self._owner_id).items()}

    def __getitem__(self, plugin_id: str) -> frozenset[str]:
        return self._now[plugin_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now)

    def __len__(self) -> int:
        return len(self._now)


def registries(settings: Settings, skills: SkillRegistry | None = None, *, stand_in: bool | None = None) -> Registries:
    """The registries that can be asked here.

    Args:
        skills: the catalogue, when it is built already.
        stand_in: whether the stand-in may play the model, so that no model has to be there; None: as the settings say.
    """
    stand_in = settings.stand_in if stand_in is None else stand_in
    names = {*settings.models, *(model.name for model in settings.models.values())}
    return Registries(
        skills=frozenset(skill.name for skill in skills or catalogue.build()),
        documents=playbooks(settings).names,
        packs={name: PackCard(pack.tool_names, pack.spec_fault) for name, pack in PACKS.items()},
        models=None if stand_in else frozenset(names),
        plugins=PluginCards(settings),
        mcp_servers=mcp_servers(settings).names,
        limits=settings.limits,
    )


def playbooks(settings: Settings, workspace: Path | None = None) -> Playbooks:
    """The documents that ship, the owner's, those of this installation, and those of a workspace; the later win.

    Args:
        workspace: a project's folder; only people write into its `.officina`.
    """
    own = settings.skills_root or Path("~/.officina/skills")
    roots = (SHIPPED, own.expanduser(), settings.home / "skills")
    return _library(roots if workspace is None else (*roots, workspace / ".officina" / "skills")).current()


def usable(settings: Settings, skills: SkillRegistry) -> frozenset[str]:
    """Names an agent of a project may hold: catalogue skills and documents."""
    return frozenset(skill.name for skill in skills) | playbooks(settings).names


def mcp_servers(settings: Settings) -> Servers:
    """The MCP servers of the owner and of this installation; the latter win by id.

    A project's own folder has no say: a program that is named here runs outside of the wall, and agents work there.
    """
    own = settings.mcp_file or Path("~/.officina/mcp.json")
    return mcp.load([own.expanduser(), settings.home / "mcp.json"])


@lru_cache(maxsize=256)
def _library(roots: tuple[Path, ...]) -> Library:
    return Library(roots)


def load_presets(settings: Settings, known: Registries) -> Presets:
    """The presets that ship and the owner's own, which win by id; what they lack is told by `known`."""
    own = settings.presets_root or Path("~/.officina/presets")
    return presets.load([presets.SHIPPED, own.expanduser()], known)


def saved_agents(settings: Settings) -> dict[str, AgentDefinition]:
    """The agents the owner saved, by id; none where there is no database yet."""
    return {agent.id: agent.definition for agent in reusable_agents(settings)}


def reusable_agents(settings: Settings) -> list[SavedAgent]:
    """The same as a team looks at them."""
    from orchestrator.store import agents
    from orchestrator.store.database import get_database, is_new

    database = get_database(settings)
    if is_new(database):
        return []
    with database.read() as connection:
        return agents.for_teams(connection, settings.owner)
