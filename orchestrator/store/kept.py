"""Tables of what outlives a project: memories, schedules with their firings, saved generators, keys and sessions.

Saved agents are rows of `agents` without a project; conversations stand in `thread_tables`, what agents
note down for themselves in `notebook_tables`.
"""

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, Table, Text, UniqueConstraint

from orchestrator.store import columns
from orchestrator.store.hooked import deliveries, webhooks
from orchestrator.store.house_tables import audit, bygone, leases
from orchestrator.store.notebook_tables import agenda_items, agendas, passages, pins, recalled_runs, sources
from orchestrator.store.requests import requests
from orchestrator.store.tables import metadata
from orchestrator.store.thread_tables import thread_runs, threads, triggers

memories = Table(
    "memories",
    metadata,
    columns.key(),
    Column("owner_id", Text, nullable=False),
    #: Whose memory it is: `being:ID`, `project:ID`, `agent:ID`, `session:THREAD/AGENT`, or `owner` for a person's own.
    Column("namespace", Text, nullable=False),
    Column("being_id", Text),
    Column("project_id", Text, ForeignKey("projects.id", ondelete="CASCADE"), index=True),
    #: A name within the namespace: what is written under it again replaces it.
    Column("key", Text),
    Column("kind", Text, nullable=False),
    Column("content", Text, nullable=False),
    #: Of the content as it compares: case, blanks and forms of characters left out; with its key, where it has one.
    Column("content_hash", Text, nullable=False),
    Column("tags", columns.JsonText, nullable=False),
    #: 0 to 1.
    Column("importance", Float, nullable=False),
    #: Words of the content, for the length part of its rank.
    Column("words", Integer, nullable=False),
    #: Made where text from outside had been read.
    columns.flag("untrusted"),
    Column("source_task_id", Text),
    #: Digest of run and call: a call that runs again after a crash finds its own row.
    Column("call_key", Text),
    columns.time("created_at", nullable=False),
    #: When its text was changed last; None: never.
    columns.time("updated_at"),
    columns.time("last_used_at"),
    columns.count("uses"),
    columns.time("expires_at"),
    UniqueConstraint("owner_id", "namespace", "content_hash"),
    UniqueConstraint("owner_id", "namespace", "key"),
    UniqueConstraint("call_key"),
)

#: The words of each memory and how often it has them: what recall looks up, alike on every database.
memory_words = Table(
    "memory_words",
    metadata,
    #: Digest of owner and namespace, so that one's words are never read for another.
    Column("space", Text, primary_key=True),
    Column("word", Text, primary_key=True),
    Column("memory_id", Text, ForeignKey("memories.id", ondelete="CASCADE"), primary_key=True, index=True),
    Column("count", Integer, nullable=False),
)

schedules = Table(
    "schedules",
    metadata,
    columns.key(),
    Column("owner_id", Text, nullable=False),
    #: Who acts for it, and whose run made it; None: a person did.
    Column("agent_id", Text),
    #: The thread it says its text in, and nobody else's schedule; None: each time a project of its own.
    Column("thread_id", Text),
    #: Of its runs; None: as the thread or the agent has it.
    Column("mode", Text),
    #: What a run in the thread knows of earlier ones: none, last (so many), all.
    Column("history", Text),
    Column("history_last", Integer),
    #: {agentId, mode, permissions, gates} of the run that made it: nothing it starts may do more.
    Column("maker", columns.JsonText),
    #: From when its failures count: since somebody last let it go on.
    columns.time("watched_from"),
    Column("title", Text, nullable=False),
    #: at, every, cron
    Column("kind", Text, nullable=False),
    #: A moment, minutes, or five cron fields.
    Column("spec", Text, nullable=False),
    Column("timezone", Text, nullable=False),
    #: {kind: prompt, text} | {kind: skill, skill, input} | {kind: generator, generatorId, inputs}
    Column("action", columns.SealedJson, nullable=False),
    #: active, paused, done, failed
    Column("status", Text, nullable=False),
    Column("reason", Text),
    columns.time("next_run_at"),
    columns.time("last_run_at"),
    #: What became of the last due time, as `firings.result`.
    Column("last_result", Text),
    columns.count("runs"),
    Column("max_runs", Integer),
    columns.time("start_at"),
    columns.time("end_at"),
    Column("call_key", Text),
    columns.time("created_at", nullable=False),
    UniqueConstraint("call_key"),
    UniqueConstraint("thread_id"),
    Index("ix_schedules_owner_id_status", "owner_id", "status"),
    columns.partial("ix_schedules_next_run_at", "next_run_at", where="status = 'active'"),
)

