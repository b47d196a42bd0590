"""The second level: whether the names in a definition exist here and now (spec: engine 4.3)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from registry.agents import AgentDefinition
from registry.base import Json
from registry.graph.findings import Finding, Findings, listed, quoted
from registry.graph.limits import USUAL, GraphLimits
from registry.graph.model import Generate, Handoff, ModelRef, Spawn, ToolCall
from registry.graph.targets import AgentCard, candidates

#: Tools an agent with the pack `core` has besides the pack's own, the last two when it has documents.
_SERVICES: Final = ("load_tools",)
_OF_DOCUMENTS: Final = ("load_skill", "Skill")


@dataclass(frozen=True)
class PackCard:
    """A registered pack: its tools, and what its own schema says of a spec (None: nothing is wrong)."""

    tools: frozenset[str]
    spec_fault: Callable[[dict[str, Json]], str | None] = lambda spec: None


@dataclass(frozen=True)
class Registries:
    """What exists where a definition is checked. None stands for a registry that cannot be asked here."""

    #: Catalogue skills by dotted name.
    skills: frozenset[str] | None = None
    #: Documents by kebab name.
    documents: frozenset[str] | None = None
    packs: Mapping[str, PackCard] | None = None
    #: Names of models and tiers that have a model behind them.
    models: frozenset[str] | None = None
    #: Plugin -> its tools.
    plugins: Mapping[str, frozenset[str]] | None = None
    #: MCP servers that are configured; their tools are `<id>__<tool>` or unknown until they run.
    mcp_servers: frozenset[str] | None = None
    agents: tuple[AgentCard, ...] | None = None
    #: Tools of the run set whatever the agent says, such as the stubs of a script.
    extra_tools: frozenset[str] = field(default_factory=frozenset)
    #: The sizes a definition may have here.
    limits: GraphLimits = USUAL


def check_registries(agent: AgentDefinition, known: Registries, *, at_run_start: bool = False) -> list[Finding]:
    """The second level, in the order of its table.

    Args:
        at_run_start: an unknown pack is the host's fault then, and its message says so.
    """
    found = Findings()
    _tools(agent, known, found)
    _models(agent, known, found)
    _skills(agent, known, found)
    _packs(agent, known, found, at_run_start=at_run_start)
    _connections(agent, known, found)
    _targets(agent, known, found)
    return list(found)


def _tools(agent: AgentDefinition, known: Registries, found: Findings) -> None:
    tools = _run_set(agent, known)
    if tools is None:
        return
    for node_id, node in agent.effective_graph().nodes.items():
        path = f"graph.nodes.{node_id}"
        if isinstance(node, ToolCall) and node.name is not None and _dotted(node.name) not in tools:
            message = f"the agent has no tool {quoted(node.name)}{found.nearest(node.name, tools)}"
            found.add("tools_unresolved", f"{path}.name", message)
        for index, name in enumerate(node.tools or () if isinstance(node, Generate) else ()):
            if _dotted(name) not in tools:
                message = f"the agent has no tool {quoted(name)}: it is never offered{found.nearest(name, tools)}"
                found.add("tools_unresolved", f"{path}.tools[{index}]", message, severity="warning")


def _run_set(agent: AgentDefinition, known: Registries) -> set[str] | None:
    """The tool names the agent will have, written with dots; None when they cannot be known before it runs."""
    if known.skills is None or known.packs is None or agent.mcp_servers or (agent.plugins and known.plugins is None):
        return None
    tools = {name for name in agent.skills if name in known.skills} | known.extra_tools
    for name in agent.plugins:
        tools |= (known.plugins or {}).get(name, frozenset())
    packs = agent.enabled_packs()
    for name, settings in packs.items():
        if name in known.packs:
            tools |= known.packs[name].tools - set(settings.disabled_tools)
    if "core" in packs:
        tools.update(_SERVICES + (_OF_DOCUMENTS if agent.documents else ()))
    return {_dotted(name) for name in tools} - {_dotted(name) for name in agent.disallowed_tools}


def _dotted(name: str) -> str:
    """A tool's name, written in either of its two ways."""
    return name.replace("__", ".")


def _models(agent: AgentDefinition, known: Registries, found: Findings) -> None:
    if known.models is None:
        return
    for path, reference in _references(agent):
        name = reference.model if isinstance(reference, ModelRef) else reference
        alias = agent.models.get(name)
        if alias is not None and not path.startswith("models."):
            continue  # the alias is judged where it is defined
        if name not in known.models:
            message = f"no model stands behind {quoted(name)} in the settings{found.nearest(name, known.models)}"
            found.add("model_unresolved", path, message)


