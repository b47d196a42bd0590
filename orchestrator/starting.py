"""Projects that nobody submits: what a schedule or a webhook starts, from the action it was given.

A prompt becomes one task for the agent it is for, where the owner saved that agent, and else for a generalist. A skill
becomes a run that makes this one call, through the gate like any other. A generator becomes its plan,
a brief is planned.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection

from orchestrator import known, makers, planning
from orchestrator.planner import planner
from orchestrator.planning import PlanRows
from orchestrator.settings import Settings
from orchestrator.store import agents, generators, plans, projects
from registry.agents import AgentDefinition
from registry.base import Json
from registry.generators import Unusable, plan
from registry.ids import new_id
from registry.jsontext import digest
from registry.personas import GENERALIST, TEAM_PERMISSIONS
from registry.plans import PlannedTask
from registry.skills import catalogue
from registry.skills.registry import SkillRegistry

MICRO: Final = 1_000_000


class Gone(Exception):
    """What would be started is not there any more."""


class Unfit(Gone):
    """It is there, and what it is given does not fit it."""


@dataclass(frozen=True)
class Cause:
    """Why a project begins."""

    owner_id: str
    #: With the owner: one due time, one delivery starts one project.
    key: str
    title: str
    action: Mapping[str, Json]
    #: Whose prompt it is.
    agent_id: str | None = None
    mode: str | None = None
    #: What its maker may do (`orchestrator.makers`); None: a person made it.
    maker: Mapping[str, Any] | None = None


@lru_cache(maxsize=1)
def skills() -> SkillRegistry:
    """The catalogue; built at the first use, which a clock at rest need not pay."""
    return catalogue.build()


def start(connection: Connection, settings: Settings, cause: Cause) -> str:
    """Writes the project whole, with what is ready queued; returns its id.

    Raises:
        Gone: its generator or its skill is not there any more.
        Unfit: its inputs do not fit it.
    """
    tasks, named = _tasks(connection, cause)
    project_id, registered = new_id(), known.usable(settings, skills())
    acting = next(iter(named.values()), None)
    gates = acting.permissions if acting is not None else TEAM_PERMISSIONS
    row = {
        "id": project_id,
        "owner_id": cause.owner_id,
        "client_key": cause.key,
        "file_digest": digest(dict(cause.action)),
        "title": cause.title,
        "brief": str(cause.action["text"]) if tasks is None else "",
        "mode": cause.mode if cause.mode is not None else (cause.maker or {}).get("mode"),
        "permissions": makers.permissions(cause.maker, acting.id if acting is not None else None, gates),
        "approvals": "park",
        "max_cost_micro": int(settings.project_cost_usd * MICRO),
        "max_parallel": settings.limits.parallel_tasks,
        "owner_parallel": settings.limits.owner_parallel,
        "priority": 5,
        "skills": sorted(registered),
        # Saved agents may be allowed more than whoever made the cause: only a person's has them in its team.
        "reuses": cause.maker is None,
        "souls": settings.souls,
        "script": {} if settings.stand_in else None,
        "rehearsal": False,
        "workspace": project_id,
    }
    rows: PlanRows | None = None
    if tasks is not None:
        rows = planning.rows_of(
            project_id,
            cause.owner_id,
            tasks,
            named,
            registered,
            saved=plans.reusable(connection, row),
            souls=settings.souls,
        )
    projects.create(connection, row, rows, planner=planner(skills()))
    return project_id


_Team = tuple[list[PlannedTask] | None, dict[str, AgentDefinition]]


def _tasks(connection: Connection, cause: Cause) -> _Team:
    """The plan, and the agents it names; None: the planner makes one."""
    kind = cause.action["kind"]
    if kind == "generator":
        return _of_generator(connection, cause.owner_id, cause.action), {}
    if kind == "skill":
        return _of_skill(cause.title, cause.action)
    if kind == "brief":
        return None, {}
    return _of_prompt(connection, cause)


def _of_prompt(connection: Connection, cause: Cause) -> _Team:
    saved = agents.saved(connection, cause.owner_id, cause.agent_id) if cause.agent_id else None
    text = str(cause.action["text"])
    task: dict[str, Json] = {"key": "prompt", "title": cause.title, "role": GENERALIST, "instruction": text}
    if saved is None:
        return [PlannedTask.model_validate(task)], {}
    task |= {"agent": saved.id, "role": (saved.role or GENERALIST)[:40], "tier": saved.tier}
    return [PlannedTask.model_validate(task)], {saved.id: saved}


def _of_skill(title: str, action: Mapping[str, Json]) -> _Team:
    name = str(action["skill"])
    if name not in skills():
        raise Gone(f"there is no skill {name} any more")
    caller = AgentDefinition.model_validate(
        {
            "id": "schedule",
            "name": "Schedule",
            "role": "schedule",
            "skills": [name],
            "packs": {"core": False},
            "permissions": dict(TEAM_PERMISSIONS),
            "graph": {
                "nodes": {
                    "start": {"type": "core:start"},
                    # The input is taken whole from where it lies as data: nothing in it is an expression.
                    "call": {"type": "tool:call", "name": name, "args": "$input.data"},
                    "end": {"type": "core:end", "output": "$output.results"},
                },
                "edges": [{"from": "start", "to": "call"}, {"from": "call", "to": "end"}],
            },
        }
    )
    task = {
        "key": "call",
        "title": title,
        "role": "schedule",
        "instruction": f"Call {name} as scheduled.",
        "agent": caller.id,
        "input": action["input"],
        "skills": [name],
        "retries": 0,
    }
    return [PlannedTask.model_validate(task)], {caller.id: caller}


def _of_generator(connection: Connection, owner_id: str, action: Mapping[str, Json]) -> list[PlannedTask]:
    found = generators.get(connection, owner_id, str(action["generatorId"]))
    if found is None:
        raise Gone("its generator was deleted")
    try:
        return plan(found, action.get("inputs") or {})
    except Unusable as error:
        raise Unfit(f"its inputs no longer fit the generator: {error.faults[0]}") from None


__all__ = ["Cause", "Gone", "Unfit", "skills", "start"]
