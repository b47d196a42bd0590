"""Moves of `agents`: saved, and whom a run may give work to: the agents of its project, then those its owner saved."""

from typing import Any

from sqlalchemy import Connection, Row, func, insert, or_, select

from orchestrator.store import definitions as definitions_moves
from orchestrator.store.database import now_ms
from orchestrator.store.tables import agents, definitions
from registry.agents import AgentDefinition


def at_hand(connection: Connection, owner_id: str, project_id: str | None) -> list[Row[Any]]:
    """Agents with their definitions; an id that the project has hides a saved one."""
    query = (
        select(agents.c.key, agents.c.name, agents.c.project_id, agents.c.definition_digest, definitions.c.body)
        .join(definitions, definitions.c.digest == agents.c.definition_digest)
        .where(or_(agents.c.project_id == project_id, _saved(owner_id)))
        .order_by(agents.c.project_id.is_(None), agents.c.created_at, agents.c.key)
    )
    found: dict[str, Any] = {}
    for row in connection.execute(query):
        found.setdefault(row.key, row)
    return list(found.values())


def saved(connection: Connection, owner_id: str, agent_id: str) -> AgentDefinition | None:
    """An agent an owner saved."""
    query = (
        select(definitions.c.body)
        .join(agents, agents.c.definition_digest == definitions.c.digest)
        .where(_saved(owner_id), agents.c.key == agent_id)
    )
    body = connection.execute(query).scalar()
    return None if body is None else AgentDefinition.model_validate(body)


def all_saved(connection: Connection, owner_id: str) -> list[AgentDefinition]:
    """Every agent an owner saved, the eldest first."""
    query = (
        select(definitions.c.body)
        .join(agents, agents.c.definition_digest == definitions.c.digest)
        .where(_saved(owner_id))
        .order_by(agents.c.created_at, agents.c.key)
    )
    return [AgentDefinition.model_validate(body) for body in connection.execute(query).scalars()]


def of_call(connection: Connection, call_key: str | None) -> str | None:
    """The agent this very call saved before."""
    if call_key is None:
        return None
    return connection.execute(select(agents.c.key).where(agents.c.call_key == call_key)).scalar()


def has_name(connection: Connection, owner_id: str, name_key: str) -> bool:
    """Whether an owner saved an agent of this name, as it compares."""
    query = select(agents.c.id).where(agents.c.owner_id == owner_id, agents.c.name_key == name_key)
    return connection.execute(query).first() is not None


def count_saved(connection: Connection, owner_id: str) -> int:
    return int(connection.execute(select(func.count()).where(_saved(owner_id))).scalar_one())


def save(connection: Connection, owner_id: str, agent: AgentDefinition, *, name_key: str, call_key: str | None) -> None:
    """Saves an agent for its owner, under the definition's own id."""
    definitions_moves.keep(connection, {agent.definition_digest: agent.to_json()})
    row = {
        "id": agent.id,
        "owner_id": owner_id,
        "project_id": None,
        "being_id": None,
        "key": agent.id,
        "name": agent.name,
        "role": agent.role or "",
        "definition_digest": agent.definition_digest,
        "name_key": name_key,
        "call_key": call_key,
    }
    connection.execute(insert(agents).values(created_at=now_ms(), updated_at=now_ms(), **row))


def _saved(owner_id: str) -> Any:
    return (agents.c.project_id.is_(None)) & (agents.c.owner_id == owner_id)
