"""What passes between the engine and the store: plain values, no database in them.

The engine fills a `Checkpoint` while it executes and hands it to a journal, which writes it in one transaction.
"""

import time
from dataclasses import dataclass, field
from typing import Any, Literal

from orchestrator.states import RunStatus, WaitingOn
from registry import masking
from registry.base import Json
from registry.permissions import Gate, Mode

#: Sentinel of "not given", where None is a value.
UNSET: Any = object()


def wall_ms() -> int:
    """Epoch milliseconds of this host, for the time an event shows; nothing is ever decided by it."""
    return time.time_ns() // 1_000_000


@dataclass
class Event:
    """One line of a trace. `seq` is given by the store."""

    kind: str
    data: dict[str, Json]
    task_id: str | None = None
    run_id: str | None = None
    agent_id: str | None = None
    node_id: str | None = None
    at: int = field(default_factory=wall_ms)
    seq: int = 0

    def to_json(self, project_id: str | None = None) -> dict[str, Json]:
        envelope = {
            "seq": self.seq,
            "at": self.at,
            "kind": self.kind,
            "projectId": project_id,
            "taskId": self.task_id,
            "runId": self.run_id,
            "agentId": self.agent_id,
            "nodeId": self.node_id,
        }
        return {key: value for key, value in envelope.items() if value is not None} | {"data": self.data}


@dataclass
class MessageRecord:
    number: int
    #: The state key of its history.
    history: str
    body: dict[str, Json]


#: `announced`: its tool.call is in the trace; `asked`: it waits for its signal; `started`: a once call that may have
#: happened; `done`: its result stands.
CallStatus = Literal["announced", "asked", "started", "done"]


@dataclass
class CallRecord:
    """One tool call of a batch as the rows keep it."""

    id: str
    node_id: str
    step: int
    position: int
    name: str
    input: Json
    status: CallStatus
    digest: str | None = None
    signal_id: str | None = None
    outcome: str | None = None
    #: The entry of `$output.results`.
    result: Json = None
    duration_ms: int | None = None
    #: The checkpoint that knows it like this.
    checkpoint: int = 0


#: In the answer of a decision that was closed as it was raised, because too many were open.
QUOTA: dict[str, Json] = {"refused": "quota"}


@dataclass
class SignalRecord:
    """A pending question to a person."""

    id: str
    kind: str
    title: str
    node_id: str | None = None
    call_id: str | None = None
    body: str | None = None
    reason: str | None = None
    options: list[dict[str, str]] = field(default_factory=list)
    priority: str = "normal"
    #: {toolCallId, skill, input}: exactly what would run.
    action: dict[str, Json] | None = None
    digest: str | None = None
    schema: dict[str, Json] = field(default_factory=dict)
    #: Milliseconds it stays open; None: the default life.
    life_ms: int | None = None
    #: Decisions its project may have open, this one included; None: no matter how many.
    most_open: int | None = None
    status: str = "open"
    answer: Json = None
    rejected: bool = False
    answered_by: str | None = None
    execution: str = "none"
    #: The run goes on meanwhile; the answer runs the action outside of it.
    carry_on: bool = False
    #: Epoch milliseconds of one that was read from its row.
    asked_at: int | None = None
    answered_at: int | None = None

    def to_json(self, run_id: str | None = None) -> dict[str, Json]:
        """As it may be seen: secrets are masked, what runs is `action` itself."""
        shown = {
            "id": self.id,
            "kind": self.kind,
            "runId": run_id,
            "nodeId": self.node_id,
            "title": self.title,
            "reason": self.reason,
            "prompt": self.body,
            "options": self.options or None,
            "schema": self.schema,
            "action": self.action,
            "status": self.status,
        }
        result = {key: value for key, value in shown.items() if value is not None}
        seen: dict[str, Json] = masking.mask(result | ({"answer": self.answer} if self.status == "answered" else {}))
        return seen


@dataclass(frozen=True)
class RepairRecord:
    """What a person said of a call whose outcome nobody knew, for the model of its run to read."""

    call_id: str
    name: str
    #: `result`, `retry`, `skip`.
    how: str
    #: {ok, output} or {ok, error, code}; None of what is left as it is.
    result: Json = None


