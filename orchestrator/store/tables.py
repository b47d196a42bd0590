"""The tables. Rows are the truth; who may move what stands in the module of each table's moves.

Times are epoch milliseconds on the database's clock. Money is whole micro-USD. JSON is text of our own writing: key
order and integers of any length survive, and nothing is ever queried inside it.
"""

import json
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    false,
    text,
)

from registry.jsontext import compact


class JsonText(TypeDecorator[Any]):
    """Any JSON value, null included, in a text column; SQL NULL reads as None too."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> str | None:
        if value is None:
            return None
        written = compact(value)
        try:
            written.encode()
        except UnicodeEncodeError:  # half a character cannot be stored as UTF-8; escaped it can
            return json.dumps(value, separators=(",", ":"))
        return written

    def process_result_value(self, value: str | None, dialect: Any) -> Any:
        return None if value is None else json.loads(value)


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _id(name: str = "id") -> Column[str]:
    return Column(name, Text, primary_key=True)


def _time(name: str, *, nullable: bool = True) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


def _count(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=false())


def _ref(name: str, target: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Text, ForeignKey(target), nullable=nullable)


projects = Table(
    "projects",
    metadata,
    _id(),
    Column("owner_id", Text, nullable=False),
    #: With the owner: the same key gives the same project.
    Column("client_key", Text),
    #: Digest of what was submitted; a used key with another file is refused.
    Column("file_digest", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("brief", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("reason", Text),
    Column("mode", Text),
    Column("permissions", JsonText, nullable=False),
    Column("approvals", Text, nullable=False),
    Column("max_cost_micro", BigInteger),
    Column("max_parallel", Integer, nullable=False),
    Column("priority", Integer, nullable=False),
    #: Names of the skills there were at submit: what a plan made later may use.
    Column("skills", JsonText, nullable=False),
    #: The stand-in's script, when the project has one.
    Column("script", JsonText),
    #: A dress rehearsal: the stand-in plays the model and no world call is carried out.
    _flag("rehearsal"),
    #: The folder's name under the workspace root.
    Column("workspace", Text, nullable=False),
    #: Tasks that have not ended; the project closes when it reaches 0.
    _count("open_tasks"),
    _count("completed_tasks"),
    _count("cost_micro"),
    #: Some price was unknown, so the cost is a lower bound.
    _flag("cost_incomplete"),
    _time("created_at", nullable=False),
    _time("ended_at"),
    UniqueConstraint("owner_id", "client_key"),
)

teams = Table(
    "teams",
    metadata,
    _id(),
    _ref("project_id", "projects.id"),
    Column("lead_agent_id", Text, nullable=False),
    Column("member_agent_ids", JsonText, nullable=False),
    UniqueConstraint("project_id"),
)

#: Definitions by digest: a run keeps the one it began with whatever is edited later.
definitions = Table("definitions", metadata, _id("digest"), Column("body", JsonText, nullable=False))

agents = Table(
    "agents",
    metadata,
    _id(),
    Column("owner_id", Text, nullable=False),
    #: None: a saved agent; else the agent lives for one project.
    _ref("project_id", "projects.id", nullable=True),
    Column("being_id", Text),
    #: The definition's own id, what project files and graphs name.
    Column("key", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("definition_digest", Text, ForeignKey("definitions.digest"), nullable=False),
    _time("created_at", nullable=False),
    UniqueConstraint("project_id", "key"),
)

tasks = Table(
    "tasks",
    metadata,
    _id(),
    _ref("project_id", "projects.id"),
    Column("parent_id", Text),
    #: Where it stands in the plan.
    Column("position", Integer, nullable=False),
    Column("key", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("instruction", Text, nullable=False),
    Column("expected_output", Text),
    Column("deliverables", JsonText, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("agent_name", Text, nullable=False),
    Column("skills", JsonText, nullable=False),
    Column("tier", Text, nullable=False),
    #: The assignee's definition as this task uses it (effective skills, tier).
    Column("definition_digest", Text, ForeignKey("definitions.digest"), nullable=False),
    Column("input", JsonText),
    Column("status", Text, nullable=False),
    #: Why it was skipped, or what is odd about how it completed.
    Column("reason", Text),
    #: Dependencies that have not completed; it is ready at 0.
    _count("open_dependencies"),
    Column("retries", Integer, nullable=False),
    #: Root runs made so far.
    _count("attempt"),
    Column("output", JsonText),
    Column("error", JsonText),
    _count("cost_micro"),
    _flag("cost_incomplete"),
    _time("created_at", nullable=False),
    _time("started_at"),
    _time("ended_at"),
    UniqueConstraint("project_id", "key"),
)

dependencies = Table(
    "dependencies",
    metadata,
    Column("task_id", Text, ForeignKey("tasks.id"), primary_key=True),
    Column("depends_on_id", Text, ForeignKey("tasks.id"), primary_key=True, index=True),
    #: Order within the task's `dependsOn`.
    Column("position", Integer, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    _id(),
    _ref("project_id", "projects.id"),
    _ref("task_id", "tasks.id", nullable=True),
    Column("parent_id", Text),
    #: `root`, `spawn`, `item`, or `plan` for the run that makes a project's plan.
    Column("kind", Text, nullable=False),
    #: Of a child: the parent's step that made it, its place among the calls or items, and the item.
    Column("parent_step", BigInteger),
    Column("position", Integer),
    Column("item", JsonText),
    #: What a child brings its parent: {output, error?, blocked?, budget?}.
    Column("result", JsonText),
    _count("depth"),
    Column("agent_id", Text, nullable=False),
    Column("agent_name", Text, nullable=False),
    Column("definition_digest", Text, ForeignKey("definitions.digest"), nullable=False),
    Column("status", Text, nullable=False),
    #: What a parked run waits for: signals, timer, gate, children, backoff.
    Column("waiting_on", Text),
    #: When the clock should look: a queued row's next wake-up, a running row's lease, a parked row's timer.
    _time("due_at"),
    #: Raised by every claim; each write of the claimer carries it.
    _count("fence"),
    Column("worker_id", Text),
    #: Claims since the last checkpoint; past the limit the run is poison.
    _count("claims"),
    #: What queued it again: answer, timer, children, backoff, lease; None at its first start.
    Column("resumed_by", Text),
    #: Wake-ups sent since it was queued; 0: it waits for a free place in its project.
    _count("wakes"),
    #: Which root run of its task this is, from 1.
    Column("attempt", Integer, nullable=False),
    #: Number of the last checkpoint; 0: none yet.
    _count("checkpoint"),
    #: The node to execute next; None before the first.
    Column("node_id", Text),
    _count("steps"),
    _count("tokens"),
    #: Model calls, for the turn limit of team agents.
    _count("turns"),
    _count("running_ms"),
    #: Model calls in a row that ended in a back-off.
    _count("backoffs"),
    #: Where the budget's window began: {steps, tokens, runningMs}.
    Column("window", JsonText),
    _count("cost_micro"),
    _flag("cost_incomplete"),
    _count("messages"),
    _count("open_children"),
    #: Its children run one after the other.
    _flag("sequential"),
    Column("mode", Text),
    Column("permissions", JsonText, nullable=False),
    Column("approvals", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("error", JsonText),
    _time("created_at", nullable=False),
    _time("started_at"),
    _time("ended_at"),
    Index(
        "ix_runs_due_at", "due_at", sqlite_where=text("due_at IS NOT NULL"), postgresql_where=text("due_at IS NOT NULL")
    ),
    Index("ix_runs_project_id_status_wakes", "project_id", "status", "wakes"),
    # The next to get a wake-up, found without looking at all that wait for a place.
    Index(
        "ix_runs_unsent",
        "project_id",
        "created_at",
        "id",
        sqlite_where=text("status = 'queued' AND wakes = 0"),
        postgresql_where=text("status = 'queued' AND wakes = 0"),
    ),
    Index("ix_runs_task_id", "task_id"),
    Index("ix_runs_parent_id_parent_step", "parent_id", "parent_step"),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    #: The trace's last event of this checkpoint: where a fork cuts.
    Column("event_seq", BigInteger),
    #: The node to execute next; None: the run ended here.
    Column("node_id", Text),
    #: {steps, tokens, turns, runningMs, messages}: how far the run had come.
    Column("counters", JsonText, nullable=False),
    #: Whom a handoff made the speaker: {agentId, name, digest}; None: whoever it was before.
    Column("speaker", JsonText),
    #: What the engine remembers between nodes.
    Column("memo", JsonText),
    #: Keys of the state written since the checkpoint before; a snapshot holds all of them.
    Column("patch", JsonText, nullable=False),
    _flag("snapshot"),
    #: `$input`, where it changed (at the start, at a handoff).
    Column("input", JsonText),
    _flag("has_input"),
    Column("resume", JsonText),
    #: `$output`: a value, or {"message": n} / {"calls": [node, step]} naming the rows that hold it.
    Column("output", JsonText),
    Column("output_ref", JsonText),
    _time("at", nullable=False),
)

messages = Table(
    "messages",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    #: The state key whose history it belongs to.
    Column("history", Text, nullable=False),
    Column("body", JsonText, nullable=False),
)

calls = Table(
    "calls",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("id", Text, primary_key=True),
    Column("node_id", Text, nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("name", Text, nullable=False),
    #: The final input: what runs, what was shown, what the digest binds.
    Column("input", JsonText),
    Column("digest", Text),
    #: `announced`, `asked` (waits for its signal), `started` (a once call may have happened), `done`.
    Column("status", Text, nullable=False),
    #: Number of the checkpoint that knows it like this: the one it was written with, or else the next.
    Column("checkpoint", BigInteger, nullable=False),
    Column("signal_id", Text),
    Column("outcome", Text),
    Column("result", JsonText),
    Column("duration_ms", BigInteger),
    Index("ix_calls_run_id_node_id_step", "run_id", "node_id", "step"),
)

#: The last sequence number of each trace; taken as the last statement before a commit.
traces = Table("traces", metadata, _id(), _count("seq"))

events = Table(
    "events",
    metadata,
    Column("trace_id", Text, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    _time("at", nullable=False),
    Column("kind", Text, nullable=False),
    Column("task_id", Text),
    Column("run_id", Text),
    Column("agent_id", Text),
    Column("node_id", Text),
    Column("data", JsonText, nullable=False),
)

signals = Table(
    "signals",
    metadata,
    _id(),
    Column("owner_id", Text, nullable=False),
    _ref("project_id", "projects.id", nullable=True),
    _ref("task_id", "tasks.id", nullable=True),
    _ref("run_id", "runs.id", nullable=True),
    Column("agent_id", Text),
    Column("agent_name", Text),
    Column("node_id", Text),
    Column("call_id", Text),
    Column("kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("body", Text),
    Column("reason", Text),
    #: [{id, label}]
    Column("options", JsonText, nullable=False),
    Column("priority", Text, nullable=False),
    #: {toolCallId, skill, input}: exactly what would run.
    Column("action", JsonText),
    Column("digest", Text),
    Column("schema", JsonText, nullable=False),
    Column("answer", JsonText),
    _flag("rejected"),
    Column("answered_by", Text),
    _time("answered_at"),
    #: The run did not wait: the answer runs the action outside of it.
    _flag("carry_on"),
    #: When such an action began: one that never ends is unknown.
    _time("acted_at"),
    #: none, started, succeeded, failed, unknown: a grant is consumed once.
    Column("execution", Text, nullable=False, server_default=text("'none'")),
    Column("result", JsonText),
    Column("dedupe_key", Text),
    _time("created_at", nullable=False),
    _time("expires_at"),
    Index("ix_signals_owner_id_status", "owner_id", "status"),
    Index("ix_signals_run_id_status", "run_id", "status"),
    Index("ix_signals_project_id_status", "project_id", "status"),
    Index("ix_signals_task_id_digest", "task_id", "digest"),
    Index("ix_signals_status_expires_at", "status", "expires_at"),
    UniqueConstraint("dedupe_key"),
)

#: What a project, a task or a tree of runs may use: `project:ID`, `task:ID`, `run:ID`.
windows = Table(
    "windows",
    metadata,
    _id(),
    #: None: it only counts.
    Column("limit_micro", BigInteger),
    _count("spent_micro"),
    #: Worst cases of calls under way.
    _count("reserved_micro"),
    #: Of a window that a run shares with its children.
    _count("steps"),
    _count("tokens"),
    _count("running_ms"),
)

#: The worst case of a call under way, in each window it draws on.
reservations = Table(
    "reservations",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("call_key", Text, primary_key=True),
    Column("window_id", Text, ForeignKey("windows.id"), primary_key=True),
    Column("micro", BigInteger, nullable=False),
)

files = Table(
    "files",
    metadata,
    Column("project_id", Text, ForeignKey("projects.id"), primary_key=True),
    Column("path", Text, primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("task_id", Text),
    Column("run_id", Text),
    Column("skill", Text),
    _time("written_at", nullable=False),
    Index("ix_files_task_id", "task_id"),
)

#: One heartbeat row per worker process.
workers = Table(
    "workers",
    metadata,
    _id(),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("slots", Integer, nullable=False),
    _count("active"),
    _time("started_at", nullable=False),
    _time("seen_at", nullable=False),
    _time("stopped_at"),
)

#: Elections: who does a job that one process at a time should do.
leases = Table(
    "leases",
    metadata,
    _id("name"),
    Column("holder", Text, nullable=False),
    _time("until", nullable=False),
)
