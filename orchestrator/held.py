"""A plan that waits for a person: looked at, changed, started. After the start it is frozen (spec: skills 10).

A plan is judged whole each time it is written and once more when it starts: what there is may have changed meanwhile.
"""

from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Row

from orchestrator import events, known, planning, queue
from orchestrator.planner import planner
from orchestrator.settings import Settings
from orchestrator.store import audit, plans
from orchestrator.store.database import get_database
from registry.agents import AgentDefinition
from registry.base import Json
from registry.errors import Fault, Refused, WrongUse
from registry.graph.targets import AgentCard
from registry.graph.values import kind
from registry.jsontext import digest
from registry.plans import Plan, PlanLimits, check_plan
from registry.projects.agents import cards
from registry.projects.faults import check, ordered
from registry.projects.reading import Project
from registry.skills.registry import SkillRegistry
from registry.text import nul_places

#: What of a plan a person may write; the project's agents came with its file and stay.
_WRITTEN: Final = ("goal", "summary", "tasks")
#: Looks at a plan that somebody else keeps changing.
_LOOKS: Final = 5


def plan_of(found: Project) -> dict[str, Json]:
    """The plan of a project file, as it is kept."""
    kept: dict[str, Json] = {"tasks": [task.written() for task in found.file.tasks]}
    return kept | ({"agents": {id_: one.to_json() for id_, one in found.agents.items()}} if found.agents else {})


def change(
    settings: Settings, skills: SkillRegistry, project_id: str, plan: Json, *, version: str | None = None, by: str
) -> None:
    """Puts another plan in the place of one that waits.

    Args:
        version: the version that was read; None: whichever it is.

    Raises:
        WrongUse: `plan_invalid`, with every fault; nothing was written.
        Refused: `unknown_project`, `project_ended`, `already_started`, `not_planned`, `version_conflict`.
    """
    row = _ready(settings, project_id)
    kept, _ = _judged(settings, skills, row, plan)
    read = version or digest(row.plan)
    get_database(settings).write(lambda c: plans.change(c, project_id, read, kept, by))
    events.publish(settings, project_id, 0)


def start(
    settings: Settings, skills: SkillRegistry, project_id: str, plan: Json = None, *, version: str | None = None
) -> dict[str, str]:
    """Starts a plan that waits, once; returns the ids of its tasks by their keys.

    Args:
        plan: another plan to start in its place.
        version: the version that was read; None: whichever it is.

    Raises:
        WrongUse: `plan_invalid`, with every fault; nothing was written.
        Refused: as `change`.
    """
    for look in range(_LOOKS):
        row = _ready(settings, project_id)
        try:
            ids = _start(settings, skills, row, plan, version or digest(row.plan))
        except Refused as refused:
            if refused.code != "version_conflict" or version is not None or look == _LOOKS - 1:
                raise
        else:
            queue.advance(settings, project_id, row.title)
            events.publish(settings, project_id, 0)
            return ids
    raise AssertionError("unreachable")


def again(
    settings: Settings, skills: SkillRegistry, project_id: str, note: str = "", *, version: str | None = None, by: str
) -> None:
    """Has the planner make another plan in the place of one that waits; that one waits in turn.

    Args:
        note: what should be different.
        version: the version that was read; None: whichever it is.

    Raises:
        Refused: as `change`; `no_brief`.
    """
    maker = planner(skills)
    title = _ready(settings, project_id).title
    get_database(settings).write(lambda c: plans.again(c, project_id, version, maker, note.strip(), by))
    queue.advance(settings, project_id, title)
    events.publish(settings, project_id, 0)


def _start(settings: Settings, skills: SkillRegistry, row: Row[Any], plan: Json, version: str) -> dict[str, str]:
    kept, named = _judged(settings, skills, row, plan)
    tasks = Plan.model_validate({"tasks": kept["tasks"]}).tasks
    with get_database(settings).read() as connection:
        saved = plans.reusable(connection, row)
    rows = planning.rows_of(
        row.id, row.owner_id, tasks, named, known.usable(settings, skills), saved=saved, souls=row.souls
    )

    def write(connection: Connection) -> None:
        plans.start(connection, row.id, version, rows, kept)
        audit.record(connection, row.owner_id, settings.by, "project.started", row.id, project_id=row.id)

    get_database(settings).write(write)
    return {task["key"]: task["id"] for task in rows.tasks}


def _ready(settings: Settings, project_id: str) -> Row[Any]:
    with get_database(settings).read() as connection:
        return plans.ready(connection, project_id)


def _judged(
    settings: Settings, skills: SkillRegistry, row: Row[Any], plan: Json
) -> tuple[dict[str, Json], dict[str, AgentDefinition]]:
    """The plan as it is kept (None: the one that waits), and the agents its tasks name, found good."""
    document = {name: row.plan[name] for name in _WRITTEN if name in row.plan} if plan is None else plan
    if not isinstance(document, dict):
        raise _refused([Fault("", "wrong_type", f"a plan is an object with tasks, found {kind(document)}")])
    there = known.registries(settings, skills, stand_in=settings.stand_in or not settings.has_model)
    presets, saved = known.load_presets(settings, there), known.saved_agents(settings)
    around = (*(AgentCard(agent.id, agent.name) for agent in saved.values()), *presets.cards)
    agents = row.plan.get("agents") or {}
    made, faults = check(Plan, document)
    limits = PlanLimits(tasks=settings.limits.project_tasks)
    faults += check_plan(document.get("tasks"), replace(there, agents=around), agents=cards(agents), limits=limits)
    faults += [Fault(at, "invalid_text", "holds a NUL, which no text may") for at in nul_places(document)]
    if made is None or faults:
        raise _refused(ordered(faults))
    own = {id_: AgentDefinition.model_validate(body) for id_, body in agents.items()}
    named = planning.named_agents(made.tasks, own, presets, saved)
    kept = {name: value for name, value in row.plan.items() if name not in _WRITTEN and plan is None}
    kept |= {"agents": agents} if agents else {}
    kept |= {name: value for name, value in (("goal", made.goal), ("summary", made.summary)) if value}
    return kept | {"tasks": [task.written() for task in made.tasks]}, named


def _refused(faults: list[Fault]) -> WrongUse:
    first = f"{faults[0]}" + (f" (and {len(faults) - 1} more)" if len(faults) > 1 else "")
    return WrongUse(first, code="plan_invalid", faults=faults)


__all__ = ["again", "change", "plan_of", "start"]
