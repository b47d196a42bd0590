"""Who works on a project: one agent for each role of its plan, and a lead (spec: skills 11). Pure: no saved row is read
here, no model is called.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from registry.agents import TIERS, AgentDefinition, Tier
from registry.personas import BASELINE, LEAD, TEAM_PERMISSIONS, normalise_role, persona_of, system_prompt
from registry.plans import PlannedTask
from registry.souls import soul_of

_ID_BREAK: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class SavedAgent:
    """An agent somebody kept, as far as a team looks at it."""

    id: str
    owner_id: str
    definition: AgentDefinition
    #: Epoch milliseconds.
    updated_at: int
    archived: bool = False
    #: Whose memory it has: one that outlives projects.
    being_id: str | None = None


@dataclass(frozen=True)
class Member:
    """An agent of a team, as it is at the start: later edits of a saved one change nothing that runs."""

    definition: AgentDefinition
    #: The label of the plan, or of the agent itself.
    role: str
    #: The saved agent it was taken from.
    saved_id: str | None = None


@dataclass(frozen=True)
class Team:
    lead_id: str
    #: By the id of the definition; the lead is one of them.
    members: Mapping[str, Member]
    #: Task key -> the id of the member that does it.
    assignees: Mapping[str, str]


def assemble(
    tasks: Sequence[PlannedTask],
    *,
    registered: Collection[str],
    named: Mapping[str, AgentDefinition] | None = None,
    saved: Iterable[SavedAgent] = (),
    owner_id: str = "local",
    souls: bool = False,
) -> Team:
    """The team of a plan.

    Args:
        tasks: the plan.
        registered: names of skills and documents there are; a new agent holds no others.
        named: what each `agent` of a task means; those agents work on the tasks that name them.
        saved: agents that may be taken for a role; those of other owners never are.
        owner_id: whose project it is.
        souls: whether agents made of personas get a soul.
    """
    named = named or {}
    own = [saved_agent for saved_agent in saved if saved_agent.owner_id == owner_id and not saved_agent.archived]
    members: dict[str, Member] = {agent.id: Member(agent, agent.role or agent.id) for agent in named.values()}
    by_role: dict[str, str] = {}
    making = _Making(registered, own, owner_id, souls)
    for role, label, share in _roles(tasks, named):
        member = making.member(role, label, share, members)
        members[member.definition.id] = member
        by_role[role] = member.definition.id
    assignees = {task.key: _assignee(task, named, by_role) for task in tasks}
    return Team(by_role[LEAD], members, assignees)


def for_task(agent: AgentDefinition, task: PlannedTask, *, registered: Collection[str]) -> AgentDefinition:
    """The agent as one task uses it: its effective skills, the task's tier, and the labels of both.

    A task that lists skills narrows the agent to the baseline and to those of them it holds. An agent the task names
    keeps its own tier unless the task says one.
    """
    skills = effective_skills(agent.skills, task.skills, registered=registered)
    tier = task.tier if task.agent is None or "tier" in task.model_fields_set else agent.tier
    labels = {"labels": _distinct([*agent.labels, *task.labels])} if task.labels else {}
    return _with(agent, skills=skills, tier=tier, **labels)


def effective_skills(held: Sequence[str], listed: Sequence[str], *, registered: Collection[str]) -> list[str]:
    """What a task's run may use of the skills its agent holds."""
    wanted = {*BASELINE, *listed} if listed else set(held)
    return [name for name in held if name in wanted and name in registered]


def _roles(
    tasks: Sequence[PlannedTask], named: Mapping[str, AgentDefinition]
) -> list[tuple[str, str, list[PlannedTask]]]:
    """Each role with its label and its tasks, in the order of the plan; the lead first, with or without tasks."""
    shares: dict[str, list[PlannedTask]] = {LEAD: []}
    labels = {LEAD: LEAD}
    for task in tasks:
        if task.agent is None or task.agent not in named:
            role = normalise_role(task.role)
            labels.setdefault(role, task.role.strip())
            shares.setdefault(role, []).append(task)
    return [(role, labels[role], share) for role, share in shares.items()]


def _assignee(task: PlannedTask, named: Mapping[str, AgentDefinition], by_role: Mapping[str, str]) -> str:
    if task.agent is not None and task.agent in named:
        return named[task.agent].id
    return by_role[normalise_role(task.role)]


@dataclass(frozen=True)
class _Making:
    """What the members of one team are made of."""

    registered: Collection[str]
    saved: list[SavedAgent]
    owner_id: str
    souls: bool

    def member(self, role: str, label: str, tasks: list[PlannedTask], members: Mapping[str, Member]) -> Member:
        """The agent of a role: a saved one that fits, or a new one. Its id and name are its own in the team."""
        needed = _distinct(skill for task in tasks for skill in task.skills)
        tiers: list[Tier] = [task.tier for task in tasks] or ["standard"]
        tier = max(tiers, key=TIERS.index)
        id_ = _free(_ID_BREAK.sub("-", role).strip("-") or "agent", members)
        names = {member.definition.name for member in members.values()}
        picked = _pick(role, needed, tier, self.saved)
        if picked is not None:
            name = _free(picked.definition.name, names, " ")
            skills = _distinct((*picked.definition.skills, *(one for one in BASELINE if one in self.registered)))
            agent = _with(picked.definition, id=id_, name=name, beingId=picked.being_id, skills=skills)
            return Member(agent, label, picked.id)
        return Member(self._of_persona(id_, label, needed, tier, names), label)

    def _of_persona(
        self, id_: str, label: str, needed: Sequence[str], tier: Tier, names: Collection[str]
    ) -> AgentDefinition:
        persona = persona_of(label)
        name = _free(persona.name, names, " ")
        soul = soul_of(self.owner_id, label, name) if self.souls else None
        skills = [one for one in _distinct((*BASELINE, *persona.skills, *needed)) if one in self.registered]
        return AgentDefinition.model_validate(
            {
                "id": id_,
                "name": name,
                "role": label,
                "avatar": persona.avatar,
                "instructions": system_prompt(persona, name=name, soul=soul),
                "tier": tier,
                "skills": skills,
                "permissions": dict(TEAM_PERMISSIONS),
            }
        )


def _pick(role: str, needed: Sequence[str], tier: Tier, saved: Iterable[SavedAgent]) -> SavedAgent | None:
    """The saved agent that fits with the fewest skills to spare; the latest of several, then the lowest id."""
    wanted = {*needed} - {*BASELINE}
    fits = [
        agent
        for agent in saved
        if normalise_role(agent.definition.role or "") == role
        and wanted <= {*agent.definition.skills}
        and TIERS.index(agent.definition.tier) >= TIERS.index(tier)
    ]

    def rank(agent: SavedAgent) -> tuple[int, int, str]:
        return len({*agent.definition.skills} - {*BASELINE} - wanted), -agent.updated_at, agent.id

    return min(fits, key=rank, default=None)


def _with(agent: AgentDefinition, **changes: object) -> AgentDefinition:
    # Read anew rather than copied: a copy would keep what the original had worked out, its digest included.
    return AgentDefinition.model_validate({**agent.to_json(), **changes})


def _free(wanted: str, taken: Collection[str], mark: str = "-") -> str:
    """The id or name itself, or the first of `id-2`, `id-3` ... that nobody has."""
    number, found = 1, wanted
    while found in taken:
        number += 1
        found = f"{wanted}{mark}{number}"
    return found


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


__all__ = ["Member", "SavedAgent", "Team", "assemble", "effective_skills", "for_task"]