def _references(agent: AgentDefinition) -> Iterator[tuple[str, str | ModelRef]]:
    yield ("model", agent.model) if agent.model is not None else ("tier", agent.tier)
    yield from ((f"models.{alias}", reference) for alias, reference in agent.models.items())
    yield from ((f"fallback[{index}]", reference) for index, reference in enumerate(agent.fallback))
    for node_id, node in agent.effective_graph().nodes.items():
        if isinstance(node, Generate) and node.model is not None:
            yield f"graph.nodes.{node_id}.model", node.model
    if agent.compaction is not None and agent.compaction.summary_model is not None:
        yield "compaction.summaryModel", agent.compaction.summary_model


def _skills(agent: AgentDefinition, known: Registries, found: Findings) -> None:
    for index, name in enumerate(agent.skills):
        kind, registry = ("catalogue skill", known.skills) if "." in name else ("document", known.documents)
        if registry is not None and name not in registry:
            message = f"no {kind} has the name {quoted(name)}{found.nearest(name, registry)}"
            found.add("skill_unknown", f"skills[{index}]", message)


def _packs(agent: AgentDefinition, known: Registries, found: Findings, *, at_run_start: bool) -> None:
    if known.packs is None:
        return
    for name, value in agent.packs.items():
        path = f"packs.{name}"
        if name not in known.packs:
            message = f'pack "{name}" is not registered by the host' if at_run_start else f"unknown pack: {name}"
            found.add("pack_unknown", path, message)
        elif value is not None and not isinstance(value, bool):
            card = known.packs[name]
            reason = card.spec_fault(value.spec)
            if reason is not None:
                found.add("pack_spec_invalid", f"{path}.spec", reason)
            named = [(f"{path}.disabledTools[{i}]", tool) for i, tool in enumerate(value.disabled_tools)]
            named += [(f"{path}.exposure.{tool}", tool) for tool in value.exposure]
            for place, tool in named:
                if tool not in card.tools:
                    message = f"the pack {name} has no tool {quoted(tool)}{found.nearest(tool, card.tools)}"
                    found.add("pack_tool_unknown", place, message)


def _connections(agent: AgentDefinition, known: Registries, found: Findings) -> None:
    for index, plugin in enumerate(agent.plugins):
        if known.plugins is not None and plugin not in known.plugins:
            message = f"no plugin {quoted(plugin)} is installed and enabled{found.nearest(plugin, known.plugins)}"
            found.add("plugin_unknown", f"plugins[{index}]", message)
    for index, server in enumerate(agent.mcp_servers):
        if known.mcp_servers is not None and server not in known.mcp_servers:
            message = f"no MCP server {quoted(server)} is configured{found.nearest(server, known.mcp_servers)}"
            found.add("mcp_server_unknown", f"mcpServers[{index}]", message)


def _targets(agent: AgentDefinition, known: Registries, found: Findings) -> None:
    if known.agents is None:
        return
    for node_id, node in agent.effective_graph().nodes.items():
        path = f"graph.nodes.{node_id}"
        if isinstance(node, Handoff) and not node.agent_id.startswith("$"):
            reason = _no_speaker(node.agent_id, known.agents, found)
            if reason:
                found.add("handoff_target", f"{path}.agentId", reason)
        if isinstance(node, Spawn) and isinstance(node.calls, list):
            for index, call in enumerate(node.calls):
                target = call.get("agentId") if isinstance(call, dict) else None
                if isinstance(target, str) and not target.startswith("$") and len(_meant(target, known.agents)) != 1:
                    message = f"{_unclear(target, known.agents, found)}: its item will fail unless that changes"
                    found.add("spawn_target_missing", f"{path}.calls[{index}].agentId", message)


def _meant(text: str, agents: tuple[AgentCard, ...]) -> list[AgentCard]:
    return [agent for agent in candidates(text, agents) if agent.level != "delegate"]


def _no_speaker(text: str, agents: tuple[AgentCard, ...], found: Findings) -> str | None:
    """Why a run cannot be handed to the agent of this name."""
    meant = candidates(text, agents)
    if len(meant) != 1:
        return _unclear(text, agents, found)
    level = meant[0].level
    return None if level == "top" else f"{quoted(text)} is a {level} agent: only a top-level agent takes a run over"


def _unclear(text: str, agents: tuple[AgentCard, ...], found: Findings) -> str:
    meant = candidates(text, agents)
    if len(meant) > 1:
        return f"{quoted(text)} may mean {listed([agent.id for agent in meant])}: write the id"
    return f"no agent is called {quoted(text)}{found.nearest(text, [agent.id for agent in agents])}"
