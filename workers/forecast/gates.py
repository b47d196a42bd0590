"""Where a task will stop for a person, as far as that can be told before it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from orchestrator.limits import Limits
from registry.agents import AgentDefinition
from registry.graph.model import Interrupt, ToolCall, Wait
from registry.packs import Pack
from registry.permissions import Gate, Mode, Operation, Policy
from registry.skills.registry import SkillRegistry
from registry.skills.skill import Skill
from workers.engine.services import Services
from workers.engine.toolset import Toolset


@dataclass(frozen=True)
class Gated:
    """A skill, and why its calls do not simply run."""

    skill: str
    reason: str


@dataclass(frozen=True)
class Stop:
    """A node at which the run waits for a person."""

    node: str
    reason: str


@dataclass(frozen=True)
class Gates:
    #: Every call waits for a person's yes.
    asks: list[Gated] = field(default_factory=list)
    #: It depends on the input of the call.
    may_ask: list[Gated] = field(default_factory=list)
    denied: list[Gated] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)


@dataclass(frozen=True)
class Offer:
    """What there is to hold, as a run set is built of it."""

    catalogue: SkillRegistry
    packs: Mapping[str, Pack]
    extra_tools: tuple[Skill, ...] = ()
    limits: Limits = field(default_factory=Limits)


def run_set(agent: AgentDefinition, offer: Offer) -> Toolset:
    """The tools the root run of a task will have."""
    # A run set is made of these; the rest of a worker's services exists only in a worker.
    return Toolset(agent, cast(Services, offer), kind="task")


def judge(agent: AgentDefinition, tools: Toolset, permissions: Mapping[Operation, Gate], mode: Mode | None) -> Gates:
    """How the calls of an agent would be judged.

    Args:
        permissions: of the project.
        mode: of the project or the submit; the agent's own counts where there is none.
    """
    policy = Policy(agent.permissions, permissions, mode or agent.mode)
    listed = _approved(agent)
    found = Gates(stops=_stops(agent))
    for skill in sorted(tools.registry, key=lambda skill: skill.name):
        if skill.name in listed:
            found.asks.append(Gated(skill.name, f"the node {listed[skill.name]} asks before it"))
        elif callable(skill.operations):
            found.may_ask.append(Gated(skill.name, "what it does depends on its input"))
        else:
            verdict = policy.judge(skill.operations)
            gated = Gated(skill.name, verdict.reason)
            if verdict.gate == "ask":
                found.asks.append(gated)
            elif verdict.gate == "deny":
                found.denied.append(gated)
    return found


def _approved(agent: AgentDefinition) -> dict[str, str]:
    """Tools that a node of the graph asks before, and that node."""
    nodes = agent.effective_graph().nodes.items()
    batches = ((node_id, node.approve) for node_id, node in nodes if isinstance(node, ToolCall))
    return {tool.replace("__", "."): node_id for node_id, approve in batches if approve for tool in approve.tools}


def _stops(agent: AgentDefinition) -> list[Stop]:
    found = []
    for node_id, node in agent.effective_graph().nodes.items():
        if isinstance(node, Interrupt):
            found.append(Stop(node_id, node.reason))
        elif isinstance(node, Wait) and not node.is_sleep:
            found.append(Stop(node_id, node.reason or "waits for an answer"))
    return found