@dataclass
class ChildRecord:
    """A run made by another run: one call of a spawn, or one item of a map. Its row is its promise to its parent."""

    id: str
    #: `spawn` or `item`.
    kind: str
    #: Its place among the calls or items.
    position: int
    agent_id: str
    agent_name: str
    definition_digest: str
    #: The body behind the digest; None when it is stored already, as that of an item run.
    definition: dict[str, Json] | None = None
    #: Where an item run begins; None: at the start of its graph.
    node_id: str | None = None
    input: Json = None
    state: dict[str, Json] = field(default_factory=dict)
    item: Json = UNSET
    status: str = "queued"
    #: {output, error?, blocked?, budget?} once it has ended.
    result: dict[str, Json] | None = None


@dataclass
class Fanout:
    """Children written with the park of their parent, in one transaction."""

    node_id: str
    step: int
    depth: int
    sequential: bool
    children: list[ChildRecord]
    #: The `traceparent` of what makes them.
    trace_parent: str | None = None


@dataclass
class FileRecord:
    path: str
    bytes: int
    sha256: str
    skill: str | None = None


@dataclass
class Ending:
    """How a run ended; `error` is {code, message, node?, ...} of a failed one."""

    status: Literal["completed", "failed", "cancelled"]
    output: Json = None
    error: dict[str, Json] | None = None
    #: What is odd about a completed one (a deliverable that is missing).
    note: str | None = None
    #: What a child brings its parent: {output, error?, blocked?, budget?}.
    result: dict[str, Json] | None = None
    #: Milliseconds its task waits before it is tried again the first time, where it is; the store doubles them.
    backoff_ms: int = 0


@dataclass
class Park:
    """What a run waits for; it holds nothing meanwhile."""

    status: RunStatus
    waiting_on: WaitingOn
    #: Signals raised now or before that it waits for.
    signal_ids: list[str] = field(default_factory=list)
    #: Milliseconds until the clock wakes it.
    due_in_ms: int | None = None
    #: Why, where the wait alone does not say it.
    reason: str | None = None


@dataclass
class Checkpoint:
    """Everything one transaction writes of a run."""

    run_id: str
    fence: int
    #: Whose trace and desk are told; the rows are found by the run.
    trace_id: str = ""
    owner_id: str = "local"
    #: Whether the run is known to have a parent: children that end together share a transaction.
    child: bool = False
    #: Whether it is known to be a task's own run: those that complete together share a transaction as well.
    root: bool = False
    #: Whether the run may have questions on the desk, which its end takes away.
    asked: bool = True
    #: Number of this checkpoint row; None: a small write in the middle of a node, without a row of its own.
    number: int | None = None
    node_id: str | None = None
    steps: int = 0
    tokens: int = 0
    turns: int = 0
    running_ms: int = 0
    backoffs: int = 0
    messages_count: int = 0
    window: Json = None
    #: Micro-USD spent since the last write.
    cost_micro: int = 0
    cost_incomplete: bool = False
    patch: dict[str, Json] = field(default_factory=dict)
    snapshot: bool = False
    #: `$input`, when it changed.
    input: Json = UNSET
    resume: Json = None
    output: Json = None
    output_ref: Json = None
    messages: list[MessageRecord] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    signals: list[SignalRecord] = field(default_factory=list)
    files: list[FileRecord] = field(default_factory=list)
    #: Grants that are used up by this write: signal id -> execution. Each may be consumed once.
    consume: dict[str, str] = field(default_factory=dict)
    #: Executions whose outcome this write records: signal id -> execution.
    settle: dict[str, str] = field(default_factory=dict)
    #: Calls whose reservations this write settles: call key -> micro-USD they cost.
    settled: dict[str, int] = field(default_factory=dict)
    #: Windows shared with other runs, and what was used of them since the last write: steps, tokens, milliseconds.
    shared: list[str] = field(default_factory=list)
    drawn: tuple[int, int, int] = (0, 0, 0)
    #: Windows a person renewed: id -> micro-USD of the new one; None renews the counts of a shared one.
    renewed: dict[str, int | None] = field(default_factory=dict)
    #: What the engine itself remembers between nodes: the last model node, handoffs, a wait under way.
    memo: dict[str, Json] = field(default_factory=dict)
    fanout: Fanout | None = None
    #: Questions the run goes on without.
    close: list[str] = field(default_factory=list)
    #: Calls whose repair the model of the run reads of with this write.
    told: list[str] = field(default_factory=list)
    #: Children whose time is over: cancelled with everything below them.
    cancel: list[str] = field(default_factory=list)
    #: A handoff: the run goes on as this agent, (id, name, digest, definition).
    speaker: tuple[str, str, str, dict[str, Json]] | None = None
    park: Park | None = None
    ending: Ending | None = None


