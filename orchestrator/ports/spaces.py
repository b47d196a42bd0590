"""Whose rows a caller may see: it follows from who calls, never from what it says (spec: engine 15, skills 18)."""

from sqlalchemy import Connection

from orchestrator.store import agents
from registry.skills.context import Caller
from registry.skills.notebook import RecordScope


def own(connection: Connection, caller: Caller) -> str | None:
    """The namespace of the agent itself: of its being, else of the agent within its owner. An agent that lives for one
    project has one within that project, so that a like name elsewhere shares nothing."""
    if caller.kind == "person":
        return "owner"
    if caller.being_id is not None:
        return f"being:{caller.being_id}"
    if caller.agent_id is None:
        return None
    if caller.project_id is None or agents.is_saved(connection, caller.owner_id, caller.agent_id):
        return f"agent:{caller.agent_id}"
    if caller.thread_id is not None and not agents.is_own(connection, caller.thread_id, caller.agent_id):
        return f"agent:{caller.agent_id}"  # a preset somebody talks to
    return f"project:{caller.project_id}/agent:{caller.agent_id}"


def outlives(connection: Connection, caller: Caller) -> bool:
    """Whether the caller is an agent its owner saved."""
    return caller.agent_id is not None and agents.is_saved(connection, caller.owner_id, caller.agent_id)


def of_record(connection: Connection, caller: Caller, scope: RecordScope) -> str | None:
    """Where memories of a scope lie; None: this caller has nowhere to keep them. A thread is no project to remember
    for: there an agent without a being remembers for itself."""
    if scope == "session":
        return f"session:{caller.thread_id}/{caller.agent_id}" if caller.thread_id and caller.agent_id else None
    if caller.kind == "person":
        return "owner"
    if caller.being_id is not None:
        return f"being:{caller.being_id}"
    if caller.thread_id is not None:
        return own(connection, caller)
    return f"project:{caller.project_id}" if caller.project_id is not None else None


def of_agenda(caller: Caller) -> str | None:
    """What a caller's agenda is for."""
    if caller.thread_id is not None:
        return f"thread:{caller.thread_id}"
    if caller.task_id is not None:
        return f"task:{caller.task_id}"
    return f"run:{caller.run_id}" if caller.run_id is not None else None


def project_of(caller: Caller, namespace: str) -> str | None:
    """The project that rows of this namespace go with; None: they outlive it."""
    return caller.project_id if namespace.startswith(("project:", "session:")) else None
