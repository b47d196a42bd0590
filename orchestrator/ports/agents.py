"""Agents that agents write (spec: engine 15): validated at both levels before a row is written, once for each call.

A top-level agent is its owner's from then on, in every project. A delegate lives where its maker does: that of a saved
agent until it is deleted, that of a project's agent (or of a preset at work in it) as long as the project.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from sqlalchemy import Connection, Row
from sqlalchemy.exc import IntegrityError

from orchestrator.ports.keys import call_key
from orchestrator.ports.studio import MAX_SAVED, comparable_name
from orchestrator.store import agents as moves
from orchestrator.store import audit, threads
from orchestrator.store.database import Database
from registry.agents import AgentDefinition
from registry.base import Json
from registry.errors import Detail, SkillError
from registry.graph.validation import Registries, check_registries, parse_agent
from registry.ids import new_id
from registry.skills.context import Caller

#: Delegates of one agent.
MAX_DELEGATES: Final = 50


class StoredAgents:
    """The `Agents` port over rows.

    Args:
        known: what a definition may name here; asked at each.
        others: names of the agents that are there without a row; asked once.
    """

    def __init__(
        self, database: Database, known: Callable[[], Registries], others: Callable[[], Iterable[str]] = tuple
    ) -> None:
        self._database = database
        self._ask, self._ask_others = known, others

    @property
    def _known(self) -> Registries:
        return self._ask()

    @cached_property
    def _others(self) -> frozenset[str]:
        return frozenset(map(comparable_name, self._ask_others()))

    def create(self, caller: Caller, body: dict[str, Json], *, delegate: bool) -> dict[str, Json]:
        """See `Agents`."""
        agent = self._valid({**body, "id": new_id()})
        return self._twice(lambda c: _create(c, caller, agent, self._others, delegate=delegate))

    def update(self, caller: Caller, agent_id: str, changes: dict[str, Json]) -> dict[str, Json]:
        """See `Agents`."""

        def change(connection: Connection) -> dict[str, Json]:
            row = _mine(connection, caller, agent_id)
            agent = self._valid(_changed(row.body, changes))
            creator = str(row.creator_key)
            _free_name(connection, caller, agent.name, self._others, but=row.key)
            moves.change(connection, row.id, agent, name_key=_name_key(agent.name, row.project_id, creator))
            _note(connection, caller, "agent.changed", str(row.key), fields=sorted(changes))
            return row_of(agent, "delegate")

        return self._twice(change)

    def delete(self, caller: Caller, agent_id: str) -> tuple[str, str]:
        """See `Agents`."""

        def remove(connection: Connection) -> tuple[str, str]:
            row = _mine(connection, caller, agent_id)
            if (thread := threads.speaks_in(connection, caller.owner_id, row.key)) is not None:
                raise SkillError("conflict", f"it speaks in the thread {thread}; it can go when another speaks there")
            moves.remove(connection, row.id)
            _note(connection, caller, "agent.removed", str(row.key))
            return str(row.key), str(row.name)

        return self._database.write(remove)

    def _valid(self, body: dict[str, Json]) -> AgentDefinition:
        agent, found = parse_agent(body, self._known.limits)
        if agent is not None:
            found = [*found, *check_registries(agent, self._known)]
        faults = [finding for finding in found if finding.severity == "error"]
        if agent is None or faults:
            details = [Detail(fault.path, f"{fault.code}: {fault.message}") for fault in faults]
            words = "; ".join(f"{d.path}: {d.message}" if d.path else d.message for d in details[:5])
            raise SkillError("invalid_input", f"nothing was saved: {words}", details=details[:10])
        return agent

    def _twice(self, work: Callable[[Connection], dict[str, Json]]) -> dict[str, Json]:
        try:
            return self._database.write(work)
        except IntegrityError:  # the same name, or the same call, at the same moment: now it is there to be seen
            return self._database.write(work)


def row_of(agent: AgentDefinition, level: str) -> dict[str, Json]:
    """An agent as `agents_list` shows it."""
    packs = [name for name, on in agent.to_json().get("packs", {}).items() if on not in (False, None)]
    return {
        "id": agent.id,
        "name": agent.name,
        "role": agent.role,
        "level": level,
        "packs": packs,
        "skills": list(agent.skills),
    }


def _create(
    connection: Connection, caller: Caller, agent: AgentDefinition, others: Collection[str], *, delegate: bool
) -> dict[str, Json]:
    key, level = call_key(caller), "delegate" if delegate else "top"
    if mine := moves.of_call(connection, key):
        row = moves.by_key(connection, caller.owner_id, caller.project_id, mine)
        return row_of(AgentDefinition.model_validate(row.body) if row is not None else agent, level)
    creator = _creator(connection, caller) if delegate else None
    lives = None if creator is None or creator[1] else caller.project_id
    creator_key = creator[0] if creator is not None else None
    _free_name(connection, caller, agent.name, others)
    _room(connection, caller, lives, creator_key)
    moves.save(
        connection,
        caller.owner_id,
        agent,
        name_key=_name_key(agent.name, lives, creator_key),
        call_key=key,
        project_id=lives,
        creator_key=creator_key,
    )
    _note(connection, caller, "agent.saved", agent.id, name=agent.name, level=level, skills=list(agent.skills))
    return row_of(agent, level)


def _note(connection: Connection, caller: Caller, act: str, agent_id: str, **facts: Json) -> None:
    """An agent's act goes to the audit log like a person's."""
    by = caller.agent_name or caller.owner_id
    audit.record(connection, caller.owner_id, by, act, agent_id, project_id=caller.project_id, **facts)


def _creator(connection: Connection, caller: Caller) -> tuple[str, bool]:
    """The id of who makes a delegate, and whether it outlives the project."""
    if caller.agent_id is None:
        raise SkillError("denied", "denied: only an agent has delegates; use agents_create")
    row = moves.by_key(connection, caller.owner_id, caller.project_id, caller.agent_id)
    if row is not None and row.creator_key is not None:
        raise SkillError("denied", "denied: you are a delegate, which has none of its own; report back instead")
    return caller.agent_id, moves.is_saved(connection, caller.owner_id, caller.agent_id)


def _room(connection: Connection, caller: Caller, project_id: str | None, creator_key: str | None) -> None:
    if creator_key is None:
        if moves.count_saved(connection, caller.owner_id) >= MAX_SAVED:
            raise SkillError("quota", f"{MAX_SAVED} agents are saved already; a person has to delete one first")
    elif moves.count_delegates(connection, caller.owner_id, project_id, creator_key) >= MAX_DELEGATES:
        raise SkillError("quota", f"you have {MAX_DELEGATES} delegates; remove one with agents_delete, or spawn those")


def _mine(connection: Connection, caller: Caller, agent_id: str) -> Row[Any]:
    """A delegate of the caller's agent."""
    row = moves.by_key(connection, caller.owner_id, caller.project_id, agent_id)
    if row is None or row.creator_key is None or row.creator_key != caller.agent_id:
        raise SkillError(
            "not_found", f"{agent_id[:80]!r} is no delegate of yours; agents_list shows yours with the level delegate"
        )
    return row


