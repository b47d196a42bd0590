"""Calls of skills that are asked for over HTTP (spec: skills 3.1).

What stands on rows alone, or on nothing, is done at once by the process that was asked. What needs the network, a
sandbox, a model, a folder or a plugin is a row and a wake-up: a worker makes the call, and the row says how it came
out.
"""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from orchestrator import outside, plugins, queue, tracing
from orchestrator.ports.signals import DeskSignals
from orchestrator.ports.wiring import wire
from orchestrator.records import Event
from orchestrator.settings import Settings
from orchestrator.store import audit, requests
from orchestrator.store.database import get_database
from registry.base import Json
from registry.errors import Refused, SkillError
from registry.ids import new_id
from registry.jsontext import digest
from registry.permissions import Policy
from registry.personas import TEAM_PERMISSIONS
from registry.skills.context import Authority, Caller, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult
from registry.skills.skill import Skill

#: What a call may need and still be made here.
HERE: Final = frozenset({"memory", "signals", "schedules", "studio"})
#: Seconds beyond a skill's own time for which whoever asked waits for a worker.
GRACE_S: Final = 5.0


@dataclass(frozen=True)
class Asked:
    """A call that a worker is to make."""

    id: str
    #: Seconds in which it should be over.
    within_s: float


def ask(
    settings: Settings, skills: SkillRegistry, name: str, given: Json, *, as_agent: bool, project: str | None
) -> SkillResult | Asked:
    """Calls a skill once, for the settings' owner; or has a worker call it.

    Args:
        as_agent: with a team agent's permissions and nobody's yes; else it is a person's own act.
        project: id of the project whose trace hears of it.

    Raises:
        Refused: `unknown_skill`, `unknown_project`, `queue_full`.
        NoBroker: it takes a worker, and there is no way to one.
    """
    found = skills.find(name) or plugins.skill(settings, name)
    if found is None:
        raise Refused(f"there is no skill {name[:80]!r}", code="unknown_skill")
    where = outside.place(settings, project, settings.owner) if project is not None else None
    call = _Call(settings, skills, found, given, as_agent=as_agent, where=where)
    if found.plugin is None and found.needs <= HERE:
        return call.made()
    return call.refused() or call.handed_on()


def view_of(settings: Settings, request_id: str) -> dict[str, Json]:
    """A call that a worker makes, as it is shown.

    Raises:
        Refused: `unknown_call`: there is none, or it was over for a day.
    """
    with get_database(settings).read() as connection:
        row = requests.get(connection, settings.owner, request_id)
    if row is None:
        raise Refused(f"there is no call {request_id[:80]!r} (any more)", code="unknown_call")
    return {
        "id": row.id,
        "name": row.skill,
        "projectId": row.project_id,
        "status": row.status,
        "result": row.result,
        "createdAt": row.created_at,
        "endedAt": row.ended_at,
    }


def hand_on(
    settings: Settings,
    name: str,
    given: Json,
    *,
    within_s: float,
    approved: str | None,
    project_id: str | None = None,
    content: bytes | None = None,
    id_: str | None = None,
) -> Asked:
    """Writes the row of a call and wakes a worker.

    Args:
        within_s: seconds in which it should be over.
        approved: digest of the call a person makes; None: a program asks.
        content: a file that comes along.

    Raises:
        Refused: `queue_full`.
        NoBroker: nothing is written: nobody would ever come.
    """
    queue.sender(settings)
    row = {
        "id": id_ or new_id(),
        "owner_id": settings.owner,
        "project_id": project_id,
        "skill": name,
        "input": given,
        "approved": approved,
        "trace_parent": tracing.current(),
        "content": content,
    }
    most = settings.api.calls

    def write(connection: Connection) -> bool:
        asked = requests.put(connection, row, most)
        if asked:
            _note(connection, settings, name, str(row["id"]), project_id)
        return asked

    if not get_database(settings).write(write):
        raise Refused(f"{most} calls of yours are open already; wait for some of them", code="queue_full")
    queue.call(settings, {str(row["id"]): name})
    return Asked(str(row["id"]), within_s)


