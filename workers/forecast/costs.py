"""What a task may cost: the least, a likely sum, and the most that its limits let happen.

Before a run nobody knows how often its agent will think. The least is one short answer; the likely sum takes the usual
number of turns below, of the usual size; the most is what the caps on money allow, for a cap is looked at before each
call. A price nobody knows makes all three unknown, which is not the same as nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from orchestrator.settings import Settings
from registry.agents import AgentDefinition
from registry.graph.model import Generate, Map, ModelRef, Spawn
from registry.plans import PlannedTask
from workers.engine.toolset import Toolset
from workers.models import tiers, tokens
from workers.models.model import ModelFault, Usage
from workers.models.prices import MILLION, cost_micro
from workers.models.tiers import Endpoint

#: Tokens of a usual answer, of what its tools say to it, and of the shortest answer.
ANSWER, RESULTS, SHORTEST = 300, 900, 60
#: Turns a usual task takes where its agent has tools.
TURNS: Final = 5
#: Tokens that each dependency adds to what a task is told.
DEPENDENCY: Final = 400


@dataclass(frozen=True)
class Cost:
    """Micro-USD; None is unknown."""

    low: int | None
    likely: int | None
    worst: int | None
    #: What the worst case is bound by.
    bound: str | None = None


FREE: Final = Cost(0, 0, 0, "the stand-in plays the model")
UNKNOWN: Final = Cost(None, None, None)


def of_task(settings: Settings, task: PlannedTask, agent: AgentDefinition, tools: Toolset, cap_micro: int) -> Cost:
    """What one task may cost with the models of the settings.

    Args:
        cap_micro: what the whole project may cost.
    """
    told = tokens.of_text(task.instruction + (task.expected_output or "")) + DEPENDENCY * len(task.depends_on)
    return of_agent(settings, agent, tools, told, cap_micro)


def of_agent(settings: Settings, agent: AgentDefinition, tools: Toolset, told: int, cap_micro: int) -> Cost:
    """The same for any agent that is told so many tokens."""
    low = likely = 0
    dearest = 0.0
    for node in _thinking(agent):
        try:
            endpoints = _endpoints(settings, agent, node)
        except ModelFault:
            return UNKNOWN
        base = told + _said(agent, node, tools)
        turns = _turns(settings, agent) if tools.offered(node) else 1
        # Each turn sends again what was said and answered before it.
        sent = sum(base + turn * (ANSWER + RESULTS) for turn in range(turns))
        least, usual = (
            cost_micro(endpoints[0], Usage(*usage, estimated=True))
            for usage in ((base, SHORTEST), (sent, turns * ANSWER))
        )
        per_token = [_per_token(endpoint) for endpoint in endpoints]
        if least is None or usual is None or None in per_token:
            return UNKNOWN
        low, likely = max(low, least), likely + usual
        dearest = max([dearest, *(price for price in per_token if price is not None)])
    worst, bound = _worst(settings, agent, dearest, cap_micro)
    return Cost(min(low, worst), min(likely, worst), worst, bound)


def total(costs: Iterable[Cost], cap_micro: int) -> Cost:
    """What the tasks cost together; no sum passes the project's cap."""
    found = list(costs)
    low, likely, worst = (_sum(getattr(cost, name) for cost in found) for name in ("low", "likely", "worst"))
    if worst is not None and worst > cap_micro:
        return Cost(_least(low, cap_micro), _least(likely, cap_micro), cap_micro, "the project's maxCostUsd")
    bound = FREE.bound if found and all(cost == FREE for cost in found) else "the limits of its tasks"
    return Cost(low, likely, worst, bound if worst is not None else None)


def delegates(agent: AgentDefinition) -> bool:
    """Whether its runs may have children, whose number nobody knows before."""
    nodes = agent.effective_graph().nodes.values()
    wanted = any(isinstance(node, (Spawn, Map)) for node in nodes)
    return wanted and (agent.graph is not None or "agents" in agent.enabled_packs())


def _thinking(agent: AgentDefinition) -> list[Generate]:
    """The nodes that call a model in the run itself, not in the items of a map."""
    nodes = agent.effective_graph().nodes
    bodies = {inner for node in nodes.values() if isinstance(node, Map) for inner in node.body}
    return [node for node_id, node in nodes.items() if isinstance(node, Generate) and node_id not in bodies]


def _endpoints(settings: Settings, agent: AgentDefinition, node: Generate) -> list[Endpoint]:
    """Where a node's calls may go: the first is the usual one."""
    wanted = node.model if node.model is not None else agent.model
    if isinstance(wanted, str):
        wanted = agent.models.get(wanted, wanted)
    name = wanted.model if isinstance(wanted, ModelRef) else wanted
    tier = name if name in tiers.NEIGHBOURS else agent.tier
    fallback = tuple(ref.model if isinstance(ref, ModelRef) else ref for ref in agent.fallback)
    return tiers.resolve(settings, tier, None if name in tiers.NEIGHBOURS else name, fallback)


def _said(agent: AgentDefinition, node: Generate, tools: Toolset) -> int:
    """Tokens that every call of a node sends: its prompt, and what its tools are for."""
    prompt = agent.prompts.get(node.prompt)
    offered = tools.offered(node)
    about = sum(tokens.of_text(skill.name + skill.description) for skill in tools.registry if skill.name in offered)
    return tokens.of_text(prompt.instructions if prompt else "") + about


def _turns(settings: Settings, agent: AgentDefinition) -> int:
    most = settings.limits.agent_turns + 1 if agent.graph is None else TURNS
    steps = agent.budget.max_steps if agent.budget is not None else None
    return max(1, min(TURNS, most, steps if steps is not None else TURNS))


def _per_token(endpoint: Endpoint) -> float | None:
    """Micro-USD of a token, read or written, whichever is dearer."""
    million = int(MILLION)
    prices = [cost_micro(endpoint, usage) for usage in (Usage(million, 0), Usage(0, million))]
    known = [price for price in prices if price is not None]
    return max(known) / million if len(known) == len(prices) else None


def _worst(settings: Settings, agent: AgentDefinition, dearest: float, cap_micro: int) -> tuple[int, str]:
    """The lowest of the caps that hold, and its name."""
    if dearest == 0:
        return 0, "its models cost nothing"
    million = int(MILLION)
    caps = [(cap_micro, "the project's maxCostUsd"), (int(settings.task_cost_usd * million), "OFFICINA_TASK_COST_USD")]
    budget = agent.budget
    if budget is not None and budget.max_cost_usd is not None:
        caps.append((int(budget.max_cost_usd * million), "the agent's maxCostUsd"))
    if budget is not None and budget.max_tokens is not None and budget.policy == "error" and not delegates(agent):
        caps.append((int(budget.max_tokens * dearest) + 1, "the agent's maxTokens"))
    return min(caps, key=lambda cap: cap[0])


def _sum(values: Iterable[int | None]) -> int | None:
    found = list(values)
    return None if any(value is None for value in found) else sum(value for value in found if value is not None)


def _least(value: int | None, cap: int) -> int | None:
    return None if value is None else min(value, cap)
