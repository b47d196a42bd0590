"""Tables of what agents note down and look up: agendas, pins, and passages, which are found by their words. (Memories
stand in `kept`.)
"""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, UniqueConstraint

from orchestrator.store import columns, fulltext
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

#: What people gave agents to look things up in.
sources = Table(
    "sources",
    metadata,
    columns.key(),
    Column("owner_id", Text, nullable=False),
    #: `owner`: for all agents of the owner; `agent:ID`: for one.
    Column("namespace", Text, nullable=False),
    #: Where it comes from; given again it is replaced.
    Column("uri", Text, nullable=False),
    Column("title", Text),
    Column("text", Text, nullable=False),
    #: SHA-256 of what was given.
    Column("content_hash", Text, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    columns.time("created_at", nullable=False),
    columns.time("updated_at", nullable=False),
    UniqueConstraint("owner_id", "namespace", "uri"),
    Index("ix_sources_owner_id_namespace_content_hash", "owner_id", "namespace", "content_hash"),
)

#: Runs whose messages are among the passages.
recalled_runs = Table(
    "recalled_runs",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    columns.time("at", nullable=False),
)

#: Pieces of text that are found by their words: of a source, or of what was said in a run.
passages = Table(
    "passages",
    metadata,
    #: The row number that the full-text index of SQLite goes by.
    Column("number", Integer, primary_key=True),
    #: Digest of whose it is and of what kind, so that one's are never searched for another.
    Column("space", Text, nullable=False),
    Column("source_id", Text, ForeignKey("sources.id", ondelete="CASCADE"), index=True),
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), index=True),
    Column("thread_id", Text),
    #: Its place in the source; the number of the message.
    Column("position", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("terms", fulltext.Terms, nullable=False),
    #: Where it lies among others by what it means: 32-bit floats, and which model says so.
    Column("embedding", LargeBinary),
    Column("embedded_by", Text),
    columns.time("at", nullable=False),
    Index("ix_passages_space_at", "space", "at"),
)
fulltext.index(passages)

__all__ = ["agenda_items", "agendas", "passages", "pins", "recalled_runs", "sources"]