def _note(connection: Connection, settings: Settings, name: str, call_id: str, project_id: str | None) -> None:
    """A person's call of a skill is their yes to it: who it was is on record."""
    facts: dict[str, Json] = {"callId": call_id}
    audit.record(connection, settings.owner, settings.by, "skill.called", name, project_id=project_id, **facts)


class _Call:
    def __init__(
        self,
        settings: Settings,
        skills: SkillRegistry,
        skill: Skill,
        given: Json,
        *,
        as_agent: bool,
        where: outside.Place | None,
    ) -> None:
        self._settings, self._skills, self._skill, self._given = settings, skills, skill, given
        self._where, self._id = where, new_id()
        self._lines: list[Event] = []
        self._policy = Policy(agent=TEAM_PERMISSIONS, run={}) if as_agent else None
        # A person's own act is their yes; a key is nobody's.
        self._authority = None if as_agent else Authority(digest=None)

    def made(self) -> SkillResult:
        """Calls it here. What it does is done in transactions of its own: that it is called is on record before."""
        where = self._where.id if self._where else None
        get_database(self._settings).write(lambda c: _note(c, self._settings, self._skill.name, self._id, where))
        return self._told(self._skills.invoke(self._skill.name, self._given, self._context(), self._authority))

    def refused(self) -> SkillResult | None:
        """What no worker need be asked for; the input of a plugin's skill is judged where it can be stopped."""
        if self._skill.plugin is not None:
            return None
        refusal = self._skills.refusal(self._skill.name, self._given, self._context(), self._authority)
        return None if refusal is None else self._told(refusal)

    def handed_on(self) -> Asked:
        """Writes the row and wakes a worker."""
        return hand_on(
            self._settings,
            self._skill.name,
            self._given,
            within_s=self._skill.timeout_s + GRACE_S,
            approved=None if self._authority is None else self._digest(),
            project_id=self._where.id if self._where else None,
            id_=self._id,
        )

    def _digest(self) -> str:
        """What a person's yes is bound to: this call and no other."""
        if self._skill.plugin is not None:
            return digest({"skill": self._skill.name, "input": self._given})
        return self._skills.check(self._skill.name, self._given, self._context()).digest

    def _context(self) -> SkillContext:
        ports, where = wire(self._settings, self._skills), self._where
        return SkillContext(
            caller=Caller(
                kind="person" if self._policy is None else "run",
                owner_id=self._settings.owner,
                project_id=where.id if where else None,
                call_id=self._id,
            ),
            policy=self._policy,
            rehearsal=where.rehearsal if where else False,
            emit=lambda kind, data: self._lines.append(Event(kind, data)),
            memory=ports.memory,
            schedules=ports.schedules,
            studio=ports.studio,
            connections=ports.connections,
            meter=ports.meter,
            signals=DeskSignals(self._settings, get_database(self._settings)),
        )

    def _told(self, result: SkillResult) -> SkillResult:
        """The result, once the project's trace and its owner's desk have heard of it."""
        if self._where is None:
            return result
        if result.pending is not None:
            try:
                result.signal_id = outside.ask(self._settings, self._where, self._id, result.pending)
            except SkillError as error:
                result.code, result.error = error.code, error.message
        about: dict[str, Json] = {"toolCallId": self._id, "name": self._skill.name}
        outcome = "ok" if result.ok else "deferred" if result.signal_id else "error"
        ended = {
            "outcome": outcome,
            "isError": not result.ok,
            "output": result.output if result.ok else result.error,
            "durationMs": result.duration_ms,
        } | ({"code": result.code} if result.code else {})
        lines = [
            Event("tool.call", about | {"input": self._given}),
            *self._lines,
            Event("tool.result", about | ended),
        ]
        outside.record(self._settings, self._where, lines, [])
        return result