def _changed(body: Mapping[str, Json], changes: Mapping[str, Json]) -> dict[str, Json]:
    """The definition with other words; what its writer had to leave out stays out."""
    written = {**body, **{key: value for key, value in changes.items() if key != "instructions"}}
    if "instructions" in changes:
        written["prompts"] = {**written.get("prompts", {}), "main": {"instructions": changes["instructions"]}}
    return written


def _name_key(name: str, project_id: str | None, creator_key: str | None) -> str:
    """What is unique among an owner's saved agents; delegates are told apart by where they live and whose they are."""
    comparable = comparable_name(name)
    return comparable if creator_key is None else f"{comparable}\n{project_id or ''}\n{creator_key}"


def _free_name(
    connection: Connection, caller: Caller, name: str, others: Collection[str], *, but: str | None = None
) -> None:
    """Refuses a name that another agent has whom the same run could mean by it."""
    wanted = comparable_name(name)
    for row in moves.at_hand(connection, caller.owner_id, caller.project_id):
        visible = row.creator_key is None or row.creator_key == caller.agent_id
        if visible and row.key != but and comparable_name(row.name) == wanted:
            raise _taken(name)
    if wanted in others:
        raise _taken(name)


def _taken(name: str) -> SkillError:
    return SkillError("conflict", f"an agent is called {name!r} already (agents_list shows all); take another name")


__all__ = ["MAX_DELEGATES", "StoredAgents", "row_of"]
