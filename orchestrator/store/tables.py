"""The tables. Rows are the truth; who may move what stands in the module of each table's moves."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint, text

from orchestrator.store import columns

metadata = columns.metadata

projects = Table(
    "projects",
    columns.metadata,
    columns.key(),
    #: `project`, or `thread`: the standing project of a conversation, which no list shows and nothing but its
    #: deletion closes.
    Column("kind", Text, nullable=False, server_default=text("'project'")),
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
    Column("permissions", columns.JsonText, nullable=False),
    Column("approvals", Text, nullable=False),
    Column("max_cost_micro", BigInteger),
    Column("max_parallel", Integer, nullable=False),
    #: Runs its owner may have at work over all projects; None: no limit.
    Column("owner_parallel", Integer),
    Column("priority", Integer, nullable=False),
    #: Names of the skills and documents there were at submit: what a plan made later may use.
    Column("skills", columns.JsonText, nullable=False),
    #: How its team is made: of the owner's saved agents where they fit, and with souls for those that are made anew.
    columns.flag("reuses"),
    columns.flag("souls"),
    #: Its plan waits for a person's start; the plan, then and as started: {goal?, summary?, tasks, note?, agents?}.
    columns.flag("held"),
    Column("plan", columns.JsonText),
    #: A plan a person looked at and wants another for, and what they said of it: {plan, note}.
    Column("plan_before", columns.JsonText),
    #: The stand-in's script, when the project has one.
    Column("script", columns.JsonText),
    #: A dress rehearsal: the stand-in plays the model and no world call is carried out.
    columns.flag("rehearsal"),
    #: The folder's name under the workspace root.
    Column("workspace", Text, nullable=False),
    Column("trace_parent", Text),  # of its submit: where its spans hang; None: nobody traced that
    #: When its history, and its files, were taken away because they were old; None: they are there.
    columns.time("history_pruned_at"),
    columns.time("files_pruned_at"),
    #: Tasks that have not ended; the project closes when it reaches 0.
    columns.count("open_tasks"),
    columns.count("completed_tasks"),
    columns.count("cost_micro"),
    #: Some price was unknown, so the cost is a lower bound.
    columns.flag("cost_incomplete"),
    columns.time("created_at", nullable=False),
    columns.time("ended_at"),
    UniqueConstraint("owner_id", "client_key"),
    # An owner's newest, a page at a time, however many there are.
    Index("ix_projects_owner_id_created_at_id", "owner_id", "created_at", "id"),
)

teams = Table(
    "teams",
    columns.metadata,
    columns.key(),
    columns.ref("project_id", "projects.id"),
    Column("lead_agent_id", Text, nullable=False),
    Column("member_agent_ids", columns.JsonText, nullable=False),
    UniqueConstraint("project_id"),
)

#: Definitions by digest: a run keeps the one it began with whatever is edited later.
definitions = Table(
    "definitions", columns.metadata, columns.key("digest"), Column("body", columns.JsonText, nullable=False)
)

agents = Table(
    "agents",
    columns.metadata,
    columns.key(),
    Column("owner_id", Text, nullable=False),
    #: None: a saved agent; else the agent lives for one project.
    columns.ref("project_id", "projects.id", nullable=True),
    Column("being_id", Text),
    #: The definition's own id, what project files and graphs name.
    Column("key", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("definition_digest", Text, ForeignKey("definitions.digest"), nullable=False),
    #: Of a delegate: the agent that made it and alone may spawn it.
    Column("creator_key", Text),
    #: Of a saved agent: its name as it compares (one of each for an owner, and for a maker of delegates), and its call.
    Column("name_key", Text),
    Column("call_key", Text),
    columns.time("created_at", nullable=False),
    columns.time("updated_at"),
    UniqueConstraint("project_id", "key"),
    UniqueConstraint("call_key"),
    UniqueConstraint("owner_id", "name_key"),
)

tasks = Table(
    "tasks",
    columns.metadata,
    columns.key(),
    columns.ref("project_id", "projects.id"),
    Column("parent_id", Text),
    #: Where it stands in the plan.
    Column("position", Integer, nullable=False),
    Column("key", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("instruction", Text, nullable=False),
    Column("expected_output", Text),
    Column("deliverables", columns.JsonText, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("agent_name", Text, nullable=False),
    Column("skills", columns.JsonText, nullable=False),
    Column("tier", Text, nullable=False),
    #: The assignee's definition as this task uses it (effective skills, tier).
    Column("definition_digest", Text, ForeignKey("definitions.digest"), nullable=False),
    Column("input", columns.SealedJson),
    Column("status", Text, nullable=False),
    #: Why it was skipped, or what is odd about how it completed.
    Column("reason", Text),
    #: Dependencies that have not completed; it is ready at 0.
    columns.count("open_dependencies"),
    Column("retries", Integer, nullable=False),
    #: Root runs made so far.
    columns.count("attempt"),
    Column("output", columns.SealedJson),
    Column("error", columns.JsonText),
    columns.count("cost_micro"),
    columns.flag("cost_incomplete"),
    columns.time("created_at", nullable=False),
    columns.time("started_at"),
    columns.time("ended_at"),
    UniqueConstraint("project_id", "key"),
)

dependencies = Table(
    "dependencies",
    columns.metadata,
    Column("task_id", Text, ForeignKey("tasks.id"), primary_key=True),
    Column("depends_on_id", Text, ForeignKey("tasks.id"), primary_key=True, index=True),
    #: Order within the task's `dependsOn`.
    Column("position", Integer, nullable=False),
)

runs = Table(
    "runs",
    columns.metadata,
    columns.key(),
    columns.ref("project_id", "projects.id"),
    columns.ref("task_id", "tasks.id", nullable=True),
    Column("parent_id", Text),
    #: `root`, `spawn`, `item`, `plan` (makes a project's plan), `thread` (of a conversation), `compact` (sums one up).
    Column("kind", Text, nullable=False),
    #: Of a child: the parent's step that made it, its place among the calls or items, and the item.
    Column("parent_step", BigInteger),
    Column("position", Integer),
    Column("item", columns.SealedJson),
    #: What a child brings its parent: {output, error?, blocked?, budget?}.
    Column("result", columns.SealedJson),
    columns.count("depth"),
    Column("trace_parent", Text),  # of a child or a message: the `traceparent` of its maker
    Column("agent_id", Text, nullable=False),
    Column("agent_name", Text, nullable=False),
    Column("definition_digest", Text, ForeignKey("definitions.digest"), nullable=False),
    Column("status", Text, nullable=False),
    #: What a parked run waits for: signals, timer, gate, children, backoff.
    Column("waiting_on", Text),
    #: When the clock should look: a queued row's next wake-up, a running row's lease, a parked row's timer.
    columns.time("due_at"),
    #: Raised by every claim; each write of the claimer carries it.
    columns.count("fence"),
    Column("worker_id", Text),
    #: Claims since the last checkpoint, one that ran out included; at the second the run is a suspect.
    columns.count("claims"),
    #: Processes since the last checkpoint that carried nothing but it, and died; past the limit the run is poison.
    columns.count("crashes"),
    #: What queued it again: answer, timer, children, backoff, lease; None at its first start.
    Column("resumed_by", Text),
    #: Wake-ups sent since it was queued; 0: it waits for a free place in its project.
    columns.count("wakes"),
    #: Which root run of its task this is, from 1.
    Column("attempt", Integer, nullable=False),
    #: Number of the last checkpoint; 0: none yet.
    columns.count("checkpoint"),
    #: The node to execute next; None before the first.
    Column("node_id", Text),
    columns.count("steps"),
    columns.count("tokens"),
    #: Model calls, for the turn limit of team agents.
    columns.count("turns"),
    columns.count("running_ms"),
    #: Model calls in a row that ended in a back-off.
    columns.count("backoffs"),
    #: Where the budget's window began: {steps, tokens, runningMs}.
    Column("window", columns.JsonText),
    columns.count("cost_micro"),
    columns.flag("cost_incomplete"),
    columns.count("messages"),
    columns.count("open_children"),
    #: Its children run one after the other.
    columns.flag("sequential"),
    Column("mode", Text),
    Column("permissions", columns.JsonText, nullable=False),
    Column("approvals", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    #: Where its last wake-up went; None: the default queue.
    Column("queue", Text),
    Column("error", columns.JsonText),
    columns.time("created_at", nullable=False),
    columns.time("started_at"),
    columns.time("ended_at"),
    columns.partial("ix_runs_due_at", "due_at", where="due_at IS NOT NULL"),
    Index("ix_runs_project_id_status_wakes", "project_id", "status", "wakes"),
    # The next to get a wake-up, found without looking at all that wait for a place.
    columns.partial("ix_runs_unsent", "project_id", "created_at", "id", where="status = 'queued' AND wakes = 0"),
    # What waits in the queue, counted without looking at what waits for a place in it.
    columns.partial("ix_runs_sent", "project_id", where="status = 'queued' AND wakes > 0"),
    Index("ix_runs_task_id", "task_id"),
    # Runs of an agent that have ended, for an agent that looks back.
    columns.partial("ix_runs_agent_id_ended_at", "agent_id", "ended_at", where="ended_at IS NOT NULL"),
    Index("ix_runs_parent_id_parent_step", "parent_id", "parent_step"),
)

checkpoints = Table(
    "checkpoints",
    columns.metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    #: The trace's last event of this checkpoint: where a fork cuts.
    Column("event_seq", BigInteger),
    #: The node to execute next; None: the run ended here.
    Column("node_id", Text),
    #: {steps, tokens, turns, runningMs, messages}: how far the run had come.
    Column("counters", columns.JsonText, nullable=False),
    #: Whom a handoff made the speaker: {agentId, name, digest}; None: whoever it was before.
    Column("speaker", columns.JsonText),
    #: What the engine remembers between nodes.
    Column("memo", columns.SealedJson),
    #: Keys of the state written since the checkpoint before; a snapshot holds all of them.
    Column("patch", columns.SealedJson, nullable=False),
    columns.flag("snapshot"),
    #: `$input`, where it changed (at the start, at a handoff).
    Column("input", columns.SealedJson),
    columns.flag("has_input"),
    Column("resume", columns.SealedJson),
    #: `$output`: a value, or {"message": n} / {"calls": [node, step]} naming the rows that hold it.
    Column("output", columns.SealedJson),
    Column("output_ref", columns.JsonText),
    columns.time("at", nullable=False),
)

messages = Table(
    "messages",
    columns.metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    #: The state key whose history it belongs to.
    Column("history", Text, nullable=False),
    Column("body", columns.SealedJson, nullable=False),
)

calls = Table(
    "calls",
    columns.metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("id", Text, primary_key=True),
    Column("node_id", Text, nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("name", Text, nullable=False),
    #: The final input: what runs, what was shown, what the digest binds.
    Column("input", columns.SealedJson),
    Column("digest", Text),
    #: `announced`, `asked` (waits for its signal), `started` (a once call may have happened), `done`.
    Column("status", Text, nullable=False),
    #: Number of the checkpoint that knows it like this: the one it was written with, or else the next.
    Column("checkpoint", BigInteger, nullable=False),
    Column("signal_id", Text),
    Column("outcome", Text),
    Column("result", columns.SealedJson),
    Column("duration_ms", BigInteger),
    Index("ix_calls_run_id_node_id_step", "run_id", "node_id", "step"),
    # What nobody knows the outcome of, found without looking at all that went well.
    columns.partial("ix_calls_unknown", "run_id", where="outcome = 'unknown'"),
)

#: What a person said about a call whose outcome nobody knew: once for each.
repairs = Table(
    "repairs",
    columns.metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("call_id", Text, primary_key=True),
    #: `result`: it happened, and came out like this; `retry`: run it again; `skip`: leave it.
    Column("how", Text, nullable=False),
    #: How it came out; of a retry that is under way nothing yet.
    Column("result", columns.JsonText),
    #: The action that runs it again.
    Column("signal_id", Text),
    Column("by", Text, nullable=False),
    Column("reason", Text),
    #: Whether the model of the run has read of it.
    columns.flag("told"),
    columns.time("at", nullable=False),
)

#: The last sequence number of each trace; taken as the last statement before a commit.
traces = Table("traces", columns.metadata, columns.key(), columns.count("seq"))

events = Table(
    "events",
    columns.metadata,
    Column("trace_id", Text, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    columns.time("at", nullable=False),
    Column("kind", Text, nullable=False),
    Column("task_id", Text),
    Column("run_id", Text),
    Column("agent_id", Text),
    Column("node_id", Text),
    Column("data", columns.JsonText, nullable=False),
)

signals = Table(
    "signals",
    columns.metadata,
    columns.key(),
    Column("owner_id", Text, nullable=False),
    columns.ref("project_id", "projects.id", nullable=True),
    columns.ref("task_id", "tasks.id", nullable=True),
    columns.ref("run_id", "runs.id", nullable=True),
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
    Column("options", columns.JsonText, nullable=False),
    Column("priority", Text, nullable=False),
    #: {toolCallId, skill, input}: exactly what would run.
    Column("action", columns.SealedJson),
    Column("digest", Text),
    Column("schema", columns.JsonText, nullable=False),
    Column("answer", columns.SealedJson),
    columns.flag("rejected"),
    Column("answered_by", Text),
    columns.time("answered_at"),
    #: The run did not wait: the answer runs the action outside of it.
    columns.flag("carry_on"),
    #: When such an action began, or its worker last said that it goes on: one that falls silent is unknown.
    columns.time("acted_at"),
    #: none, started, succeeded, failed, unknown; declined: a no was acted on. An answer is consumed once.
    Column("execution", Text, nullable=False, server_default=text("'none'")),
    Column("result", columns.SealedJson),
    Column("dedupe_key", Text),
    columns.time("created_at", nullable=False),
    columns.time("expires_at"),
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
    columns.metadata,
    columns.key(),
    #: None: it only counts.
    Column("limit_micro", BigInteger),
    columns.count("spent_micro"),
    #: Worst cases of calls under way.
    columns.count("reserved_micro"),
    #: Of a window that a run shares with its children.
    columns.count("steps"),
    columns.count("tokens"),
    columns.count("running_ms"),
)

#: The worst case of a call under way, in each window it draws on.
reservations = Table(
    "reservations",
    columns.metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("call_key", Text, primary_key=True),
    Column("window_id", Text, ForeignKey("windows.id"), primary_key=True),
    Column("micro", BigInteger, nullable=False),
)

files = Table(
    "files",
    columns.metadata,
    Column("project_id", Text, ForeignKey("projects.id"), primary_key=True),
    Column("path", Text, primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("task_id", Text),
    Column("run_id", Text),
    Column("skill", Text),
    columns.time("written_at", nullable=False),
    Index("ix_files_task_id", "task_id"),
)

#: Accounts outside that skills may use, by a name their owner gave.
connections = Table(
    "connections",
    columns.metadata,
    columns.key(),
    Column("owner_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("config", columns.JsonText, nullable=False),
    #: The secret fields as one JSON object, encrypted; nothing but the port ever reads them.
    Column("secrets", Text, nullable=False),
    columns.time("created_at", nullable=False),
    columns.time("updated_at", nullable=False),
    UniqueConstraint("owner_id", "name"),
)

#: One heartbeat row per worker process.
workers = Table(
    "workers",
    columns.metadata,
    columns.key(),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("slots", Integer, nullable=False),
    columns.count("active"),
    #: Names of the queues it serves; None: the default one.
    Column("queues", columns.JsonText),
    #: Digest of the rules by which it sends runs to queues: all workers have the same, or something is set wrong.
    Column("routing", Text),
    columns.time("started_at", nullable=False),
    columns.time("seen_at", nullable=False),
    columns.time("stopped_at"),
)
