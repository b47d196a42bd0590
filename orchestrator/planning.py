"""From a plan to its rows: who works on it, which tasks there are, what waits for what. (`planner` makes plans.)"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from registry.agents import AgentDefinition
from registry.base import Json
from registry.errors import Fault, WrongUse
from registry.graph.model import Handoff
from registry.graph.targets import AgentCard, candidates
from registry.ids import new_id
from registry.plans import PlannedTask
from registry.presets import Presets
from registry.teams import SavedAgent, assemble, for_task


@dataclass
class PlanRows:
    """A team and its tasks, ready to be written."""

    team: dict[str, Any]
    members: list[dict[str, Any]] = field(default_factory=list)
    tasks: list[dict[str, Any]] = field(default_factory=list)
    #: (task id, id of the task it depends on, position)
    depends: list[tuple[str, str, int]] = field(default_factory=list)
    #: Definitions by digest.
    bodies: dict[str, dict[str, Json]] = field(default_factory=dict)


def rows_of(
    project_id: str,
    owner_id: str,
    plan: Sequence[PlannedTask],
    agents: Mapping[str, AgentDefinition],
    registered: Collection[str],
    *,
    saved: Iterable[SavedAgent] = (),
    souls: bool = False,
) -> PlanRows:
    """The rows of a plan. Agents stand in them as they are now: a later edit changes nothing that runs.

    Args:
        agents: what each `agent` of a task means.
        registered: names of skills and documents there are.
        saved: agents of the owner that may be taken for a role.
        souls: whether agents made of personas get a soul.
    """
    crew = assemble(plan, registered=registered, named=agents, saved=saved, owner_id=owner_id, souls=souls)
    rows = PlanRows(
        team={
            "id": new_id(),
            "project_id": project_id,
            "lead_agent_id": crew.lead_id,
            "member_agent_ids": list(crew.members),
        }
    )
    for key, member in crew.members.items():
        rows.bodies[member.definition.definition_digest] = member.definition.to_json()
        rows.members.append(
            {
                "id": new_id(),
                "owner_id": owner_id,
                "project_id": project_id,
                "being_id": member.definition.being_id,
                "key": key,
                "name": member.definition.name,
                "role": member.role,
                "definition_digest": member.definition.definition_digest,
            }
        )
    ids = {task.key: new_id() for task in plan}
    for position, task in enumerate(plan):
        agent = crew.members[crew.assignees[task.key]].definition
        used = for_task(agent, task, registered=registered)
        rows.bodies[used.definition_digest] = used.to_json()
        rows.tasks.append(_task(project_id, ids[task.key], position, task, used))
        rows.depends += [(ids[task.key], ids[on], n) for n, on in enumerate(dict.fromkeys(task.depends_on))]
    return rows


def named_agents(
    plan: Sequence[PlannedTask],
    own: Mapping[str, AgentDefinition],
    presets: Presets,
    saved: Mapping[str, AgentDefinition] = MappingProxyType({}),
) -> dict[str, AgentDefinition]:
    """The project's own agents by id, and what each `agent` of a task means: one of them, a saved one, or a preset.

    Args:
        saved: agents that the owner of the project saved, by id.

    Raises:
        WrongUse: a task, or a handoff of an own agent, names a preset that cannot run here; one fault for each thing
            the preset lacks.
    """
    written = {**saved, **own}
    cards = (*(AgentCard(id_, written[id_].name) for id_ in (*own, *saved)), *presets.cards)
    found = dict(own)
    faults: list[Fault] = []
    for path, text in _naming(plan, own):
        meant = candidates(text, cards)
        if not meant:
            continue  # refused with the file
        id_ = meant[0].id
        if id_ not in written:
            words = f"the preset {id_} cannot run here: "
            faults += [Fault(path, lack.code, words + lack.message) for lack in presets[id_].lacks]
        if path.startswith("tasks["):
            found[text] = written[id_] if id_ in written else presets[id_].agent
    if faults:
        raise WrongUse(str(faults[0]), code="project_invalid", faults=faults)
    return found


def _naming(plan: Sequence[PlannedTask], own: Mapping[str, AgentDefinition]) -> Iterator[tuple[str, str]]:
    """Every text that names an agent, with its place in the file."""
    yield from ((f"tasks[{place}].agent", task.agent) for place, task in enumerate(plan) if task.agent is not None)
    for id_, agent in own.items():
        for node_id, node in agent.effective_graph().nodes.items():
            if isinstance(node, Handoff) and not node.agent_id.startswith("$"):
                yield f"agents.{id_}.graph.nodes.{node_id}.agentId", node.agent_id


def _task(project_id: str, task_id: str, position: int, task: PlannedTask, agent: AgentDefinition) -> dict[str, Any]:
    return {
        "id": task_id,
        "project_id": project_id,
        "position": position,
        "key": task.key,
        "title": task.title,
        "role": task.role,
        "instruction": task.instruction,
        "expected_output": task.expected_output,
        "deliverables": list(task.deliverables),
        "agent_id": agent.id,
        "agent_name": agent.name,
        "skills": list(task.skills),
        "tier": agent.tier,
        "definition_digest": agent.definition_digest,
        "input": task.input,
        "retries": task.retries,
    }
