"""Calls of skills that this process can make itself: those that stand on rows alone, or on nothing.

What needs the network, a sandbox, a model or a folder is work for workers.
"""

from typing import Final

from orchestrator import lookup, outside
from orchestrator.ports.signals import DeskSignals
from orchestrator.ports.wiring import wire
from orchestrator.records import Event
from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from registry.base import Json
from registry.errors import SkillError, Unavailable
from registry.ids import new_id
from registry.permissions import Policy
from registry.personas import TEAM_PERMISSIONS
from registry.skills.context import Authority, Caller, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult

#: What a call may need and still be made here.
HERE: Final = frozenset({"memory", "signals", "schedules", "studio"})


def made_here(
    settings: Settings, skills: SkillRegistry, name: str, given: Json, *, as_agent: bool, project: str | None
) -> SkillResult:
    """Calls a skill once, for the settings' owner.

    Args:
        as_agent: with a team agent's permissions and nobody's yes; else it is a person's own act.
        project: id of the project whose trace hears of it.

    Raises:
        Refused: `unknown_project`.
        Unavailable: the call needs a worker.
    """
    found = skills.find(name)
    if found is not None and not found.needs <= HERE:
        raise Unavailable(f"{found.name} needs a worker, and calls from here do not reach one yet", code="needs_worker")
    where = outside.place(settings, _whole(settings, project), settings.owner) if project is not None else None
    ports = wire(settings, skills)
    call_id, lines = new_id(), list[Event]()
    context = SkillContext(
        caller=Caller(
            kind="run" if as_agent else "person",
            owner_id=settings.owner,
            project_id=where.id if where else None,
            call_id=call_id,
        ),
        policy=Policy(agent=TEAM_PERMISSIONS, run={}) if as_agent else None,
        rehearsal=where.rehearsal if where else False,
        emit=lambda kind, data: lines.append(Event(kind, data)),
        memory=ports.memory,
        schedules=ports.schedules,
        studio=ports.studio,
        connections=ports.connections,
        meter=ports.meter,
        signals=DeskSignals(settings, get_database(settings)),
    )
    # A person's own act is their yes; a key is nobody's.
    authority = None if as_agent else Authority(digest=None)
    result = skills.invoke(name, given, context, authority)
    if where is not None and found is not None:
        if result.pending is not None:
            try:
                result.signal_id = outside.ask(settings, where, call_id, result.pending)
            except SkillError as error:
                result.code, result.error = error.code, error.message
        _tell(settings, where, call_id, found.name, given, result, lines)
    return result


def _whole(settings: Settings, project: str) -> str:
    with get_database(settings).read() as connection:
        return lookup.project_id(connection, project, settings.owner)


def _tell(
    settings: Settings,
    where: outside.Place,
    call_id: str,
    name: str,
    given: Json,
    result: SkillResult,
    lines: list[Event],
) -> None:
    """The call's two lines in the trace, with what it said between them."""
    about: dict[str, Json] = {"toolCallId": call_id, "name": name}
    outcome = "ok" if result.ok else "deferred" if result.signal_id else "error"
    ended = {
        "outcome": outcome,
        "isError": not result.ok,
        "output": result.output if result.ok else result.error,
        "durationMs": result.duration_ms,
    } | ({"code": result.code} if result.code else {})
    outside.record(
        settings,
        where,
        [Event("tool.call", about | {"input": given}), *lines, Event("tool.result", about | ended)],
        [],
    )
