"""The plan of a project: its tasks, and whether they make a graph that can be worked off (spec: skills 10).

The checks read raw JSON beside the model, so that a plan with a wrong type in one place still gets every other fault.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Final, Literal

from pydantic import Field

from registry.base import Json, Model
from registry.errors import Fault
from registry.graph.checks.known import Registries
from registry.graph.findings import listed, quoted
from registry.graph.targets import AgentCard, candidates
from registry.personas import normalise_role
from registry.projects.faults import Names
from registry.projects.texts import NOT_BLANK, ONE_LINE
from registry.skills.paths import WorkspacePath

#: What names a task within its project.
Slug = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[a-z0-9][a-z0-9_-]*$")]
#: Cycles that are named; a plan with more of them is beyond reading.
_CYCLES: Final = 10


class PlannedTask(Model):
    """One task as a person or the planner writes it."""

    key: Slug
    title: Annotated[str, Field(min_length=1, max_length=120), ONE_LINE] = Field(
        default_factory=lambda data: data.get("key", "")
    )
    role: Annotated[str, Field(min_length=1, max_length=40), ONE_LINE]
    instruction: Annotated[str, Field(min_length=1, max_length=4_000), NOT_BLANK]
    #: Dotted names are catalogue skills, kebab names documents.
    skills: list[str] = Field(default_factory=list)
    tier: Literal["fast", "standard", "deep"] = "standard"
    #: Keys of the tasks that have to complete before.
    depends_on: list[str] = Field(default_factory=list)
    expected_output: Annotated[str, Field(max_length=500)] | None = None
    #: Files that have to be there at the end; a missing one is a warning.
    deliverables: Annotated[list[WorkspacePath], Field(max_length=5)] = Field(default_factory=list)
    #: What rules of queues look at (`docs/queues.md`).
    labels: Annotated[list[Slug], Field(max_length=8)] = Field(default_factory=list)
    #: An agent by id or name; None: the team's agent of the role.
    agent: Annotated[str, Field(min_length=1, max_length=120)] | None = None
    #: For the agent's graph, as `$input.data`.
    input: Json = None
    #: New attempts after a failure that may pass.
    retries: Annotated[int, Field(ge=0, le=5)] = 1

    def written(self) -> dict[str, Json]:
        """The object as it was written: a default that nobody wrote means more than its value (`tier`)."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class Plan(Model):
    """What is to be reached, and the tasks that lead there: as the planner makes it, and as a person may change it."""

    goal: Annotated[str, Field(min_length=1, max_length=4_000), NOT_BLANK] | None = None
    summary: Annotated[str, Field(max_length=600)] | None = None
    tasks: Annotated[list[PlannedTask], Field(min_length=1)]


@dataclass(frozen=True)
class PlanLimits:
    tasks: int = 5_000
    roles: int = 64
    #: Dependencies of one task; None is no limit.
    dependencies: int | None = None


#: What the planner may answer with.
PLANNER: Final = PlanLimits(tasks=12, roles=6, dependencies=8)


@dataclass(frozen=True)
class _Draft:
    """As much of a task as can be told from what was written; paths keep the places in the file."""

    index: int
    key: str | None
    role: str | None
    agent: str | None
    skills: list[tuple[int, str]]
    depends_on: list[tuple[int, str]]

    def path(self, field: str) -> str:
        return f"tasks[{self.index}].{field}"


def check_plan(
    tasks: Json, known: Registries, *, agents: Collection[AgentCard] = (), limits: PlanLimits | None = None
) -> list[Fault]:
    """What is wrong between tasks, and between a task and what there is; wrong types are the model's to report.

    Args:
        tasks: the list as written.
        known: skills, documents and agents there are; what is None there is not judged.
        agents: the project's own agents, besides the known ones.
    """
    limits = limits or PlanLimits()
    if not isinstance(tasks, list):
        return []
    if len(tasks) > limits.tasks:
        return [Fault("tasks", "too_many_tasks", f"a plan has at most {limits.tasks} tasks, found {len(tasks)}")]
    drafts = [_draft(index, task) for index, task in enumerate(tasks) if isinstance(task, dict)]
    return [
        *_duplicates(drafts),
        *_dependencies(drafts, limits),
        *_cycles(drafts),
        *_roles(drafts, limits),
        *_skills(drafts, known),
        *_agents(drafts, known, agents),
    ]


