"""Tables of what agents note down for themselves: agendas and pins. (Memories stand in `kept`.)"""

from sqlalchemy import Column, ForeignKey, Integer, Table, Text, UniqueConstraint

from orchestrator.store import columns
from orchestrator.store.tables import metadata

#: What an agent set itself to do for a task or a thread. (The plan of a project is its tasks.)
agendas = Table(
    "agendas",
    metadata,
    columns.key(),
    Column("owner_id", Text, nullable=False),
    #: What it is for: `thread:ID`, `task:ID`, `run:ID`; there is one of each.
    Column("space", Text, nullable=False),
    Column("project_id", Text, ForeignKey("projects.id", ondelete="CASCADE"), index=True),
    Column("agent_id", Text),
    Column("overview", Text, nullable=False),
    #: Made where text from outside had been read.
    columns.flag("untrusted"),
    #: Of the call that gave it its items.
    Column("call_key", Text),
    columns.time("created_at", nullable=False),
    columns.time("updated_at", nullable=False),
    UniqueConstraint("owner_id", "space"),
)

agenda_items = Table(
    "agenda_items",
    metadata,
    columns.key(),
    Column("agenda_id", Text, ForeignKey("agendas.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("role", Text),
    #: pending, in_progress, completed, failed, cancelled
    Column("status", Text, nullable=False),
    Column("result_note", Text),
    UniqueConstraint("agenda_id", "position"),
)

#: Facts an agent reads at each model call.
pins = Table(
    "pins",
    metadata,
    columns.key(),
    Column("owner_id", Text, nullable=False),
    #: `being:ID`, `agent:ID`, `project:ID/agent:ID`, or `owner`.
    Column("namespace", Text, nullable=False),
    Column("project_id", Text, ForeignKey("projects.id", ondelete="CASCADE"), index=True),
    Column("key", Text, nullable=False),
    Column("text", Text, nullable=False),
    columns.flag("untrusted"),
    columns.time("created_at", nullable=False),
    columns.time("updated_at", nullable=False),
    UniqueConstraint("owner_id", "namespace", "key"),
)

__all__ = ["agenda_items", "agendas", "pins"]