#: What became of each due time; unique, so that two clocks fire it once.
firings = Table(
    "firings",
    metadata,
    Column("schedule_id", Text, ForeignKey("schedules.id", ondelete="CASCADE"), primary_key=True),
    Column("due_at", BigInteger, primary_key=True, autoincrement=False),
    columns.time("at", nullable=False),
    #: fired, queued (its thread was busy), dropped (and full), missed, skipped, empty (it has nothing to say), failed
    Column("result", Text, nullable=False),
    Column("reason", Text),
    #: The run it began in its thread; one that was queued begins later.
    Column("run_id", Text),
    #: The project it started.
    Column("project_id", Text, ForeignKey("projects.id", ondelete="SET NULL")),
)

generators = Table(
    "generators",
    metadata,
    columns.key(),
    Column("owner_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    #: The name as it compares; one of each for an owner.
    Column("name_key", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("inputs", columns.JsonText, nullable=False),
    Column("steps", columns.JsonText, nullable=False),
    columns.flag("is_public"),
    Column("version", Integer, nullable=False),
    Column("call_key", Text),
    columns.time("created_at", nullable=False),
    UniqueConstraint("owner_id", "name_key"),
    UniqueConstraint("call_key"),
)

#: What others wrote and a person installed; the files lie in a folder that is called by their digest.
plugins = Table(
    "plugins",
    metadata,
    Column("owner_id", Text, primary_key=True),
    Column("plugin_id", Text, primary_key=True),
    Column("version", Text, nullable=False),
    #: Of the hashes of all its files: when they are others, it does not run.
    Column("digest", Text, nullable=False),
    Column("manifest", columns.JsonText, nullable=False),
    #: {path: sha256}
    Column("files", columns.JsonText, nullable=False),
    #: Capabilities a person granted in their own hand, out of those it asks for.
    Column("granted", columns.JsonText, nullable=False),
    #: enabled, disabled
    Column("status", Text, nullable=False),
    Column("reason", Text),
    columns.time("installed_at", nullable=False),
)

#: What programs show to the API; the text of a key is nowhere.
api_keys = Table(
    "api_keys",
    metadata,
    columns.key(),
    Column("owner_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    #: Keyed hash of the key's text.
    Column("digest", Text, nullable=False),
    #: What it may do: see `orchestrator.keys.SCOPES`.
    Column("scopes", columns.JsonText, nullable=False),
    columns.time("created_at", nullable=False),
    #: When it was last shown, to the minute.
    columns.time("last_used_at"),
    columns.time("revoked_at"),
    #: From when on it is of no use; none: until it is revoked.
    columns.time("expires_at"),
    UniqueConstraint("digest"),
    Index("ix_api_keys_owner_id", "owner_id"),
)

#: A person at a browser or at the command line of a remote studio, and the one-time codes such a session is made of.
sessions = Table(
    "sessions",
    metadata,
    columns.key(),
    Column("owner_id", Text, nullable=False),
    #: code, session
    Column("kind", Text, nullable=False),
    #: Keyed hash of the code or the token.
    Column("digest", Text, nullable=False),
    columns.time("created_at", nullable=False),
    columns.time("expires_at", nullable=False),
    UniqueConstraint("digest"),
    Index("ix_sessions_expires_at", "expires_at"),
)

__all__ = [
    "agenda_items",
    "agendas",
    "api_keys",
    "audit",
    "bygone",
    "deliveries",
    "firings",
    "generators",
    "leases",
    "memories",
    "memory_words",
    "metadata",
    "passages",
    "pins",
    "plugins",
    "recalled_runs",
    "requests",
    "schedules",
    "sessions",
    "sources",
    "thread_runs",
    "threads",
    "triggers",
    "webhooks",
]
