"""The pack `agents`: who is there, and giving work to them through the nodes of the running graph (spec: engine 15)."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, StringConstraints

from registry.base import Json, Model
from registry.errors import SkillError
from registry.graph.targets import AgentCard, candidates
from registry.packs.pack import Pack
from registry.skills.context import Control, SkillContext
from registry.skills.skill import skill

Name = Annotated[str, StringConstraints(min_length=1, max_length=120)]
Limit = Annotated[int, Field(ge=1)]


class ListAgents(Model):
    role: Name | None = None
    name: Name | None = None


class Budget(Model):
    max_steps: Limit | None = None
    max_tokens: Limit | None = None
    deadline_ms: Limit | None = None


class Call(Model):
    agent_id: Name
    input: str | dict[str, Json]
    budget: Budget | None = None


class SpawnAgents(Model):
    calls: Annotated[list[Call], Field(min_length=1, max_length=256)]


class Queued(Model):
    queued: list[dict[str, Json]]


class HandOff(Model):
    agent_id: Name


class HandedOff(Model):
    agent_id: str


@skill("agents_list", title="List agents", timeout_s=5, catalogued=False, documented=False)
def list_agents(asked: ListAgents, context: SkillContext) -> list[dict[str, Json]]:
    """Lists the agents you can give work to, with role, level, packs and skills."""
    rows = [agent.to_json() for agent in context.roster]
    return [
        row
        for row in rows
        if (asked.role is None or row["role"] == asked.role) and (asked.name is None or row["name"] == asked.name)
    ]


@skill("agents_spawn", title="Spawn agents", timeout_s=5, effect="idempotent", catalogued=False, documented=False)
def spawn_agents(wanted: SpawnAgents, context: SkillContext) -> Queued:
    """Queues one child run for each call, each by the agent it names; their results come back to you together."""
    control = _control(context)
    cards = [member.card for member in context.roster]
    queued = [
        {"agentId": _one(call.agent_id, cards).id, "input": call.input}
        | ({"budget": call.budget.to_json()} if call.budget else {})
        for call in wanted.calls
    ]
    control.extend("control:spawn", "spawns", queued)
    return Queued(queued=[{"agentId": call["agentId"]} for call in queued])


@skill("agents_handoff", title="Hand off", timeout_s=5, effect="idempotent", catalogued=False, documented=False)
def hand_off(wanted: HandOff, context: SkillContext) -> HandedOff:
    """Hands the whole conversation over to another agent, who goes on in your place."""
    control = _control(context)
    target = _one(wanted.agent_id, [member.card for member in context.roster])
    if target.id == context.caller.agent_id:
        raise SkillError("invalid_input", "you are that agent yourself")
    if target.level != "top":
        raise SkillError("invalid_input", f"{target.id} is a {target.level} agent and can only be spawned")
    control.queue("control:handoff", "handoffAgentId", target.id)
    return HandedOff(agent_id=target.id)


def _one(text: str, cards: Sequence[AgentCard]) -> AgentCard:
    found = candidates(text, cards)
    if len(found) == 1:
        return found[0]
    several = "several agents are" if found else "no agent is"
    names = ", ".join(f"{card.id} ({card.name})" for card in cards[:20]) or "none"
    raise SkillError("invalid_input", f"{several} meant by {text!r}; there are: {names}")


def _control(context: SkillContext) -> Control:
    if context.control is None:
        raise SkillError("no_control_node", "this call is not part of a graph that could do it")
    return context.control


PACK = Pack("agents", "see who is there, and give work to them", (list_agents, spawn_agents, hand_off))
