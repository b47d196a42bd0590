"""Actions that a yes runs outside their run (`approvals: carryOn`): the stored call, under the rights of the day."""

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from orchestrator import crashpoints, outside, queue
from orchestrator import events as followers
from orchestrator.records import Event, FileRecord
from orchestrator.store import actions, loading
from registry.agents import AgentDefinition
from registry.base import Json
from registry.errors import SkillError, Unavailable
from registry.permissions import Policy
from registry.personas import TEAM_PERMISSIONS
from registry.skills.context import Authority, Caller, SkillContext
from registry.skills.registry import SkillResult
from registry.skills.skill import Skill
from workers import calling
from workers.engine import spans
from workers.engine.contexts import Roster
from workers.engine.services import Services
from workers.engine.toolset import Toolset
from workers.runtime import Runtime

log = logging.getLogger(__name__)

#: Seconds between looks whether the project was cancelled.
LOOK_S: Final = 0.5


Emit = Callable[[str, dict[str, Json]], None]
Act = Callable[[Authority], SkillResult]


def perform(runtime: Runtime, project_id: str) -> int:
    """Runs every answered action of a project that nobody has begun; returns how many. Those of queues that are not
    served here are passed on."""
    count = 0
    while not runtime.stopping:
        row = runtime.database.write(lambda c: actions.claim(c, project_id, runtime.queues))
        if row is None:
            break
        crashpoints.reached("begun")
        with runtime.acting(row.id):
            _perform(runtime, row)
        count += 1
    if runtime.queues is not None and runtime.settings.queues:
        with runtime.database.read() as connection:
            others = actions.elsewhere(connection, project_id, runtime.queues)
        for name in others:
            queue.advance(runtime.settings, project_id, "answered actions", name)
    return count


class Cancelled:
    """Whether the project was cancelled meanwhile; asked as often as a tool likes, read twice a second at most."""

    def __init__(self, runtime: Runtime, project_id: str) -> None:
        self._runtime, self._project_id = runtime, project_id
        self._said, self._next_look = False, 0.0

    def __call__(self) -> bool:
        if not self._said and time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + LOOK_S
            try:
                with self._runtime.database.read() as connection:
                    self._said = actions.cancelled(connection, self._project_id)
            except Unavailable as error:  # no news: the action goes on
                log.warning("nobody knows whether project %s was cancelled: %s", self._project_id, error.message)
        return self._said


def _perform(runtime: Runtime, row: Any) -> None:
    lines: list[Event] = []
    files: list[FileRecord] = []

    def emit(kind: str, data: dict[str, Json]) -> None:
        lines.append(Event(kind, data, row.task_id, row.run_id, row.agent_id, row.node_id))
        if kind == "file.written":
            files.append(FileRecord(data["path"], data["bytes"], data["sha256"], data.get("skill")))

    call = _of_run(runtime, row, emit) if row.run_id else _of_project(runtime, row, emit)
    result = call(Authority(row.digest, row.id, row.action.get("release"))).to_json()
    crashpoints.reached("settling")
    runtime.database.write(lambda c: actions.settle(c, row, result, lines, files))
    followers.publish(runtime.settings, row.project_id or "", 0)


def _of_run(runtime: Runtime, row: Any, emit: Emit) -> Act:
    """A call that a run asked for, with the rights of its agent."""
    with runtime.database.read() as connection:
        asked = actions.run_of(connection, row.run_id)
        record = loading.load(connection, row.run_id, asked.fence)
    agent = AgentDefinition.model_validate(record.definition)
    services = runtime.services
    above = tuple(Policy(*one) for one in record.ancestors)
    serve = partial(services.mcp, left_out=lambda *_about: None)
    tools = Toolset(
        agent, services, kind=record.kind, serve=serve, plugged=partial(_plugged, services, record.owner_id)
    )
    context = SkillContext(
        caller=Caller(
            kind="run",
            owner_id=record.owner_id,
            project_id=record.project_id,
            task_id=row.task_id,
            run_id=record.id,
            agent_id=agent.id,
            agent_name=agent.name,
            call_id=row.call_id,
            tier=agent.tier,
        ),
        policy=Policy(agent.permissions, record.permissions, record.mode or agent.mode, above),
        agent=agent,
        roster=Roster(services, record, agent.id),
        specs=tools.specs,
        rehearsal=record.rehearsal,
        cancelled=Cancelled(runtime, row.project_id),
        emit=emit,
        **services.ports(record),
    )
    call = partial(tools.registry.invoke, row.action["skill"], row.action["input"], context)
    parent = spans.left_at(record)
    return lambda authority: spans.acted(record, row, parent, partial(call, authority))


def _plugged(services: Services, owner_id: str, ids: Sequence[str], taken: Callable[[Skill], bool]) -> list[Skill]:
    found = services.plugins.skills(owner_id, ids, lambda *_about: None)
    return [skill for skill in found if not taken(skill)]


def _of_project(runtime: Runtime, row: Any, emit: Emit) -> Act:
    """A call that was made for a project from outside of its runs, with the rights it was made with."""
    settings = runtime.settings.model_copy(update={"owner": row.owner_id})
    where, name = outside.place(settings, row.project_id, row.owner_id), row.action["skill"]
    try:
        skills = calling.with_plugin(settings, runtime.services.catalogue, name)
    except SkillError as error:
        failed = SkillResult(False, None, error.message, error.code)
        return lambda _authority: failed
    context = SkillContext(
        caller=Caller("run", row.owner_id, row.project_id, call_id=row.call_id),
        policy=Policy(agent=TEAM_PERMISSIONS, run={}),
        rehearsal=where.rehearsal,
        cancelled=Cancelled(runtime, row.project_id),
        emit=emit,
        **calling.ports(settings, skills, name, settings.workspaces / where.workspace),
    )
    call = partial(skills.invoke, name, row.action["input"], context)
    return lambda authority: spans.acted(None, row, where.trace_parent, partial(call, authority))
