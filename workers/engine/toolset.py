"""The run set: every tool an agent may use, built once per run segment (spec: engine 10).

In this order: catalogue skills of `skills`, tools of its MCP servers, tools of its packs as their overrides leave them,
tools of its plugins, less `disallowedTools` and what a child lacks; last the services `load_tools` and `load_skill`.
What is not in it does not exist for the run; what a node offers is a part of it, never more.

A deferred tool is in the set and hidden from the model until `load_tools` names it. Names that were loaded stand in the
state (`loadedTools`), so that they outlive parks, crashes and the worker.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from registry.agents import AgentDefinition
from registry.base import Json, Model
from registry.errors import RunFailure, SkillError
from registry.graph import expressions
from registry.graph.model import Generate
from registry.packs import services as core
from registry.skills.registry import SkillRegistry
from registry.skills.skill import Skill
from workers.engine.services import Services
from workers.models.model import Tool

#: What a child is not offered, by its kind (spec: engine 6, 9).
LACKS = {"spawn": ("ask_user", "wait"), "item": ("ask_user", "wait", "map", "agents_handoff")}

#: The tools of plugins by id; told which of them have a name that is taken.
Plugged = Callable[[Sequence[str], Callable[[Skill], bool]], Sequence[Skill]]

#: Where the state keeps the names of deferred tools that were loaded.
LOADED = "loadedTools"


@dataclass(frozen=True)
class Offer:
    """What one model call offers: names that can be called, and deferred tools that can be loaded first."""

    names: frozenset[str]
    deferred: frozenset[str]


#: A model call without tools.
NOTHING = Offer(frozenset(), frozenset())


class Toolset:
    """The tools of one run."""

    def __init__(
        self,
        agent: AgentDefinition,
        services: Services,
        *,
        kind: str,
        serve: Callable[[Sequence[str]], Sequence[Skill]] = lambda _ids: (),
        plugged: Plugged = lambda _ids, _taken: (),
    ) -> None:
        """
        Args:
            kind: of the run; children lack some tools.
            serve: the tools of these MCP servers, which are started for it; asked when the set is first looked at.
            plugged: the tools of these plugins, less those whose name is taken.
        """
        self.agent = agent
        #: The packs it holds.
        self.packs = [services.packs[name] for name in agent.enabled_packs() if name in services.packs]
        self.history_keys = _history_keys(agent)
        self._services, self._kind, self._serve, self._plugged = services, kind, serve, plugged

    @cached_property
    def registry(self) -> SkillRegistry:
        """Every tool of the set, hidden ones too."""
        return SkillRegistry(_run_set(self.agent, self._services, self._kind, self._serve, self._plugged))

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(skill.name for skill in self.registry)

    @cached_property
    def deferred(self) -> frozenset[str]:
        """Tools that their source or their agent hides until they are loaded."""
        exposed = {
            tool: how for settings in self.agent.enabled_packs().values() for tool, how in settings.exposure.items()
        }
        hidden = {s.name for s in self.registry if exposed.get(s.name, "deferred" if s.deferred else "") == "deferred"}
        return frozenset(hidden) - core.NAMES

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

    def offered(self, node: Generate | None, loaded: Sequence[str] = ()) -> frozenset[str]:
        """The names a model call of this node can use; unknown names in `tools` are invisible, not errors.

        Args:
            loaded: deferred tools that `load_tools` has shown, in the order they were.
        """
        return self.offer(node, loaded).names

    def offer(self, node: Generate | None, loaded: Sequence[str] = ()) -> Offer:
        """The same, and what can be loaded: more tools than a request takes are deferred, the last ones by name."""
        mine = self._of_node(node)
        seen = mine - (self.deferred - frozenset(loaded)) if self.deferred else mine
        most = self._services.limits.tools_per_request
        if len(seen) > most:
            first = [*sorted(seen & core.NAMES), *(n for n in reversed(loaded) if n in seen), *sorted(seen)]
            seen = frozenset(list(dict.fromkeys(first))[:most])
        return Offer(seen, mine - seen)

    def described(self, names: Iterable[str]) -> list[Tool]:
        """Offered tools as the model sees them, sorted by name."""
        wanted = frozenset(names)
        return [Tool(s.wire_name, s.description, s.input.schema) for s in self.registry if s.name in wanted]

    def _of_node(self, node: Generate | None) -> frozenset[str]:
        if node is None or node.tools is None:
            return self.names
        found = (self.registry.find(name) for name in node.tools)
        return frozenset(skill.name for skill in found if skill is not None)


def loaded_names(state: Mapping[str, Json]) -> list[str]:
    """The names in `loadedTools`; a graph may write the key, so whatever is no name is passed over."""
    found = state.get(LOADED)
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _run_set(
    agent: AgentDefinition,
    services: Services,
    kind: str,
    serve: Callable[[Sequence[str]], Sequence[Skill]],
    plugged: Plugged,
) -> Iterator[Skill]:
    chosen: dict[str, Skill] = {}
    for skill in _sources(agent, services, serve):
        chosen.setdefault(skill.name, skill)
    chosen |= {skill.name: skill for skill in services.extra_tools}
    if agent.plugins:
        names = {name for skill in chosen.values() for name in (skill.wire_name, *skill.aliases)} | core.NAMES
        chosen |= {skill.name: skill for skill in plugged(agent.plugins, lambda skill: skill.wire_name in names)}
    gone = {*agent.disallowed_tools, *(name.replace("__", ".") for name in agent.disallowed_tools)}
    gone |= set(LACKS.get(kind, ()))
    for skill in (*chosen.values(), *_services(agent, services, chosen)):
        if skill.name not in gone and not gone.intersection(skill.aliases):
            yield skill


def _sources(
    agent: AgentDefinition, services: Services, serve: Callable[[Sequence[str]], Sequence[Skill]]
) -> Iterator[Skill]:
    found = (services.catalogue.find(name) for name in agent.skills if "." in name)
    yield from (skill for skill in found if skill is not None)
    if agent.mcp_servers:
        yield from serve(agent.mcp_servers)
    for pack, settings in agent.enabled_packs().items():
        for skill in services.packs[pack].tools if pack in services.packs else ():
            if skill.name not in settings.disabled_tools:
                yield services.packs[pack].fitted(skill, settings.spec)


def _services(agent: AgentDefinition, services: Services, taken: Mapping[str, Skill]) -> Iterator[Skill]:
    """`load_tools`, and `load_skill` for an agent with documents; a stub of their name hides them."""
    if core.PACK not in agent.enabled_packs():
        return
    if core.LOAD_TOOLS not in taken:
        yield core.load_tools(services.limits.load_tools_names)
    if agent.documents and core.LOAD_SKILL not in taken:
        yield core.load_skill


def _history_keys(agent: AgentDefinition) -> frozenset[str]:
    keys = {"messages"}
    for node in agent.effective_graph().nodes.values():
        if isinstance(node, Generate) and (key := expressions.compile(node.messages).state_key):
            keys.add(key)
    return frozenset(keys)
