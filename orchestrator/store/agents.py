"""Moves of `agents`: saved, and whom a run may give work to: the agents of its project, then those its owner saved."""

from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, literal, or_, select, tuple_, update

from orchestrator.store import definitions as definitions_moves
from orchestrator.store import sql
from orchestrator.store.database import now_ms
from orchestrator.store.tables import agents, definitions
from registry.agents import AgentDefinition
from registry.teams import SavedAgent

_LISTED = (agents.c.key, agents.c.name, agents.c.project_id, agents.c.creator_key, agents.c.definition_digest)


def at_hand(connection: Connection, owner_id: str, project_id: str | None) -> list[Row[Any]]:
    """Agents with their definitions; an id that the project has hides a saved one."""
    query = (
        select(*_LISTED, definitions.c.body)
        .join(definitions, definitions.c.digest == agents.c.definition_digest)
        .where(_there(owner_id, project_id))
        .order_by(agents.c.project_id.is_(None), agents.c.created_at, agents.c.key)
    )
    found: dict[str, Any] = {}
    for row in connection.execute(query):
        found.setdefault(row.key, row)
    return list(found.values())


def one_at_hand(connection: Connection, owner_id: str, project_id: str, key: str) -> Row[Any] | None:
    """The same for one id."""
    query = (
        select(agents.c.key, agents.c.name, agents.c.project_id, agents.c.definition_digest)
        .where(or_(agents.c.project_id == project_id, _saved(owner_id)), agents.c.key == key)
        .order_by(agents.c.project_id.is_(None))
        .limit(1)
    )
    found: Row[Any] | None = connection.execute(query).one_or_none()  # type: ignore[assignment]
    return found


def saved(connection: Connection, owner_id: str, agent_id: str) -> AgentDefinition | None:
    """An agent an owner saved that can be given work."""
    query = (
        select(definitions.c.body)
        .join(agents, agents.c.definition_digest == definitions.c.digest)
        .where(_saved(owner_id), agents.c.key == agent_id, agents.c.creator_key.is_(None))
    )
    body = connection.execute(query).scalar()
    return None if body is None else AgentDefinition.model_validate(body)


def all_saved(connection: Connection, owner_id: str) -> list[AgentDefinition]:
    """Every agent an owner saved that can be given work, the eldest first."""
    query = (
        select(definitions.c.body)
        .join(agents, agents.c.definition_digest == definitions.c.digest)
        .where(_saved(owner_id), agents.c.creator_key.is_(None))
        .order_by(agents.c.created_at, agents.c.key)
    )
    return [AgentDefinition.model_validate(body) for body in connection.execute(query).scalars()]


def for_teams(connection: Connection, owner_id: str) -> list[SavedAgent]:
    """The same as teams look at them."""
    query = (
        select(agents, definitions.c.body)
        .join(definitions, definitions.c.digest == agents.c.definition_digest)
        .where(_saved(owner_id), agents.c.creator_key.is_(None))
        .order_by(agents.c.created_at, agents.c.key)
    )
    return [
        SavedAgent(
            row.key,
            row.owner_id,
            AgentDefinition.model_validate(row.body),
            row.updated_at or row.created_at,
            being_id=row.being_id,
        )
        for row in connection.execute(query)
    ]


def page(connection: Connection, owner_id: str, limit: int, after: tuple[int, str] | None) -> list[Row[Any]]:
    """The same with their definitions, a page at a time: those made after a moment and id."""
    query = (
        select(agents, definitions.c.body)
        .join(definitions, definitions.c.digest == agents.c.definition_digest)
        .where(_saved(owner_id), agents.c.creator_key.is_(None))
    )
    if after is not None:
        query = query.where(tuple_(agents.c.created_at, agents.c.key) > tuple_(literal(after[0]), literal(after[1])))
    return list(connection.execute(query.order_by(agents.c.created_at, agents.c.key).limit(limit)))


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
    """Agents of an owner's own; delegates are counted by whose they are. Whoever is about to save one waits for another
    who does."""
    sql.take_turns(connection, f"agents {owner_id}")
    mine = select(func.count()).where(_saved(owner_id), agents.c.creator_key.is_(None))
    return int(connection.execute(mine).scalar_one())


