"""Calls made for a project from outside of its runs: what the trace hears of them, and the decisions they need."""

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select

from orchestrator import desk, events, lookup
from orchestrator.records import Event, FileRecord
from orchestrator.settings import Settings
from orchestrator.store import events as trace
from orchestrator.store import signals as moves
from orchestrator.store.database import get_database, now_ms
from orchestrator.store.sql import upsert
from orchestrator.store.tables import files, projects, signals
from registry.errors import SkillError
from registry.ids import new_id
from registry.skills.registry import Pending

_TITLE = "Something running for you wants to use {skill}, which acts outside Officina"
_SCHEMA = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}


@dataclass(frozen=True)
class Place:
    """The project a call is made for."""

    id: str
    owner_id: str
    #: The folder's name under the workspace root.
    workspace: str
    rehearsal: bool
    #: Where its spans hang.
    trace_parent: str | None = None


def place(settings: Settings, given: str, owner_id: str) -> Place:
    """The owner's project of this id, or of a part of it that no other has.

    Raises:
        Refused: `unknown_project`, `ambiguous_id`.
    """
    with get_database(settings).read() as connection:
        project_id = lookup.project_id(connection, given, owner_id)
        row = connection.execute(select(projects).where(projects.c.id == project_id)).one()
    return Place(row.id, row.owner_id, row.workspace, row.rehearsal, row.trace_parent)


def record(settings: Settings, where: Place, lines: list[Event], written: list[FileRecord]) -> None:
    """Adds to the project's trace what a call did."""
    events.publish(settings, where.id, get_database(settings).write(lambda c: add(c, where.id, lines, written)))


def add(connection: Connection, project_id: str, lines: list[Event], written: list[FileRecord]) -> int:
    """The same in a transaction of the caller's, last in it; returns the number of the last line."""
    if written:
        rows = [
            {"project_id": project_id, "path": f.path, "bytes": f.bytes, "sha256": f.sha256, "skill": f.skill}
            for f in written
        ]
        upsert(connection, files, rows, written_at=now_ms())
    return trace.append(connection, project_id, lines)


def ask(settings: Settings, where: Place, call_id: str, pending: Pending) -> str:
    """Puts a decision about exactly this call on the owner's desk; the one that is open already, if it is the same.

    A yes runs the call as a job of its own and records how it came out.

    Raises:
        SkillError: `quota` when too many decisions of the project are open.
    """
    days = settings.limits.signal_life_days
    row = {
        "id": new_id(),
        "owner_id": where.owner_id,
        "project_id": where.id,
        "call_id": call_id,
        "kind": "decision",
        "status": "open",
        "title": _TITLE.format(skill=pending.skill),
        "body": "",
        "reason": pending.reason,
        "options": [{"id": word, "label": word} for word in ("Do it", "No")],
        "priority": "normal",
        "action": {"toolCallId": call_id} | pending.action,
        "digest": pending.digest,
        "schema": _SCHEMA,
        "carry_on": True,
    }

    def write(connection: Connection) -> str:
        # One after the other: who asks at the same moment sees what the one before asked.
        mine = select(projects.c.id).where(projects.c.id == where.id)
        connection.execute(mine.with_for_update(key_share=True))
        same = select(signals.c.id).where(
            signals.c.project_id == where.id,
            signals.c.run_id.is_(None),
            signals.c.digest == pending.digest,
            signals.c.status == "open",
            signals.c.carry_on,
        )
        open_one = connection.execute(same.limit(1)).scalar()
        if open_one:
            return str(open_one)
        if moves.open_decisions(connection, where.id) >= settings.limits.open_decisions_per_project:
            raise SkillError("quota", "too many decisions of this project are open; answer some first")
        times = {"created_at": now_ms(), "expires_at": now_ms() + days * 86_400_000}
        connection.execute(insert(signals).values(row | times))
        data = {
            "signalId": row["id"],
            "signalKind": "decision",
            "title": row["title"],
            "schema": row["schema"],
            "action": row["action"],
        }
        trace.append(connection, where.id, [Event("signal.raised", data)])
        return str(row["id"])

    signal_id = get_database(settings).write(write)
    desk.changed(settings, where.owner_id, [signal_id])
    events.publish(settings, where.id, 0)
    return signal_id
