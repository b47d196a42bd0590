"""Moves of `threads`: made, renamed, given another voice, deleted. What is said in them stands in `sends`.

A thread is a row beside a standing project of the same id, which gives it owner, mode, workspace, trace and money. That
project has no tasks, is in no list, and ends only when the thread is deleted. Lock order: the project stands for its
thread, so that nothing about a thread is decided without the lock every end, park and cancel in it takes first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, exists, func, insert, literal, select, tuple_, union, update

from orchestrator.records import Event
from orchestrator.store import agents as agents_moves
from orchestrator.store import definitions, events
from orchestrator.store.database import now_ms
from orchestrator.store.kept import schedules
from orchestrator.store.tables import agents, projects, runs
from orchestrator.store.thread_tables import thread_runs, threads, triggers
from registry.agents import AgentDefinition
from registry.base import Json
from registry.errors import Refused
from registry.ids import new_id

ThreadKind = Literal["chat", "schedule", "webhook"]
#: Runs that belong to no task but to a thread: those that talk, and those that only sum it up.
RUN_KINDS = frozenset({"thread", "compact"})
#: `projects.kind` of a conversation.
KIND = "thread"
BUSY = "thread_busy"


@dataclass(frozen=True)
class NewThread:
    """A conversation to be."""

    id: str
    owner_id: str
    title: str
    agent: AgentDefinition
    kind: ThreadKind = "chat"
    #: Where the agent's definition is: among the saved ones; a preset, of which the thread remembers what it last knew;
    #: or nowhere else, so that it becomes the thread's own.
    known_as: Literal["saved", "preset", "own"] = "saved"
    mode: str | None = None
    client_key: str | None = None
    #: Micro-USD one run of it may cost before a person is asked.
    max_cost_micro: int | None = None
    max_parallel: int = 32
    skills: tuple[str, ...] = ()
    #: What the stand-in plays.
    script: Mapping[str, Json] | None = field(default=None)


def create(connection: Connection, new: NewThread) -> str:
    """Makes a thread; the same owner and client key give the same one. Returns its id."""
    if new.client_key is not None:
        same = select(projects.c.id).where(
            projects.c.owner_id == new.owner_id, projects.c.client_key == _key(new.client_key)
        )
        if (found := connection.execute(same).scalar()) is not None:
            return str(found)
    body = new.agent.definition_digest
    project = {
        "id": new.id,
        "kind": KIND,
        "owner_id": new.owner_id,
        "client_key": _key(new.client_key),
        "file_digest": body,
        "title": new.title,
        "brief": "",
        "status": "running",
        "mode": new.mode,
        "permissions": {},
        "approvals": "park",
        "max_cost_micro": new.max_cost_micro,
        "max_parallel": new.max_parallel,
        "priority": 5,
        "skills": list(new.skills),
        "script": None if new.script is None else dict(new.script),
        "workspace": new.id,
    }
    connection.execute(insert(projects).values(project | {"created_at": now_ms()}))
    events.open_trace(connection, new.id)
    definitions.keep(connection, {body: new.agent.to_json()})
    row = {
        "id": new.id,
        "kind": new.kind,
        "agent_id": new.agent.id,
        "agent_name": new.agent.name,
        "origin_agent_id": new.agent.id,
        "definition_digest": body if new.known_as == "preset" else None,
    }
    connection.execute(insert(threads).values(row | {"created_at": now_ms(), "active_at": now_ms()}))
    if new.known_as == "own":
        _own(connection, new.id, new.owner_id, new.agent)
    return new.id


def renew_agent(connection: Connection, thread_id: str, agent: AgentDefinition) -> None:
    """Takes over what a definition says today, for one that only this thread has or that is a preset: its next run uses
    it, a run under way keeps its own.

    Raises:
        Refused: `unknown_thread`.
    """
    project, thread = lock(connection, thread_id)
    mine = (agents.c.project_id == thread_id) & (agents.c.key == agent.id)
    definitions.keep(connection, {agent.definition_digest: agent.to_json()})
    if connection.execute(select(exists().where(mine))).scalar():
        about = {"name": agent.name, "role": agent.role or "", "definition_digest": agent.definition_digest}
        connection.execute(update(agents).where(mine).values(about | {"updated_at": now_ms()}))
    elif thread.agent_id != agent.id:
        _own(connection, thread_id, project.owner_id, agent)
    elif thread.definition_digest is not None:
        about = {"definition_digest": agent.definition_digest, "agent_name": agent.name}
        connection.execute(update(threads).where(threads.c.id == thread_id).values(about))
    else:  # a file of the same id as a saved agent: in this thread it is the file that counts
        _own(connection, thread_id, project.owner_id, agent)


def lock(connection: Connection, thread_id: str) -> tuple[Row[Any], Row[Any]]:
    """The standing project of a thread, locked, and the thread as it is under that lock.

    Raises:
        Refused: `unknown_thread`: there is none, or it was deleted.
    """
    mine = (projects.c.id == thread_id, projects.c.kind == KIND)
    project = connection.execute(select(projects).where(*mine).with_for_update(key_share=True)).one_or_none()
    if project is None or project.status != "running":
        raise Refused(f"there is no thread {thread_id}", code="unknown_thread")
    return project, connection.execute(select(threads).where(threads.c.id == thread_id)).one()


def speaker(connection: Connection, thread: Row[Any], owner_id: str) -> tuple[str, str, str]:
    """Who speaks next in a thread, as its definition is now: id, name, digest.

    Raises:
        Refused: `unknown_agent` when nobody of that id is left.
    """
    found = agents_moves.one_at_hand(connection, owner_id, thread.id, thread.agent_id)
    if found is not None:
        return thread.agent_id, found.name, found.definition_digest
    if thread.definition_digest is not None:
        return thread.agent_id, thread.agent_name, thread.definition_digest
    words = f"the agent {thread.agent_id!r} of this thread is not there any more; save one of that id again"
    raise Refused(words, code="unknown_agent")


def rename(connection: Connection, thread_id: str, title: str) -> None:
    """Raises:
    Refused: `unknown_thread`.
    """
    lock(connection, thread_id)
    connection.execute(update(projects).where(projects.c.id == thread_id).values(title=title))


def set_mode(connection: Connection, thread_id: str, mode: str | None) -> None:
    """The mode of runs to come that name none; a run under way keeps its own.

    Raises:
        Refused: `unknown_thread`.
    """
    lock(connection, thread_id)
    connection.execute(update(projects).where(projects.c.id == thread_id).values(mode=mode))


def set_speaker(connection: Connection, thread_id: str, agent: AgentDefinition, *, preset: bool) -> None:
    """Gives a free thread another agent to speak with; what was said stays.

    Raises:
        Refused: `unknown_thread`, `thread_busy`.
    """
    _, thread = lock(connection, thread_id)
    if thread.run_id is not None:
        raise Refused(f"the thread is at work on run {thread.run_id}; its speaker changes when it has ended", code=BUSY)
    definitions.keep(connection, {agent.definition_digest: agent.to_json()})
    kept = agent.definition_digest if preset else None
    about = {"agent_id": agent.id, "agent_name": agent.name, "definition_digest": kept}
    connection.execute(update(threads).where(threads.c.id == thread_id).values(about))


def listed(
    connection: Connection, owner_id: str, limit: int = 200, after: tuple[int, str] | None = None
) -> list[Row[Any]]:
    """The threads of an owner, what was active last first: with whoever speaks now, and how a run under way stands.

    Args:
        after: when the last one of the page before was active, and its id.
    """
    query = _shown().where(projects.c.owner_id == owner_id, projects.c.status == "running")
    if after is not None:
        place = tuple_(literal(after[0]), literal(after[1]))
        query = query.where(tuple_(threads.c.active_at, threads.c.id) < place)
    query = query.order_by(threads.c.active_at.desc(), threads.c.id.desc()).limit(limit)
    return list(connection.execute(query).all())


def get(connection: Connection, thread_id: str) -> Row[Any]:
    """One thread, as `listed` gives it.

    Raises:
        Refused: `unknown_thread`.
    """
    query = _shown().where(threads.c.id == thread_id, projects.c.status == "running")
    found: Row[Any] | None = connection.execute(query).one_or_none()
    if found is None:
        raise Refused(f"there is no thread {thread_id}", code="unknown_thread")
    return found


def preset_of(connection: Connection, thread_id: str) -> tuple[str, str] | None:
    """The preset that speaks in a thread, and the digest of what the thread knows of it; None: somebody else does."""
    query = select(threads.c.agent_id, threads.c.definition_digest).where(threads.c.id == thread_id)
    found = connection.execute(query.where(threads.c.definition_digest.is_not(None))).one_or_none()
    return None if found is None else (found.agent_id, found.definition_digest)


def scheduled(connection: Connection, thread_ids: Sequence[str]) -> frozenset[str]:
    """Those of these threads that schedules talk in: made for one, or with something from one that waits or ran."""
    made = select(threads.c.id).where(threads.c.id.in_(thread_ids), threads.c.kind == "schedule")
    ran = select(thread_runs.c.thread_id).where(
        thread_runs.c.thread_id.in_(thread_ids), thread_runs.c.origin == "schedule"
    )
    waits = select(triggers.c.thread_id).where(
        triggers.c.thread_id.in_(thread_ids), triggers.c.schedule_id.is_not(None)
    )
    set_for = select(schedules.c.thread_id).where(schedules.c.thread_id.in_(thread_ids))
    return frozenset(connection.execute(union(made, ran, waits, set_for)).scalars())


def speaks_in(connection: Connection, owner_id: str, agent_id: str) -> str | None:
    """A thread whose speaker an agent is; None: it may go."""
    mine = (projects.c.owner_id == owner_id, projects.c.status == "running")
    query = select(threads.c.id).join(projects, projects.c.id == threads.c.id).where(*mine)
    now = select(runs.c.id).where(runs.c.id == threads.c.run_id, runs.c.agent_id == agent_id)
    return connection.execute(query.where((threads.c.agent_id == agent_id) | now.exists()).limit(1)).scalar()


def close(connection: Connection, thread_id: str, reason: str) -> list[Event]:
    """Its standing project ends, and what waited for it is dropped; the caller holds the lock and has ended its run."""
    dropped = connection.execute(delete(triggers).where(triggers.c.thread_id == thread_id).returning(triggers)).all()
    values = {"status": "cancelled", "reason": reason, "ended_at": now_ms()}
    connection.execute(update(projects).where(projects.c.id == thread_id).values(values))
    lines = [
        Event("trigger.dropped", {"id": row.source_id, "threadId": thread_id, "reason": reason})
        for row in sorted(dropped, key=lambda row: row.number)
    ]
    return [*lines, Event("project.status", {"status": "cancelled", "from": "running", "reason": reason})]


def _shown() -> Any:
    return (
        select(
            *(threads.c.id, threads.c.kind, threads.c.run_id, threads.c.runs, threads.c.origin_agent_id),
            *(threads.c.created_at, threads.c.active_at),
            *(projects.c.title, projects.c.mode, projects.c.owner_id, projects.c.cost_micro),
            runs.c.status.label("run_status"),
            runs.c.waiting_on,
            _now("agent_id"),
            _now("agent_name"),
        )
        .join(projects, projects.c.id == threads.c.id)
        .join(runs, runs.c.id == threads.c.run_id, isouter=True)
    )


def _now(name: str) -> Any:
    """A handoff changes the speaker while its run is under way, whose row says so at once."""
    return func.coalesce(runs.c[name], threads.c[name]).label(name)


def _own(connection: Connection, thread_id: str, owner_id: str, agent: AgentDefinition) -> None:
    row = {
        "id": new_id(),
        "owner_id": owner_id,
        "project_id": thread_id,
        "key": agent.id,
        "name": agent.name,
        "role": agent.role or "",
        "definition_digest": agent.definition_digest,
    }
    connection.execute(insert(agents).values(row | {"created_at": now_ms()}))


def _key(client_key: str | None) -> str | None:
    """Projects and threads have their keys in one column, and must not take each other's."""
    return None if client_key is None else f"\x1fthread:{client_key}"
