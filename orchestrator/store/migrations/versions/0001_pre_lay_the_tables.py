"""lay the tables"""

import sqlalchemy as sa
from alembic import op

from orchestrator.store import fulltext

revision = "0001_pre"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("thread_id", sa.Text(), nullable=True),
        sa.Column("action", sa.Text(), nullable=True),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("maker", sa.Text(), nullable=True),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("shown_at", sa.BigInteger(), nullable=True),
        sa.Column("call_key", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("last_fired_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
        sa.UniqueConstraint("call_key", name=op.f("uq_webhooks_call_key")),
    )
    with op.batch_alter_table("webhooks", schema=None) as batch_op:
        batch_op.create_index("ix_webhooks_owner_id", ["owner_id"], unique=False)

    op.create_table(
        "deliveries",
        sa.Column("hook_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("project_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["hook_id"], ["webhooks.id"], name=op.f("fk_deliveries_hook_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("hook_id", "key", name=op.f("pk_deliveries")),
    )
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.create_index("ix_deliveries_hook_id_at", ["hook_id", "at"], unique=False)

    op.create_table(
        "connections",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("secrets", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_connections")),
        sa.UniqueConstraint("owner_id", "name", name=op.f("uq_connections_owner_id_name")),
    )
    op.create_table(
        "definitions",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_definitions")),
    )
    op.create_table(
        "events",
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("node_id", sa.Text(), nullable=True),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("trace_id", "seq", name=op.f("pk_events")),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("act", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("project_id", sa.Text(), nullable=True),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    with op.batch_alter_table("audit", schema=None) as batch_op:
        batch_op.create_index("ix_audit_owner_id_at_id", ["owner_id", "at", "id"], unique=False)
        batch_op.create_index("ix_audit_subject", ["subject"], unique=False)

    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION audit_only_grows() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the audit log only grows'; END $$"
        )
        op.execute(
            "CREATE TRIGGER audit_only_grows BEFORE UPDATE OR DELETE ON audit "
            "FOR EACH ROW EXECUTE FUNCTION audit_only_grows()"
        )
    else:
        for move in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER audit_no_{move.lower()} BEFORE {move} ON audit "
                "BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END"
            )
    op.create_table(
        "bygone",
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("runs", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("steps", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("running_ms", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("turns", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_micro", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("status", name=op.f("pk_bygone")),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "projects",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), server_default=sa.text("'project'"), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("client_key", sa.Text(), nullable=True),
        sa.Column("file_digest", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("brief", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("mode", sa.Text(), nullable=True),
        sa.Column("permissions", sa.Text(), nullable=False),
        sa.Column("approvals", sa.Text(), nullable=False),
        sa.Column("max_cost_micro", sa.BigInteger(), nullable=True),
        sa.Column("max_parallel", sa.Integer(), nullable=False),
        sa.Column("owner_parallel", sa.Integer(), nullable=True),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("skills", sa.Text(), nullable=False),
        sa.Column("reuses", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("souls", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("held", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=True),
        sa.Column("plan_before", sa.Text(), nullable=True),
        sa.Column("script", sa.Text(), nullable=True),
        sa.Column("rehearsal", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("trace_parent", sa.Text(), nullable=True),
        sa.Column("history_pruned_at", sa.BigInteger(), nullable=True),
        sa.Column("files_pruned_at", sa.BigInteger(), nullable=True),
        sa.Column("open_tasks", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("completed_tasks", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_micro", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_incomplete", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("owner_id", "client_key", name=op.f("uq_projects_owner_id_client_key")),
    )
    with op.batch_alter_table("projects", schema=None) as batch_op:
        batch_op.create_index("ix_projects_owner_id_created_at_id", ["owner_id", "created_at", "id"], unique=False)

    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("digest", name=op.f("uq_api_keys_digest")),
    )
    with op.batch_alter_table("api_keys", schema=None) as batch_op:
        batch_op.create_index("ix_api_keys_owner_id", ["owner_id"], unique=False)

    op.create_table(
        "sessions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("digest", name=op.f("uq_sessions_digest")),
    )
    with op.batch_alter_table("sessions", schema=None) as batch_op:
        batch_op.create_index("ix_sessions_expires_at", ["expires_at"], unique=False)

    op.create_table(
        "traces",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_traces")),
    )
    op.create_table(
        "windows",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("limit_micro", sa.BigInteger(), nullable=True),
        sa.Column("spent_micro", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("reserved_micro", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("steps", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("running_ms", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_windows")),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("active", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("queues", sa.Text(), nullable=True),
        sa.Column("routing", sa.Text(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("stopped_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
    )
    op.create_table(
        "agents",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=True),
        sa.Column("being_id", sa.Text(), nullable=True),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("definition_digest", sa.Text(), nullable=False),
        sa.Column("creator_key", sa.Text(), nullable=True),
        sa.Column("name_key", sa.Text(), nullable=True),
        sa.Column("call_key", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["definition_digest"], ["definitions.digest"], name=op.f("fk_agents_definition_digest")
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_agents_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agents")),
        sa.UniqueConstraint("call_key", name=op.f("uq_agents_call_key")),
        sa.UniqueConstraint("owner_id", "name_key", name=op.f("uq_agents_owner_id_name_key")),
        sa.UniqueConstraint("project_id", "key", name=op.f("uq_agents_project_id_key")),
    )
    op.create_table(
        "files",
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("skill", sa.Text(), nullable=True),
        sa.Column("written_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_files_project_id")),
        sa.PrimaryKeyConstraint("project_id", "path", name=op.f("pk_files")),
    )
    with op.batch_alter_table("files", schema=None) as batch_op:
        batch_op.create_index("ix_files_task_id", ["task_id"], unique=False)

    op.create_table(
        "tasks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("instruction", sa.Text(), nullable=False),
        sa.Column("expected_output", sa.Text(), nullable=True),
        sa.Column("deliverables", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("agent_name", sa.Text(), nullable=False),
        sa.Column("skills", sa.Text(), nullable=False),
        sa.Column("tier", sa.Text(), nullable=False),
        sa.Column("definition_digest", sa.Text(), nullable=False),
        sa.Column("input", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("open_dependencies", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("retries", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("output", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("cost_micro", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_incomplete", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["definition_digest"], ["definitions.digest"], name=op.f("fk_tasks_definition_digest")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_tasks_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tasks")),
        sa.UniqueConstraint("project_id", "key", name=op.f("uq_tasks_project_id_key")),
    )
    op.create_table(
        "teams",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("lead_agent_id", sa.Text(), nullable=False),
        sa.Column("member_agent_ids", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_teams_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_teams")),
        sa.UniqueConstraint("project_id", name=op.f("uq_teams_project_id")),
    )
    op.create_table(
        "dependencies",
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("depends_on_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["depends_on_id"], ["tasks.id"], name=op.f("fk_dependencies_depends_on_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_dependencies_task_id")),
        sa.PrimaryKeyConstraint("task_id", "depends_on_id", name=op.f("pk_dependencies")),
    )
    with op.batch_alter_table("dependencies", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_dependencies_depends_on_id"), ["depends_on_id"], unique=False)

    op.create_table(
        "runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=True),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("parent_step", sa.BigInteger(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=True),
        sa.Column("item", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("depth", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("trace_parent", sa.Text(), nullable=True),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("agent_name", sa.Text(), nullable=False),
        sa.Column("definition_digest", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("waiting_on", sa.Text(), nullable=True),
        sa.Column("due_at", sa.BigInteger(), nullable=True),
        sa.Column("fence", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("worker_id", sa.Text(), nullable=True),
        sa.Column("claims", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("crashes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("resumed_by", sa.Text(), nullable=True),
        sa.Column("wakes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("checkpoint", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=True),
        sa.Column("steps", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("turns", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("running_ms", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("backoffs", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("window", sa.Text(), nullable=True),
        sa.Column("cost_micro", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_incomplete", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("messages", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("open_children", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("sequential", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=True),
        sa.Column("permissions", sa.Text(), nullable=False),
        sa.Column("approvals", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["definition_digest"], ["definitions.digest"], name=op.f("fk_runs_definition_digest")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_runs_project_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_runs_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.create_index(
            "ix_runs_due_at",
            ["due_at"],
            unique=False,
            sqlite_where=sa.text("due_at IS NOT NULL"),
            postgresql_where=sa.text("due_at IS NOT NULL"),
        )
        batch_op.create_index("ix_runs_parent_id_parent_step", ["parent_id", "parent_step"], unique=False)
        batch_op.create_index("ix_runs_project_id_status_wakes", ["project_id", "status", "wakes"], unique=False)
        batch_op.create_index("ix_runs_task_id", ["task_id"], unique=False)
        batch_op.create_index(
            "ix_runs_agent_id_ended_at",
            ["agent_id", "ended_at"],
            unique=False,
            sqlite_where=sa.text("ended_at IS NOT NULL"),
            postgresql_where=sa.text("ended_at IS NOT NULL"),
        )
        batch_op.create_index(
            "ix_runs_sent",
            ["project_id"],
            unique=False,
            sqlite_where=sa.text("status = 'queued' AND wakes > 0"),
            postgresql_where=sa.text("status = 'queued' AND wakes > 0"),
        )
        batch_op.create_index(
            "ix_runs_unsent",
            ["project_id", "created_at", "id"],
            unique=False,
            sqlite_where=sa.text("status = 'queued' AND wakes = 0"),
            postgresql_where=sa.text("status = 'queued' AND wakes = 0"),
        )

    op.create_table(
        "calls",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("input", sa.Text(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("checkpoint", sa.BigInteger(), nullable=False),
        sa.Column("signal_id", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("duration_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_calls_run_id")),
        sa.PrimaryKeyConstraint("run_id", "id", name=op.f("pk_calls")),
    )
    with op.batch_alter_table("calls", schema=None) as batch_op:
        batch_op.create_index("ix_calls_run_id_node_id_step", ["run_id", "node_id", "step"], unique=False)
        batch_op.create_index(
            "ix_calls_unknown",
            ["run_id"],
            unique=False,
            sqlite_where=sa.text("outcome = 'unknown'"),
            postgresql_where=sa.text("outcome = 'unknown'"),
        )

    op.create_table(
        "repairs",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("how", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("signal_id", sa.Text(), nullable=True),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("told", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_repairs_run_id")),
        sa.PrimaryKeyConstraint("run_id", "call_id", name=op.f("pk_repairs")),
    )
    op.create_table(
        "checkpoints",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("event_seq", sa.BigInteger(), nullable=True),
        sa.Column("node_id", sa.Text(), nullable=True),
        sa.Column("counters", sa.Text(), nullable=False),
        sa.Column("speaker", sa.Text(), nullable=True),
        sa.Column("memo", sa.Text(), nullable=True),
        sa.Column("patch", sa.Text(), nullable=False),
        sa.Column("snapshot", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("input", sa.Text(), nullable=True),
        sa.Column("has_input", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("resume", sa.Text(), nullable=True),
        sa.Column("output", sa.Text(), nullable=True),
        sa.Column("output_ref", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_checkpoints_run_id")),
        sa.PrimaryKeyConstraint("run_id", "number", name=op.f("pk_checkpoints")),
    )
    op.create_table(
        "messages",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("history", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_messages_run_id")),
        sa.PrimaryKeyConstraint("run_id", "number", name=op.f("pk_messages")),
    )
    op.create_table(
        "reservations",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("call_key", sa.Text(), nullable=False),
        sa.Column("window_id", sa.Text(), nullable=False),
        sa.Column("micro", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_reservations_run_id")),
        sa.ForeignKeyConstraint(["window_id"], ["windows.id"], name=op.f("fk_reservations_window_id")),
        sa.PrimaryKeyConstraint("run_id", "call_key", "window_id", name=op.f("pk_reservations")),
    )
    op.create_table(
        "signals",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=True),
        sa.Column("task_id", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("agent_name", sa.Text(), nullable=True),
        sa.Column("node_id", sa.Text(), nullable=True),
        sa.Column("call_id", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("priority", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("schema", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("rejected", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("answered_by", sa.Text(), nullable=True),
        sa.Column("answered_at", sa.BigInteger(), nullable=True),
        sa.Column("carry_on", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("acted_at", sa.BigInteger(), nullable=True),
        sa.Column("execution", sa.Text(), server_default=sa.text("'none'"), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("dedupe_key", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_signals_project_id")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_signals_run_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_signals_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_signals")),
        sa.UniqueConstraint("dedupe_key", name=op.f("uq_signals_dedupe_key")),
    )
    with op.batch_alter_table("signals", schema=None) as batch_op:
        batch_op.create_index("ix_signals_owner_id_status", ["owner_id", "status"], unique=False)
        batch_op.create_index("ix_signals_project_id_status", ["project_id", "status"], unique=False)
        batch_op.create_index("ix_signals_run_id_status", ["run_id", "status"], unique=False)
        batch_op.create_index("ix_signals_status_expires_at", ["status", "expires_at"], unique=False)
        batch_op.create_index("ix_signals_task_id_digest", ["task_id", "digest"], unique=False)

    op.create_table(
        "plugins",
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("plugin_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("manifest", sa.Text(), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("granted", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("installed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner_id", "plugin_id", name=op.f("pk_plugins")),
    )

    op.create_table(
        "generators",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("inputs", sa.Text(), nullable=False),
        sa.Column("steps", sa.Text(), nullable=False),
        sa.Column("is_public", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("call_key", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_generators")),
        sa.UniqueConstraint("call_key", name=op.f("uq_generators_call_key")),
        sa.UniqueConstraint("owner_id", "name_key", name=op.f("uq_generators_owner_id_name_key")),
    )
    op.create_table(
        "schedules",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("thread_id", sa.Text(), nullable=True),
        sa.Column("mode", sa.Text(), nullable=True),
        sa.Column("history", sa.Text(), nullable=True),
        sa.Column("history_last", sa.Integer(), nullable=True),
        sa.Column("maker", sa.Text(), nullable=True),
        sa.Column("watched_from", sa.BigInteger(), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("timezone", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("next_run_at", sa.BigInteger(), nullable=True),
        sa.Column("last_run_at", sa.BigInteger(), nullable=True),
        sa.Column("last_result", sa.Text(), nullable=True),
        sa.Column("runs", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("max_runs", sa.Integer(), nullable=True),
        sa.Column("start_at", sa.BigInteger(), nullable=True),
        sa.Column("end_at", sa.BigInteger(), nullable=True),
        sa.Column("call_key", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedules")),
        sa.UniqueConstraint("call_key", name=op.f("uq_schedules_call_key")),
        sa.UniqueConstraint("thread_id", name=op.f("uq_schedules_thread_id")),
    )
    with op.batch_alter_table("schedules", schema=None) as batch_op:
        batch_op.create_index(
            "ix_schedules_next_run_at",
            ["next_run_at"],
            unique=False,
            sqlite_where=sa.text("status = 'active'"),
            postgresql_where=sa.text("status = 'active'"),
        )
        batch_op.create_index("ix_schedules_owner_id_status", ["owner_id", "status"], unique=False)

    op.create_table(
        "firings",
        sa.Column("schedule_id", sa.Text(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("project_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_firings_project_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["schedule_id"], ["schedules.id"], name=op.f("fk_firings_schedule_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("schedule_id", "due_at", name=op.f("pk_firings")),
    )
    op.create_table(
        "memories",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("being_id", sa.Text(), nullable=True),
        sa.Column("project_id", sa.Text(), nullable=True),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("importance", sa.Float(), nullable=False),
        sa.Column("words", sa.Integer(), nullable=False),
        sa.Column("untrusted", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("source_task_id", sa.Text(), nullable=True),
        sa.Column("call_key", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=True),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.Column("uses", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_memories_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_memories")),
        sa.UniqueConstraint("call_key", name=op.f("uq_memories_call_key")),
        sa.UniqueConstraint(
            "owner_id", "namespace", "content_hash", name=op.f("uq_memories_owner_id_namespace_content_hash")
        ),
        sa.UniqueConstraint("owner_id", "namespace", "key", name=op.f("uq_memories_owner_id_namespace_key")),
    )
    with op.batch_alter_table("memories", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_memories_project_id"), ["project_id"], unique=False)

    op.create_table(
        "memory_words",
        sa.Column("space", sa.Text(), nullable=False),
        sa.Column("word", sa.Text(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memories.id"], name=op.f("fk_memory_words_memory_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("space", "word", "memory_id", name=op.f("pk_memory_words")),
    )
    with op.batch_alter_table("memory_words", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_memory_words_memory_id"), ["memory_id"], unique=False)
    op.create_table(
        "agendas",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("space", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=True),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("overview", sa.Text(), nullable=False),
        sa.Column("untrusted", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("call_key", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_agendas_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agendas")),
        sa.UniqueConstraint("owner_id", "space", name=op.f("uq_agendas_owner_id_space")),
    )
    with op.batch_alter_table("agendas", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_agendas_project_id"), ["project_id"], unique=False)

    op.create_table(
        "agenda_items",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("agenda_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("result_note", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["agenda_id"], ["agendas.id"], name=op.f("fk_agenda_items_agenda_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agenda_items")),
        sa.UniqueConstraint("agenda_id", "position", name=op.f("uq_agenda_items_agenda_id_position")),
    )
    op.create_table(
        "pins",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=True),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("untrusted", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_pins_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pins")),
        sa.UniqueConstraint("owner_id", "namespace", "key", name=op.f("uq_pins_owner_id_namespace_key")),
    )
    with op.batch_alter_table("pins", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_pins_project_id"), ["project_id"], unique=False)

    op.create_table(
        "sources",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("uri", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sources")),
        sa.UniqueConstraint("owner_id", "namespace", "uri", name=op.f("uq_sources_owner_id_namespace_uri")),
    )
    with op.batch_alter_table("sources", schema=None) as batch_op:
        batch_op.create_index(
            "ix_sources_owner_id_namespace_content_hash", ["owner_id", "namespace", "content_hash"], unique=False
        )

    op.create_table(
        "recalled_runs",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_recalled_runs_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_recalled_runs")),
    )
    op.create_table(
        "passages",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("space", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("thread_id", sa.Text(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("terms", fulltext.Terms(), nullable=False),
        sa.Column("embedding", sa.LargeBinary(), nullable=True),
        sa.Column("embedded_by", sa.Text(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_passages_run_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_passages_source_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_passages")),
    )
    with op.batch_alter_table("passages", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_passages_run_id"), ["run_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_passages_source_id"), ["source_id"], unique=False)
        batch_op.create_index("ix_passages_space_at", ["space", "at"], unique=False)

    for statement in fulltext.statements(op.get_bind().dialect.name):
        op.execute(statement)

    op.create_table(
        "threads",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("agent_name", sa.Text(), nullable=False),
        sa.Column("origin_agent_id", sa.Text(), nullable=False),
        sa.Column("definition_digest", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("runs", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("active_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["definition_digest"], ["definitions.digest"], name=op.f("fk_threads_definition_digest")
        ),
        sa.ForeignKeyConstraint(["id"], ["projects.id"], name=op.f("fk_threads_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_threads")),
    )
    op.create_table(
        "thread_runs",
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("history_from", sa.BigInteger(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=True),
        sa.Column("client_key", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_thread_runs_run_id")),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.id"], name=op.f("fk_thread_runs_thread_id")),
        sa.PrimaryKeyConstraint("thread_id", "number", name=op.f("pk_thread_runs")),
        sa.UniqueConstraint("run_id", name=op.f("uq_thread_runs_run_id")),
        sa.UniqueConstraint("thread_id", "client_key", name=op.f("uq_thread_runs_thread_id_client_key")),
    )
    with op.batch_alter_table("thread_runs", schema=None) as batch_op:
        batch_op.create_index("ix_thread_runs_source_id", ["source_id"], unique=False)

    op.create_table(
        "triggers",
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=True),
        sa.Column("schedule_id", sa.Text(), nullable=True),
        sa.Column("client_key", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=True),
        sa.Column("history", sa.Text(), nullable=False),
        sa.Column("history_last", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.id"], name=op.f("fk_triggers_thread_id")),
        sa.PrimaryKeyConstraint("thread_id", "number", name=op.f("pk_triggers")),
        sa.UniqueConstraint("thread_id", "client_key", name=op.f("uq_triggers_thread_id_client_key")),
        sa.UniqueConstraint("thread_id", "schedule_id", name=op.f("uq_triggers_thread_id_schedule_id")),
    )
    op.create_table(
        "requests",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=True),
        sa.Column("skill", sa.Text(), nullable=False),
        sa.Column("input", sa.Text(), nullable=False),
        sa.Column("approved", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("fence", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("begun", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("trace_parent", sa.Text(), nullable=True),
        sa.Column("content", sa.LargeBinary(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_requests_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_requests")),
    )
    with op.batch_alter_table("requests", schema=None) as batch_op:
        batch_op.create_index("ix_requests_due_at", ["due_at"], unique=False)
        batch_op.create_index(
            "ix_requests_owner_id",
            ["owner_id"],
            unique=False,
            sqlite_where=sa.text("status <> 'done'"),
            postgresql_where=sa.text("status <> 'done'"),
        )


def downgrade() -> None:
    with op.batch_alter_table("requests", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_requests_owner_id",
            sqlite_where=sa.text("status <> 'done'"),
            postgresql_where=sa.text("status <> 'done'"),
        )
        batch_op.drop_index("ix_requests_due_at")

    op.drop_table("requests")
    op.drop_table("triggers")
    with op.batch_alter_table("thread_runs", schema=None) as batch_op:
        batch_op.drop_index("ix_thread_runs_source_id")

    op.drop_table("thread_runs")
    op.drop_table("threads")
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TABLE passages_fts")
    op.drop_table("passages")
    op.drop_table("recalled_runs")
    op.drop_table("sources")
    op.drop_table("pins")
    op.drop_table("agenda_items")
    op.drop_table("agendas")
    op.drop_table("memory_words")
    op.drop_table("memories")
    op.drop_table("firings")
    op.drop_table("schedules")
    op.drop_table("generators")
    op.drop_table("plugins")
    with op.batch_alter_table("signals", schema=None) as batch_op:
        batch_op.drop_index("ix_signals_task_id_digest")
        batch_op.drop_index("ix_signals_status_expires_at")
        batch_op.drop_index("ix_signals_run_id_status")
        batch_op.drop_index("ix_signals_project_id_status")
        batch_op.drop_index("ix_signals_owner_id_status")

    op.drop_table("signals")
    op.drop_table("reservations")
    op.drop_table("repairs")
    op.drop_table("messages")
    op.drop_table("checkpoints")
    with op.batch_alter_table("calls", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_calls_unknown",
            sqlite_where=sa.text("outcome = 'unknown'"),
            postgresql_where=sa.text("outcome = 'unknown'"),
        )
        batch_op.drop_index("ix_calls_run_id_node_id_step")

    op.drop_table("calls")
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_runs_sent",
            sqlite_where=sa.text("status = 'queued' AND wakes > 0"),
            postgresql_where=sa.text("status = 'queued' AND wakes > 0"),
        )
        batch_op.drop_index(
            "ix_runs_unsent",
            sqlite_where=sa.text("status = 'queued' AND wakes = 0"),
            postgresql_where=sa.text("status = 'queued' AND wakes = 0"),
        )
        batch_op.drop_index(
            "ix_runs_agent_id_ended_at",
            sqlite_where=sa.text("ended_at IS NOT NULL"),
            postgresql_where=sa.text("ended_at IS NOT NULL"),
        )
        batch_op.drop_index("ix_runs_task_id")
        batch_op.drop_index("ix_runs_project_id_status_wakes")
        batch_op.drop_index("ix_runs_parent_id_parent_step")
        batch_op.drop_index(
            "ix_runs_due_at", sqlite_where=sa.text("due_at IS NOT NULL"), postgresql_where=sa.text("due_at IS NOT NULL")
        )

    op.drop_table("runs")
    with op.batch_alter_table("dependencies", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_dependencies_depends_on_id"))

    op.drop_table("dependencies")
    op.drop_table("teams")
    op.drop_table("tasks")
    with op.batch_alter_table("files", schema=None) as batch_op:
        batch_op.drop_index("ix_files_task_id")

    op.drop_table("files")
    op.drop_table("agents")
    op.drop_table("workers")
    op.drop_table("windows")
    op.drop_table("traces")
    with op.batch_alter_table("sessions", schema=None) as batch_op:
        batch_op.drop_index("ix_sessions_expires_at")

    op.drop_table("sessions")
    with op.batch_alter_table("api_keys", schema=None) as batch_op:
        batch_op.drop_index("ix_api_keys_owner_id")

    op.drop_table("api_keys")
    with op.batch_alter_table("projects", schema=None) as batch_op:
        batch_op.drop_index("ix_projects_owner_id_created_at_id")

    op.drop_table("projects")
    op.drop_table("leases")
    op.drop_table("bygone")
    op.drop_table("audit")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION audit_only_grows()")
    op.drop_table("events")
    op.drop_table("definitions")
    op.drop_table("connections")
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.drop_index("ix_deliveries_hook_id_at")

    op.drop_table("deliveries")
    with op.batch_alter_table("webhooks", schema=None) as batch_op:
        batch_op.drop_index("ix_webhooks_owner_id")

    op.drop_table("webhooks")
