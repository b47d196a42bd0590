"""Who speaks in the thread of a schedule or a webhook, and the thread made for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import Connection, Row, select

from orchestrator import makers
from orchestrator.store import agents, projects, threads
from orchestrator.store.kept import threads as threads_table
from orchestrator.store.tables import projects as projects_table
from orchestrator.store.threads import NewThread, ThreadKind
from registry.agents import AgentDefinition
from registry.base import Json
from registry.errors import Detail, SkillError
from registry.ids import new_id
from registry.permissions import Mode
from registry.skills.triggers import Hand


@dataclass(frozen=True)
class Voice:
    """An agent, and where its definition is (`NewThread.known_as`)."""

    agent: AgentDefinition
    known_as: Literal["saved", "preset", "own"]


@dataclass(frozen=True)
class Rooms:
    """What threads are made with here."""

    presets: Callable[[], Mapping[str, AgentDefinition]] = dict
    #: Micro-USD one run of it may cost before a person is asked.
    max_cost_micro: int | None = None
    max_parallel: int = 32
    skills: tuple[str, ...] = ()
    #: What the stand-in plays, where it plays the model.
    script: Mapping[str, Json] | None = field(default=None)

    def voice(self, connection: Connection, hand: Hand, agent_id: str | None) -> Voice:
        """Who is meant: the caller's own agent where none is named.

        Raises:
            SkillError: `invalid_input`.
        """
        caller, own = hand.caller, hand.agent
        wanted = agent_id or caller.agent_id
        if wanted is None:
            raise invalid("agentId", "name the agent it is for")
        row = agents.by_key(connection, caller.owner_id, caller.project_id, wanted)
        if row is not None and row.creator_key is not None:
            raise invalid("agentId", "a delegate speaks to nobody but its maker; name an agent of level top")
        if row is not None:
            # The project's copy of an agent that is saved as well: what is saved counts later.
            if row.project_id is None or agents.is_saved(connection, caller.owner_id, wanted):
                saved = agents.saved(connection, caller.owner_id, wanted)
                assert saved is not None
                return Voice(saved, "saved")
            return Voice(AgentDefinition.model_validate(row.body), "own")
        if (preset := self.presets().get(wanted)) is not None:
            return Voice(preset, "preset")
        if own is not None and own.id == wanted:
            return Voice(own, "own")
        raise invalid("agentId", f"there is no agent {wanted[:80]!r}")

    def thread(
        self, connection: Connection, hand: Hand, voice: Voice, *, kind: ThreadKind, title: str, mode: Mode | None
    ) -> str:
        """Makes a thread in which the agent may do no more than whoever made it; returns its id."""
        made = threads.create(
            connection,
            NewThread(
                id=new_id(),
                owner_id=hand.caller.owner_id,
                title=title,
                agent=voice.agent,
                kind=kind,
                known_as=voice.known_as,
                mode=mode,
                max_cost_micro=self.max_cost_micro,
                max_parallel=self.max_parallel,
                skills=self.skills,
                script=self.script,
            ),
        )
        rights = makers.permissions(makers.of(hand.caller, hand.policy), voice.agent.id, voice.agent.permissions)
        if rights:
            projects.permit(connection, made, rights)
        return made


def mode_of(hand: Hand, wanted: Mode | None, agent: AgentDefinition) -> Mode | None:
    """The mode of what an agent lets begin later: as wanted or its own, never one that allows more.

    Raises:
        SkillError: `denied`.
    """
    if hand.policy is None:
        return wanted
    if wanted is not None and not makers.may_give(wanted, hand.policy):
        mine = hand.policy.mode or "none"
        words = f"denied: mode {wanted} would allow more than your own ({mine}); leave mode out, or ask the person"
        raise SkillError("denied", words)
    mode = wanted if wanted is not None else hand.policy.mode
    if mode is None and agent.mode is not None and not makers.may_give(agent.mode, hand.policy):
        return "ask"  # the agent's own would be looser than its caller's
    return mode


def thread_of(connection: Connection, owner_id: str, thread_id: str) -> Row[Any] | None:
    """An owner's thread that is not deleted, with its title."""
    query = (
        select(threads_table, projects_table.c.title)
        .join(projects_table, projects_table.c.id == threads_table.c.id)
        .where(threads_table.c.id == thread_id, projects_table.c.owner_id == owner_id)
        .where(projects_table.c.status == "running")
    )
    return connection.execute(query).one_or_none()


def looser(connection: Connection, thread_id: str, hand: Hand, agent: AgentDefinition) -> bool:
    """Whether a thread other than the caller's own gives rights the caller has not."""
    if hand.policy is None or thread_id == hand.caller.project_id:
        return False
    row = projects.rights(connection, thread_id)
    limits = makers.permissions(makers.of(hand.caller, hand.policy), agent.id, agent.permissions)
    # The run's map stands over the agent's: what the caller is held to, the thread has to be held to as well.
    gates = row.permissions
    held = all(gates.get(name) in (gate, "deny") for name, gate in limits.items())
    widened = any(gate == "allow" and hand.policy.run.get(name) != "allow" for name, gate in gates.items())
    return not held or widened


def invalid(path: str, words: str) -> SkillError:
    return SkillError("invalid_input", f"{path}: {words}", details=[Detail(path, words)])


__all__ = ["Rooms", "Voice", "invalid", "looser", "mode_of", "thread_of"]
