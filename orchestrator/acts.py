"""The audit log as it may be seen."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row

from orchestrator.store import audit
from registry.base import Json


def listed(
    connection: Connection,
    owner_id: str,
    limit: int,
    *,
    after: tuple[int, str] | None = None,
    act: str | None = None,
    subject: str | None = None,
) -> list[dict[str, Json]]:
    """An owner's lines, the latest first."""
    return [_view(row) for row in audit.page(connection, owner_id, limit, after, act=act, subject=subject)]


def _view(row: Row[Any]) -> dict[str, Json]:
    time = datetime.fromtimestamp(row.at / 1000, UTC).isoformat(timespec="milliseconds")
    shown = {"id": row.id, "createdAt": row.at, "time": time, "by": row.by, "act": row.act, "subject": row.subject}
    shown |= {"projectId": row.project_id, "data": row.data}
    return {name: value for name, value in shown.items() if value is not None}