@dataclass(frozen=True)
class TaskFacts:
    """What a run has to know of its task."""

    id: str
    key: str
    title: str
    role: str
    instruction: str
    expected_output: str | None
    deliverables: list[str]
    skills: list[str]
    tier: str
    attempt: int


@dataclass
class RunRecord:
    """A claimed run as it stands after its last checkpoint."""

    id: str
    fence: int
    project_id: str | None
    kind: str
    depth: int
    agent_id: str
    agent_name: str
    definition: dict[str, Json]
    definition_digest: str = ""
    attempt: int = 1
    owner_id: str = "local"
    project_title: str = ""
    workspace: str | None = None
    #: The conversation it belongs to, be it as a part of one of its runs.
    thread_id: str | None = None
    #: What was said in that conversation before, without the messages of this run.
    carried: list[MessageRecord] = field(default_factory=list)
    script: Json = None
    rehearsal: bool = False
    #: Micro-USD the whole project may cost.
    max_cost_micro: int | None = None
    #: Runs above it, and itself, whose budget is shared with what is below: (run id, budget), nearest first.
    shared: list[tuple[str, dict[str, Json]]] = field(default_factory=list)
    task: TaskFacts | None = None
    parent_id: str | None = None
    #: The `traceparent` its spans hang under: of the submit, of the message, or of the parent's work that made it.
    trace_parent: str | None = None
    #: Maps and modes of the runs above it, nearest first.
    ancestors: list[tuple[dict[str, Gate], dict[str, Gate], Mode | None]] = field(default_factory=list)
    #: What queued it again, as told by the claim; None at its first start.
    resumed_by: str | None = None
    mode: Mode | None = None
    permissions: dict[str, Gate] = field(default_factory=dict)
    approvals: str = "park"
    checkpoint: int = 0
    node_id: str | None = None
    steps: int = 0
    tokens: int = 0
    turns: int = 0
    running_ms: int = 0
    backoffs: int = 0
    window: Json = None
    cost_micro: int = 0
    cost_incomplete: bool = False
    state: dict[str, Json] = field(default_factory=dict)
    input: Json = None
    resume: Json = None
    output: Json = None
    output_ref: Json = None
    item: Json = UNSET
    index: Any = UNSET
    #: A child's place among the calls or items of its parent.
    position: int = 0
    messages: list[MessageRecord] = field(default_factory=list)
    #: Calls of the step it stands in.
    calls: dict[str, CallRecord] = field(default_factory=dict)
    #: Signals it raised that have not been executed, by id.
    signals: dict[str, SignalRecord] = field(default_factory=dict)
    #: Children of the step it stands in, in order.
    children: list[ChildRecord] = field(default_factory=list)
    #: Repairs that its model has not read of.
    repairs: list[RepairRecord] = field(default_factory=list)
    memo: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Limit:
    """A window by id and the micro-USD it may hold; None: it only counts."""

    window_id: str
    micro: int | None


@dataclass(frozen=True)
class Refusal:
    """A window that has no room: what is spent in it, and whether only others' open reservations are in the way."""

    window_id: str
    limit_micro: int
    spent_micro: int
    busy: bool


@dataclass(frozen=True)
class Usage:
    """What a window has used since it was opened or renewed."""

    steps: int
    tokens: int
    running_ms: int
    spent_micro: int


@dataclass(frozen=True)
class Wake:
    """A message that says: look at this run. The words are labels for people; nothing is read from them."""

    run_id: str
    project: str
    #: None: the run that makes the project's plan.
    task: str | None
    agent: str
    priority: int = 5
    #: None: the default queue.
    queue: str | None = None
