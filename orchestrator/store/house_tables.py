"""Tables of the house itself, which belong to no project: elections, and who did what."""

from sqlalchemy import DDL, Column, Index, Table, Text, event

from orchestrator.store import columns
from orchestrator.store.tables import metadata

#: Elections: who does a job that one process at a time should do.
leases = Table(
    "leases",
    metadata,
    columns.key("name"),
    Column("holder", Text, nullable=False),
    columns.time("until", nullable=False),
)

#: Sums over runs that were pruned, by how they ended: what counts all runs there ever were never counts backwards.
bygone = Table(
    "bygone",
    metadata,
    columns.key("status"),
    *(columns.count(name) for name in ("runs", "steps", "running_ms", "turns", "tokens", "cost_micro")),
)

#: What people and programs did, and when. Rows are added and never changed: triggers hold even our own code to that.
audit = Table(
    "audit",
    metadata,
    columns.key(),
    columns.time("at", nullable=False),
    Column("owner_id", Text, nullable=False),
    #: Who did it: a person, `key NAME`, or an agent.
    Column("by", Text, nullable=False),
    #: What was done, as in `signal.answered`.
    Column("act", Text, nullable=False),
    #: The id or name of what it was done to; it may be gone by now.
    Column("subject", Text),
    Column("project_id", Text),
    #: Facts of it, without a secret.
    Column("data", columns.JsonText, nullable=False),
    Index("ix_audit_owner_id_at_id", "owner_id", "at", "id"),
    Index("ix_audit_subject", "subject"),
)

# Only the store in memory is made from here; the migration makes the same triggers, and those of PostgreSQL.
for _move in ("UPDATE", "DELETE"):
    _statement = (
        f"CREATE TRIGGER audit_no_{_move.lower()} BEFORE {_move} ON audit "
        "BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END"
    )
    event.listen(audit, "after_create", DDL(_statement).execute_if(dialect="sqlite"))  # type: ignore[no-untyped-call]