def count_delegates(connection: Connection, owner_id: str, project_id: str | None, creator_key: str) -> int:
    """Of one agent, with the same patience."""
    sql.take_turns(connection, f"delegates {owner_id} {project_id} {creator_key}")
    mine = select(func.count()).where(
        agents.c.owner_id == owner_id, _of_project(project_id), agents.c.creator_key == creator_key
    )
    return int(connection.execute(mine).scalar_one())


def by_key(connection: Connection, owner_id: str, project_id: str | None, key: str) -> Row[Any] | None:
    """The agent a run means by this id: the project's, else the one its owner saved."""
    query = (
        select(agents, definitions.c.body)
        .join(definitions, definitions.c.digest == agents.c.definition_digest)
        .where(agents.c.key == key, _there(owner_id, project_id))
        .order_by(agents.c.project_id.is_(None))
    )
    return connection.execute(query.limit(1)).first()


def is_own(connection: Connection, project_id: str, key: str) -> bool:
    """Whether an agent of this id belongs to a project or a thread."""
    mine = select(agents.c.id).where(agents.c.project_id == project_id, agents.c.key == key)
    return connection.execute(mine).first() is not None


def is_saved(connection: Connection, owner_id: str, key: str) -> bool:
    """Whether an agent outlives its projects."""
    return connection.execute(select(agents.c.id).where(_saved(owner_id), agents.c.key == key)).first() is not None


def save(
    connection: Connection,
    owner_id: str,
    agent: AgentDefinition,
    *,
    name_key: str,
    call_key: str | None,
    project_id: str | None = None,
    creator_key: str | None = None,
    being_id: str | None = None,
) -> None:
    """Saves an agent for its owner, under the definition's own id.

    Args:
        project_id: the project it lives for; None: until it is deleted.
        creator_key: whose delegate it is.
        being_id: the being it is; nothing an agent wrote says so.
    """
    definitions_moves.keep(connection, {agent.definition_digest: agent.to_json()})
    row = {
        "id": agent.id,
        "owner_id": owner_id,
        "project_id": project_id,
        "being_id": being_id,
        "key": agent.id,
        "name": agent.name,
        "role": agent.role or "",
        "definition_digest": agent.definition_digest,
        "creator_key": creator_key,
        "name_key": name_key,
        "call_key": call_key,
    }
    connection.execute(insert(agents).values(created_at=now_ms(), updated_at=now_ms(), **row))


def change(connection: Connection, row_id: str, agent: AgentDefinition, *, name_key: str) -> None:
    """Gives a saved agent another definition; what runs keeps the one it began with."""
    definitions_moves.keep(connection, {agent.definition_digest: agent.to_json()})
    values = {
        "name": agent.name,
        "role": agent.role or "",
        "definition_digest": agent.definition_digest,
        "name_key": name_key,
    }
    connection.execute(update(agents).where(agents.c.id == row_id).values(updated_at=now_ms(), **values))


def beings(connection: Connection, owner_id: str) -> dict[str, str]:
    """The beings among an owner's saved agents: whose memory it is -> the agent's id."""
    query = select(agents.c.being_id, agents.c.key).where(_saved(owner_id), agents.c.being_id.is_not(None))
    return {row.being_id: row.key for row in connection.execute(query)}


def copy_of(connection: Connection, owner_id: str, being_id: str) -> str | None:
    """The id of an owner's agent that is this being; whoever is about to make one waits for another who does."""
    sql.take_turns(connection, f"adopting {owner_id} {being_id}")
    return beings(connection, owner_id).get(being_id)


def promote(connection: Connection, row_id: str, being: AgentDefinition) -> None:
    """Makes a being of a saved agent, under the id that its definition says."""
    definitions_moves.keep(connection, {being.definition_digest: being.to_json()})
    values = {"being_id": being.being_id, "definition_digest": being.definition_digest}
    connection.execute(update(agents).where(agents.c.id == row_id).values(updated_at=now_ms(), **values))


def remove(connection: Connection, row_id: str) -> None:
    connection.execute(delete(agents).where(agents.c.id == row_id))


def _saved(owner_id: str) -> Any:
    return (agents.c.project_id.is_(None)) & (agents.c.owner_id == owner_id)


def _there(owner_id: str, project_id: str | None) -> Any:
    """Of the project, when there is one, or saved by its owner."""
    return _saved(owner_id) if project_id is None else or_(agents.c.project_id == project_id, _saved(owner_id))


def _of_project(project_id: str | None) -> Any:
    return agents.c.project_id.is_(None) if project_id is None else agents.c.project_id == project_id
