"""Reads of `agents`: whom a run may give work to: the agents of its project, then those its owner saved."""

from typing import Any

from sqlalchemy import Connection, Row, or_, select

from orchestrator.store.tables import agents, definitions
from registry.agents import AgentDefinition


def at_hand(connection: Connection, owner_id: str, project_id: str | None) -> list[Row[Any]]:
    """Agents with their definitions; an id that the project has hides a saved one."""
    mine = (agents.c.project_id.is_(None)) & (agents.c.owner_id == owner_id)
    query = (
        select(agents.c.key, agents.c.name, agents.c.project_id, agents.c.definition_digest, definitions.c.body)
        .join(definitions, definitions.c.digest == agents.c.definition_digest)
        .where(or_(agents.c.project_id == project_id, mine))
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
        .where(agents.c.project_id.is_(None), agents.c.owner_id == owner_id, agents.c.key == agent_id)
    )
    body = connection.execute(query).scalar()
    return None if body is None else AgentDefinition.model_validate(body)
