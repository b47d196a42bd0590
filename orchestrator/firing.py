"""Schedules that are due: each becomes a project of its own, in the transaction that moves its next time (spec: skills
19, engine 20).

A prompt becomes one task for the agent that asked for it, where the owner saved that agent, and else for a generalist.
A skill becomes a run that makes this one call, through the gate like any other. A generator becomes its plan.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, Row, insert

from orchestrator import desk, events, planning, queue
from orchestrator.planning import PlanRows
from orchestrator.records import Event
from orchestrator.settings import Settings
from orchestrator.states import PROJECT_ENDED
from orchestrator.store import agents, generators, projects, schedules
from orchestrator.store import events as trace
from orchestrator.store.database import Database, now_ms
from orchestrator.store.tables import signals
from registry.agents import AgentDefinition
from registry.base import Json
from registry.generators import Unusable, plan
from registry.ids import new_id
from registry.jsontext import digest
from registry.personas import GENERALIST, TEAM_PERMISSIONS
from registry.plans import PlannedTask
from registry.skills import catalogue
from registry.skills.registry import SkillRegistry

log = logging.getLogger(__name__)

#: How late a due time may be found and still be worked off.
LATE_MS: Final = 15 * 60_000
#: Failed projects in a row after which a schedule rests.
FAILURES: Final = 5
MICRO: Final = 1_000_000


@dataclass
class Fired:
    """What became of the schedules that were due."""

    count: int = 0
    #: (project id, title)
    projects: list[tuple[str, str]] = field(default_factory=list)
    #: (owner, id of an alert)
    alerts: list[tuple[str, str]] = field(default_factory=list)


class Gone(Exception):
    """What a schedule would run is not there any more."""


@lru_cache(maxsize=1)
def _skills() -> SkillRegistry:
    return catalogue.build()


def fire_due(settings: Settings, database: Database, limit: int) -> int:
    """Fires what is due, each schedule in a transaction of its own; returns how many were moved on."""
    with database.read() as connection:
        rows = schedules.due(connection, limit)
    moved = 0
    for row in rows:
        try:
            fired = database.write(lambda c, row=row: _fire(c, settings, row))  # type: ignore[misc]
        except Exception:  # one that cannot be fired does not keep the others from their time
            log.exception("the schedule %s could not be fired", row.id)
            continue
        moved += fired.count
        for project_id, title in fired.projects:
            queue.advance(settings, project_id, title)
            events.publish(settings, project_id, 0)
        for owner_id, signal_id in fired.alerts:
            desk.changed(settings, owner_id, [signal_id])
    return moved


def _fire(connection: Connection, settings: Settings, row: Row[Any]) -> Fired:
    following = schedules.rule(row).next_time(row.now)
    late = row.now - row.next_run_at
    runs_left = None if row.max_runs is None else row.max_runs - row.runs
    history = schedules.latest(connection, row.id, FAILURES)
    busy = late <= LATE_MS and _busy(history)
    last = late <= LATE_MS and not busy and runs_left is not None and runs_left <= 1
    if not schedules.claim(connection, row, None if last else following):
        return Fired()
    if late > LATE_MS:
        schedules.record(connection, row, "missed", reason=f"found {late // 60_000} minutes late")
        return Fired(1)
    if busy:
        schedules.record(connection, row, "skipped", reason="the project of the last time still works")
        return Fired(1)
    if len(history) == FAILURES and all(one.project_status == "failed" for one in history):
        return _rest(connection, row, "paused", f"it failed {FAILURES} times in a row")
    try:
        project = _project(connection, settings, row)
    except Gone as gone:
        return _rest(connection, row, "failed", str(gone))
    projects.create(connection, project.row, project.rows, planner=planning.planner(_skills()))
    schedules.record(connection, row, "fired", project_id=project.row["id"])
    told: dict[str, Json] = {"scheduleId": row.id, "title": row.title, "dueAt": row.next_run_at, "lateMs": late}
    trace.append(connection, project.row["id"], [Event("schedule.fired", told)])
    return Fired(1, [(project.row["id"], row.title)])


def _busy(history: list[Row[Any]]) -> bool:
    """Whether the last project it started still works; one that is gone does not."""
    last = next((one for one in history if one.result == "fired"), None)
    return last is not None and last.project_status is not None and last.project_status not in PROJECT_ENDED


def _rest(connection: Connection, row: Row[Any], status: str, why: str) -> Fired:
    """Stops a schedule and tells its owner."""
    schedules.record(connection, row, "skipped", reason=why)
    schedules.stop(connection, row.id, status, why)
    alert = {
        "id": new_id(),
        "owner_id": row.owner_id,
        "kind": "alert",
        "status": "open",
        "title": f'The schedule "{row.title}" is {status}'[:120],
        "body": f"{why[:1].upper()}{why[1:]}. It does not run until somebody looks at it.",
        "options": [],
        "priority": "high",
        "schema": {"type": "object"},
        "created_at": now_ms(),
    }
    connection.execute(insert(signals).values(alert))
    return Fired(1, alerts=[(row.owner_id, alert["id"])])


@dataclass(frozen=True)
class _Project:
    row: dict[str, Any]
    rows: PlanRows


def _project(connection: Connection, settings: Settings, row: Row[Any]) -> _Project:
    """What a due schedule starts.

    Raises:
        Gone: its generator is not there any more, its inputs do not fit it, or its skill is gone.
    """
    action: Mapping[str, Json] = row.action
    named: dict[str, AgentDefinition] = {}
    if action["kind"] == "generator":
        tasks = _of_generator(connection, row.owner_id, action)
    elif action["kind"] == "skill":
        tasks, named = _of_skill(row.title, action)
    else:
        tasks, named = _of_prompt(connection, row, str(action["text"]))
    project_id, registered = new_id(), frozenset(skill.name for skill in _skills())
    columns = {
        "id": project_id,
        "owner_id": row.owner_id,
        "client_key": f"schedule:{row.id}:{row.next_run_at}",
        "file_digest": digest(dict(action)),
        "title": row.title,
        "brief": "",
        "mode": None,
        "permissions": {},
        "approvals": "park",
        "max_cost_micro": int(settings.project_cost_usd * MICRO),
        "max_parallel": settings.limits.parallel_tasks,
        "priority": 5,
        "skills": sorted(registered),
        "script": {} if settings.stand_in else None,
        "rehearsal": False,
        "workspace": project_id,
    }
    return _Project(columns, planning.rows_of(project_id, row.owner_id, tasks, named, registered))


def _of_prompt(
    connection: Connection, row: Row[Any], text: str
) -> tuple[list[PlannedTask], dict[str, AgentDefinition]]:
    saved = agents.saved(connection, row.owner_id, row.agent_id) if row.agent_id else None
    task: dict[str, Json] = {"key": "prompt", "title": row.title, "role": GENERALIST, "instruction": text}
    if saved is None:
        return [PlannedTask.model_validate(task)], {}
    task |= {"agent": saved.id, "role": (saved.role or GENERALIST)[:40], "tier": saved.tier}
    return [PlannedTask.model_validate(task)], {saved.id: saved}


def _of_skill(title: str, action: Mapping[str, Json]) -> tuple[list[PlannedTask], dict[str, AgentDefinition]]:
    name = str(action["skill"])
    if name not in _skills():
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
        raise Gone(f"its inputs no longer fit the generator: {error.faults[0]}") from None


__all__ = ["fire_due"]