def _draft(index: int, task: dict[str, Json]) -> _Draft:
    return _Draft(
        index=index,
        key=_text(task.get("key")),
        role=_text(task.get("role")),
        agent=_text(task.get("agent")),
        skills=_texts(task.get("skills")),
        depends_on=_texts(task.get("dependsOn")),
    )


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: Json) -> list[tuple[int, str]]:
    items = value if isinstance(value, list) else []
    return [(index, item) for index, item in enumerate(items) if isinstance(item, str)]


def _duplicates(drafts: list[_Draft]) -> Iterator[Fault]:
    first: dict[str, _Draft] = {}
    for draft in drafts:
        if draft.key is None:
            continue
        earlier = first.setdefault(draft.key, draft)
        if earlier is not draft:
            message = f"tasks[{earlier.index}] has the key {quoted(draft.key)} too"
            yield Fault(draft.path("key"), "duplicate_key", message)


def _dependencies(drafts: list[_Draft], limits: PlanLimits) -> Iterator[Fault]:
    keys = {draft.key for draft in drafts if draft.key is not None}
    names = Names(keys)
    for draft in drafts:
        seen: set[str] = set()
        for place, key in draft.depends_on:
            path = draft.path(f"dependsOn[{place}]")
            if key == draft.key:
                yield Fault(path, "self_dependency", f"{quoted(key)} cannot wait for itself")
            elif key not in keys:
                yield Fault(path, "unknown_dependency", f"no task has the key {quoted(key)}{names.suggestion(key)}")
            elif key in seen:
                yield Fault(path, "duplicate_dependency", f"{quoted(key)} is named before in this list")
            seen.add(key)
        if limits.dependencies is not None and len(draft.depends_on) > limits.dependencies:
            message = f"at most {limits.dependencies} dependencies, found {len(draft.depends_on)}"
            yield Fault(draft.path("dependsOn"), "too_long", message)


def _cycles(drafts: list[_Draft]) -> Iterator[Fault]:
    by_key = {draft.key: draft for draft in reversed(drafts) if draft.key is not None}
    graph = {
        key: {other: place for place, other in draft.depends_on if other in by_key and other != key}
        for key, draft in reversed(by_key.items())
    }
    for _ in range(_CYCLES):
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            # Given as: each is a dependency of the next; told as: each waits for the next.
            ring = list(reversed(error.args[1]))[:-1]
            start = min(range(len(ring)), key=lambda place: by_key[ring[place]].index)
            ring = ring[start:] + ring[:start]
            path = by_key[ring[0]].path(f"dependsOn[{graph[ring[0]].pop(ring[1])}]")
            yield Fault(path, "cycle", f"these wait for each other: {_ring(ring)}")
        else:
            return


def _ring(keys: list[str]) -> str:
    shown = keys if len(keys) <= 12 else [*keys[:6], f"({len(keys) - 9} more)", *keys[-3:]]
    return " -> ".join([*shown, keys[0]])


def _roles(drafts: list[_Draft], limits: PlanLimits) -> Iterator[Fault]:
    roles = {normalise_role(draft.role) for draft in drafts if draft.role is not None}
    if len(roles) > limits.roles:
        yield Fault("tasks", "too_many_roles", f"a plan has at most {limits.roles} distinct roles, found {len(roles)}")


def _skills(drafts: list[_Draft], known: Registries) -> Iterator[Fault]:
    if known.skills is None:
        return
    names = Names(known.skills | (known.documents or frozenset()))
    for draft in drafts:
        for place, name in draft.skills:
            registry, what = (known.skills, "skill") if "." in name else (known.documents, "document")
            if registry is not None and name not in registry:
                message = f"there is no {what} {quoted(name)}{names.suggestion(name)}"
                yield Fault(draft.path(f"skills[{place}]"), "unknown_skill", message)


def _agents(drafts: list[_Draft], known: Registries, own: Collection[AgentCard]) -> Iterator[Fault]:
    if known.agents is None:
        return
    cards = (*own, *known.agents)
    names = Names(card.id for card in cards)
    for draft in drafts:
        if draft.agent is None:
            continue
        meant = candidates(draft.agent, cards)
        if not meant:
            message = f"there is no agent {quoted(draft.agent)}{names.suggestion(draft.agent)}"
            yield Fault(draft.path("agent"), "unknown_agent", message)
        elif len(meant) > 1 and meant[0] not in own:
            ids = listed([card.id for card in meant])
            yield Fault(draft.path("agent"), "unclear_agent", f"{quoted(draft.agent)} may mean {ids}: write the id")


__all__ = ["PLANNER", "Plan", "PlanLimits", "PlannedTask", "Slug", "check_plan"]
