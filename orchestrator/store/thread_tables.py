"""Tables of conversations: threads, their runs, and what waits for them."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint

from orchestrator.store import columns
from orchestrator.store.tables import metadata

#: Conversations. Title, owner, mode, workspace, trace and costs are those of the project of the same id.
threads = Table(
    "threads",
    metadata,
    Column("id", Text, ForeignKey("projects.id"), primary_key=True),
    #: chat, schedule, webhook
    Column("kind", Text, nullable=False),
    #: Who speaks, and who spoke first: ids as definitions have them.
    Column("agent_id", Text, nullable=False),
    Column("agent_name", Text, nullable=False),
    Column("origin_agent_id", Text, nullable=False),
    #: Of a speaker that has no row (a preset): its definition as it was last known. None: what is saved counts.
    Column("definition_digest", Text, ForeignKey("definitions.digest")),
    #: The run under way; None: the thread is free.
    Column("run_id", Text),
    #: Runs so far, the one under way included.
    columns.count("runs"),
    columns.time("created_at", nullable=False),
    #: When its last run began or ended.
    columns.time("active_at", nullable=False),
)

#: The runs of a thread in order: their messages, one run after the other, are its history.
thread_runs = Table(
    "thread_runs",
    metadata,
    Column("thread_id", Text, ForeignKey("threads.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("run_id", Text, ForeignKey("runs.id"), nullable=False),
    #: The number of the run its history begins with; its own: with an empty one.
    Column("history_from", BigInteger, nullable=False),
    #: person, schedule, webhook; and which schedule or webhook.
    Column("origin", Text, nullable=False),
    Column("source_id", Text),
    #: The same key in the same thread gives the same run.
    Column("client_key", Text),
    UniqueConstraint("run_id"),
    UniqueConstraint("thread_id", "client_key"),
    Index("ix_thread_runs_source_id", "source_id"),
)

#: What schedules and webhooks have for a thread that is busy: first in, first out.
triggers = Table(
    "triggers",
    metadata,
    Column("thread_id", Text, ForeignKey("threads.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("origin", Text, nullable=False),
    Column("source_id", Text),
    #: The source once more where it is a schedule, which waits in the queue at most once.
    Column("schedule_id", Text),
    Column("client_key", Text),
    #: {text, attachments?}
    Column("message", columns.SealedJson, nullable=False),
    Column("mode", Text),
    #: none, last, all; and of how many runs.
    Column("history", Text, nullable=False),
    Column("history_last", Integer),
    columns.time("created_at", nullable=False),
    UniqueConstraint("thread_id", "schedule_id"),
    UniqueConstraint("thread_id", "client_key"),
)
