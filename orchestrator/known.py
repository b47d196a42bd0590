"""What exists in this installation: what a definition or a project file may name (spec: engine 4.3)."""

from orchestrator.settings import Settings
from registry.graph.validation import PackCard, Registries
from registry.packs import PACKS
from registry.skills import catalogue
from registry.skills.registry import SkillRegistry


def registries(settings: Settings, skills: SkillRegistry | None = None) -> Registries:
    """The registries that can be asked here; models only where real ones are configured and play."""
    names = {*settings.models, *(model.name for model in settings.models.values())}
    return Registries(
        skills=frozenset(skill.name for skill in skills or catalogue.build()),
        documents=frozenset(),
        packs={name: PackCard(frozenset(tool.name for tool in tools)) for name, tools in PACKS.items()},
        models=frozenset(names) if names and not settings.stand_in else None,
        plugins={},
        mcp_servers=frozenset(),
    )
