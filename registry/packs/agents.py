"""The pack `agents`: who is there, giving work to them through the nodes of the running graph, and writing agents of
one's own (spec: engine 15)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from registry.base import Json, Model
from registry.errors import SkillError
from registry.graph.targets import AgentCard, candidates
from registry.packs.pack import Pack
from registry.permissions import Gate
from registry.skills.context import Colleague, Control, SkillContext
from registry.skills.ports import Agents
from registry.skills.skill import tool
from registry.text import not_blank, one_line

if TYPE_CHECKING:
    from registry import authored

NOT_WIRED: Final = "no agents can be saved here: nothing was done"

Name = Annotated[str, StringConstraints(min_length=1, max_length=120)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=60, strip_whitespace=True), AfterValidator(one_line)]
Role = Annotated[str, StringConstraints(min_length=1, max_length=40, strip_whitespace=True), AfterValidator(one_line)]
Instructions = Annotated[str, StringConstraints(min_length=1, max_length=20_000), AfterValidator(not_blank)]
SkillName = Annotated[str, StringConstraints(min_length=1, max_length=60)]
Limit = Annotated[int, Field(ge=1)]


class ListAgents(Model):
    role: Name | None = None
    name: Name | None = None


class Limits(Model):
    """Limits of one child; at least one."""

    max_steps: Limit | None = None
    max_tokens: Limit | None = None
    deadline_ms: Limit | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Limits":
        if not self.to_json().keys() - {"policy"}:
            raise ValueError("a budget names at least one of maxSteps, maxTokens, deadlineMs; else leave it out")
        return self


class AgentBudget(Limits):
    """Limits of every run of an agent."""

    max_cost_usd: Annotated[float, Field(gt=0)] | None = None
    policy: Literal["ask", "error"] = "error"


class Call(Model):
    agent_id: Name
    input: str | dict[str, Json]
    budget: Limits | None = None


class SpawnAgents(Model):
    calls: Annotated[list[Call], Field(min_length=1, max_length=256)]


class Queued(Model):
    #: [{agentId, spawnId}], in the order of the calls.
    queued: list[dict[str, Json]]


class HandOff(Model):
    agent_id: Name


class HandedOff(Model):
    agent_id: str


class CreateDelegate(Model):
    name: Label
    role: Role
    instructions: Instructions
    skills: list[SkillName] = Field(default=[], max_length=60)
    tier: Literal["fast", "standard", "deep"] | None = Field(default=None, description="yours when left out")
    budget: AgentBudget | None = None
    packs: dict[str, Json] = Field(default={}, max_length=40, description="pack -> true, or its settings")
    permissions: dict[str, Gate] = Field(default={}, max_length=20, description="operation -> allow, ask, deny")
    graph: dict[str, Json] | None = None


class CreateAgent(Model):
    name: Label
    role: Role
    instructions: Instructions
    skills: list[SkillName] = Field(default=[], max_length=60)
    mcp_servers: list[SkillName] = Field(default=[], max_length=20)
    tier: Literal["fast", "standard", "deep"] | None = Field(default=None, description="yours when left out")
    budget: AgentBudget | None = None
    packs: dict[str, Json] = Field(default={}, max_length=40, description="pack -> true, or its settings")
    graph: dict[str, Json] | None = None


class UpdateAgent(Model):
    agent_id: Name
    name: Label | None = None
    role: Role | None = None
    instructions: Instructions | None = None
    budget: AgentBudget | None = Field(default=None, description="takes the place of the whole budget")


class DeleteAgent(Model):
    agent_id: Name


class AgentRow(Model):
    id: str
    name: str
    role: str | None
    #: `top` or `delegate`.
    level: str
    packs: list[str]
    skills: list[str]


class Removed(Model):
    #: The id.
    removed: str
    name: str


@tool("agents_list", title="List agents", timeout_s=5)
def list_agents(asked: ListAgents, context: SkillContext) -> list[dict[str, Json]]:
    """Lists the agents you can give work to, with role, level, packs and skills. Level top: they can be spawned and
    handed over to; delegate (yours) and plugin: spawned only."""
    rows = [agent.to_json() for agent in context.roster]
    return [
        row
        for row in rows
        if (asked.role is None or row["role"] == asked.role) and (asked.name is None or row["name"] == asked.name)
    ]


@tool(
    "agents_create",
    title="Create an agent",
    timeout_s=10,
    operations=("agents",),
    effect="once",
    needs=("agents",),
    fails=("conflict", "quota"),
)
def create_agent(wanted: CreateAgent, context: SkillContext) -> AgentRow:
    """Saves a new agent for the person you work for: it stays, and every run of theirs can spawn it or hand over to it.
    A name that is taken, an unknown skill, pack or server, or a fault in the graph refuses the whole; nothing is
    written then. Packs are on by name (`{"files": true}`). It asks a person as you do; its tier is yours unless you
    give a lower one."""
    from registry import authored

    agents = _agents(context)
    body = authored.top(_wanted(wanted), context.agent)
    return _row(agents.create(context.caller, body, delegate=False))


@tool(
    "agents_create_subagent",
    title="Create a subagent",
    timeout_s=10,
    operations=("agents",),
    effect="once",
    needs=("agents",),
    fails=("conflict", "denied", "quota"),
)
def create_subagent(wanted: CreateDelegate, context: SkillContext) -> AgentRow:
    """Makes a delegate: an agent that only you can spawn and nobody can hand over to. It holds at most your packs and
    skills (more is refused), never the pack agents, and at most your permissions (more is cut without a word). Without
    a budget and a graph it has 25 steps. It stays until you delete it, or ends with the project you work in."""
    from registry import authored

    agents = _agents(context)
    if context.agent is None:
        raise SkillError("denied", "denied: only an agent has delegates; use agents_create")
    body = authored.delegate(_wanted(wanted), context.agent)
    return _row(agents.create(context.caller, body, delegate=True))


@tool(
    "agents_update",
    title="Change a delegate",
    timeout_s=10,
    operations=("agents",),
    effect="idempotent",
    needs=("agents",),
    fails=("conflict", "not_found"),
)
def update_agent(wanted: UpdateAgent, context: SkillContext) -> AgentRow:
    """Changes name, role, instructions or the whole budget of a delegate of yours. Runs under way keep what they began
    with. Skills, packs and permissions cannot be changed: make another delegate for that."""
    agents = _agents(context)
    changes = wanted.to_json()
    del changes["agentId"]
    if not changes:
        raise SkillError("invalid_input", "there is nothing to change: give name, role, instructions or budget")
    if "instructions" in changes:  # what a model wrote is no template
        changes["instructions"] = changes["instructions"].replace("{$", "{ $")
    target = _one(wanted.agent_id, context.roster)
    return _row(agents.update(context.caller, target.card.id, changes))


@tool(
    "agents_delete",
    title="Delete a delegate",
    timeout_s=10,
    operations=("agents",),
    effect="idempotent",
    needs=("agents",),
    fails=("conflict", "not_found"),
)
def delete_agent(wanted: DeleteAgent, context: SkillContext) -> Removed:
    """Removes a delegate of yours. Runs of it under way go on to their end."""
    agents = _agents(context)
    target = _one(wanted.agent_id, context.roster)
    removed, name = agents.delete(context.caller, target.card.id)
    return Removed(removed=removed, name=name)


@tool(
    "agents_spawn",
    title="Spawn agents",
    timeout_s=5,
    effect="idempotent",
    fails=("no_control_node",),
)
def spawn_agents(wanted: SpawnAgents, context: SkillContext) -> Queued:
    """Queues one child run for each call, each by the agent it names; their results come back to you together, each
    with its spawnId."""
    control = _control(context)
    queued = [
        {"agentId": _one(call.agent_id, context.roster).card.id, "input": call.input}
        | ({"budget": call.budget.to_json()} if call.budget else {})
        for call in wanted.calls
    ]
    ids = control.spawn(queued)
    return Queued(queued=[{"agentId": c["agentId"], "spawnId": i} for c, i in zip(queued, ids, strict=True)])


@tool(
    "agents_handoff",
    title="Hand off",
    timeout_s=5,
    effect="idempotent",
    fails=("agent_invalid", "denied", "handoff_model_unresolved", "no_control_node"),
)
def hand_off(wanted: HandOff, context: SkillContext) -> HandedOff:
    """Hands the whole conversation over to another agent of level top, who goes on in your place."""
    control = _control(context)
    if context.policy is not None and context.policy.ancestors:
        raise SkillError("denied", "denied in subagent context: a child cannot hand over; end with what you have found")
    target = top_level(wanted.agent_id, context.roster)
    card = target.card
    if card.id == context.caller.agent_id:
        raise SkillError("invalid_input", f"you are {card.id} yourself; go on, or name another agent")
    if faults := target.faults():
        code = "handoff_model_unresolved" if all(f.startswith("model_unresolved:") for f in faults) else "agent_invalid"
        words = f"{card.id} cannot run here ({'; '.join(faults)[:500]}); hand over to another agent, or go on yourself"
        raise SkillError(code, words)
    control.queue("control:handoff", "handoffAgentId", card.id)
    return HandedOff(agent_id=card.id)


def _wanted(given: CreateAgent | CreateDelegate) -> "authored.Wanted":
    from registry import authored

    return authored.Wanted(
        name=given.name,
        role=given.role,
        instructions=given.instructions,
        skills=given.skills,
        mcp_servers=given.mcp_servers if isinstance(given, CreateAgent) else (),
        tier=given.tier,
        budget=given.budget.to_json() if given.budget is not None else None,
        packs=given.packs,
        permissions=given.permissions if isinstance(given, CreateDelegate) else {},
        graph=given.graph,
    )


def _row(row: dict[str, Json]) -> AgentRow:
    return AgentRow.model_validate(row)


def _agents(context: SkillContext) -> Agents:
    if context.agents is None:
        raise SkillError("not_wired", NOT_WIRED)
    return context.agents


def top_level(text: str, roster: Sequence[Colleague]) -> Colleague:
    """The agent of level top that a text means.

    Raises:
        SkillError: `invalid_input`, naming those there are.
    """
    target = _one(text, roster)
    if target.card.level != "top":
        tops = _names([agent.card for agent in roster if agent.card.level == "top"])
        words = f"{target.card.id} is a {target.card.level} agent and can only be spawned; of level top are: {tops}"
        raise SkillError("invalid_input", words)
    return target


def _one(text: str, roster: Sequence[Colleague]) -> Colleague:
    cards = [member.card for member in roster]
    found = candidates(text, cards)
    if len(found) == 1:
        return next(member for member in roster if member.card.id == found[0].id)
    several = "several agents are" if found else "no agent is"
    raise SkillError("invalid_input", f"{several} meant by {text!r}; use an id of these: {_names(found or cards)}")


def _names(cards: Sequence[AgentCard]) -> str:
    return ", ".join(f"{card.id} ({card.name})" for card in cards[:20]) or "none"


def _control(context: SkillContext) -> Control:
    if context.control is None:
        raise SkillError("no_control_node", "this call is not part of a graph that could do it")
    return context.control


PACK = Pack(
    "agents",
    "see who is there, give work to them, and make agents of one's own",
    (
        *(list_agents, create_agent, create_subagent, update_agent, delete_agent),
        *(spawn_agents, hand_off),
    ),
)
