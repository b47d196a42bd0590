"""Moves of `audit`: what was done is written in the transaction that does it, so that there is no act without its line
and no line without its act."""

from typing import Any

from sqlalchemy import Connection, Row, insert, select, tuple_

from orchestrator.store.database import now_ms
from orchestrator.store.house_tables import audit
from orchestrator.store.tables import projects
from registry import masking
from registry.base import Json
from registry.ids import new_id


def record(
    connection: Connection,
    owner_id: str,
    by: str,
    act: str,
    subject: str | None = None,
    *,
    project_id: str | None = None,
    **facts: Json,
) -> None:
    """Writes that somebody did something.

    Args:
        by: a person, `key NAME`, or an agent.
        act: what, as in `signal.answered`; docs/security.md lists them.
        subject: the id or name of what it was done to.
        facts: small ones; None is left out, and what looks like a secret is masked.
    """
    data = masking.mask({name: value for name, value in facts.items() if value is not None})
    row = {"id": new_id(), "owner_id": owner_id, "by": by, "act": act, "subject": subject, "project_id": project_id}
    connection.execute(insert(audit).values(row | {"data": data, "at": now_ms()}))


def of_project(
    connection: Connection, project_id: str, by: str, act: str, subject: str | None = None, **facts: Json
) -> None:
    """The same for something done to a project, whose owner is looked up."""
    owner_id = connection.execute(select(projects.c.owner_id).where(projects.c.id == project_id)).scalar_one()
    record(connection, owner_id, by, act, subject or project_id, project_id=project_id, **facts)


def page(
    connection: Connection,
    owner_id: str,
    limit: int,
    after: tuple[int, str] | None = None,
    *,
    act: str | None = None,
    subject: str | None = None,
) -> list[Row[Any]]:
    """An owner's lines, the latest first; `act` may be the beginning of one (`key` is all about keys)."""
    query = select(audit).where(audit.c.owner_id == owner_id)
    if act is not None:
        query = query.where((audit.c.act == act) | audit.c.act.startswith(f"{act}.", autoescape=True))
    if subject is not None:
        query = query.where((audit.c.subject == subject) | (audit.c.project_id == subject))
    if after is not None:
        query = query.where(tuple_(audit.c.at, audit.c.id) < after)
    return list(connection.execute(query.order_by(audit.c.at.desc(), audit.c.id.desc()).limit(limit)).all())


def pruned(connection: Connection, owner_id: str, project_id: str) -> Row[Any] | None:
    """What the log says of a project that is gone because it was old."""
    mine = (audit.c.owner_id == owner_id, audit.c.subject == project_id, audit.c.act == "project.pruned")
    return connection.execute(select(audit).where(*mine).limit(1)).one_or_none()
