"""The run set: every tool an agent may use, built once per run segment (spec: engine 10).

Catalogue skills of `skills`, tools of its packs, less `disabledTools` and `disallowedTools`. What is not in it does not
exist for the run; what a node offers is a part of it, never more.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property

from registry.agents import AgentDefinition
from registry.base import Model
from registry.errors import RunFailure, SkillError
from registry.graph import expressions
from registry.graph.model import Generate
from registry.skills.registry import SkillRegistry
from registry.skills.skill import Skill
from workers.engine.services import Services
from workers.models.model import Tool

#: What a child is not offered, by its kind (spec: engine 6, 9).
LACKS = {"spawn": ("ask_user", "wait"), "item": ("ask_user", "wait", "map", "agents_handoff")}


class Toolset:
    """The tools of one run."""

    def __init__(self, agent: AgentDefinition, services: Services, *, kind: str) -> None:
        self.agent = agent
        self.registry = SkillRegistry(s for s in _run_set(agent, services) if s.name not in LACKS.get(kind, ()))
        self.names = frozenset(skill.name for skill in self.registry)
        #: The packs it holds.
        self.packs = [services.packs[name] for name in agent.enabled_packs() if name in services.packs]
        self.history_keys = _history_keys(agent)

    @cached_property
    def specs(self) -> Mapping[type[Model], Model]:
        """The settings of its packs, by the class of each.

        Raises:
            RunFailure: `agent_invalid`, where only the structure of the definition was validated before the run.
        """
        enabled = self.agent.enabled_packs()
        try:
            return {pack.spec: pack.settings(enabled[pack.name].spec) for pack in self.packs}
        except SkillError as error:
            raise RunFailure("agent_invalid", f"the settings of a pack do not fit: {error.message}") from None

    def named(self, name: str) -> str:
        """The name calls are stored under, of a dotted or a wire name."""
        known = self.registry.find(name)
        return known.name if known else name

    def offered(self, node: Generate | None) -> frozenset[str]:
        """The names a model call of this node offers; unknown names in `tools` are invisible, not errors."""
        if node is None or node.tools is None:
            return self.names
        found = (self.registry.find(name) for name in node.tools)
        return frozenset(skill.name for skill in found if skill is not None)

    def described(self, names: Iterable[str], most: int) -> list[Tool]:
        """Offered tools as the model sees them, sorted by name."""
        skills = sorted((s for s in self.registry if s.name in set(names)), key=lambda s: s.name)
        return [Tool(s.wire_name, s.description, s.input.schema) for s in skills[:most]]


def _run_set(agent: AgentDefinition, services: Services) -> list[Skill]:
    chosen: dict[str, Skill] = {}
    for name in agent.skills:
        skill = services.catalogue.find(name)
        if skill is not None:
            chosen[skill.name] = skill
    for pack, settings in agent.enabled_packs().items():
        for skill in services.packs[pack].tools if pack in services.packs else ():
            if skill.name not in settings.disabled_tools:
                chosen.setdefault(skill.name, skill)
    chosen |= {skill.name: skill for skill in services.extra_tools}
    gone = {name.replace("__", ".") for name in agent.disallowed_tools} | set(agent.disallowed_tools)
    return [skill for name, skill in chosen.items() if name not in gone]


def _history_keys(agent: AgentDefinition) -> frozenset[str]:
    keys = {"messages"}
    for node in agent.effective_graph().nodes.values():
        if isinstance(node, Generate) and (key := expressions.compile(node.messages).state_key):
            keys.add(key)
    return frozenset(keys)
