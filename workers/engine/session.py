"""One run while a worker executes it: its state in memory, and the checkpoint it is filling.

Nothing a node does is real before `save`: messages, events, calls, signals and counters gather in `pending` and are
written in one transaction under the run's fence. Threads of a batch share a session; whoever touches `pending` holds
the lock.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from orchestrator.records import (
    UNSET,
    CallRecord,
    Checkpoint,
    Ending,
    Event,
    Fanout,
    FileRecord,
    MessageRecord,
    Park,
    RepairRecord,
    RunRecord,
    SignalRecord,
    Wake,
)
from registry.agents import AgentDefinition
from registry.base import Json
from registry.errors import OfficinaError, RunFailure
from registry.graph.expressions import ABSENT, Slots
from registry.graph.model import Graph
from registry.hooks import by_event
from registry.jsontext import compact
from registry.permissions import Policy
from registry.playbooks import Playbook
from registry.skills.skill import Skill
from workers.engine import restore, spans
from workers.engine.services import Services
from workers.engine.toolset import Toolset

#: A snapshot of the whole state every so many checkpoints.
SNAPSHOT_EVERY = 50
DAY_MS = 86_400_000
#: Kinds of events that are kept however many a run writes.
ALWAYS = ("run.", "task.", "project.", "signal.", "budget.")


class Session:
    """The run under execution."""

    def __init__(self, record: RunRecord, agent: AgentDefinition, services: Services) -> None:
        self.record = record
        self.services = services
        self.limits = services.limits
        self.lock = threading.RLock()
        #: Set when the run was lost, cancelled, or its worker stops: no new step begins.
        self.stopped = threading.Event()
        #: Set when the worker wants to leave: the step under way finishes, the next one is another worker's.
        self.leave = threading.Event()
        #: Why a write in the middle of a batch was refused; the loop ends with it.
        self.lost: OfficinaError | None = None
        #: How it stands once the loop has left it, for whoever drove it.
        self.status = "running"
        self.code: str | None = None
        self.parked: Park | None = None
        #: Wake-ups of the children it has just made: the job sends them as one chord.
        self.fanned_out: tuple[Wake, ...] = ()
        #: What a child that has ended brings its parent.
        self.brought: dict[str, Json] | None = None
        self.final: Json = None
        #: {kind, limit, used, closingStep} of a child that ended with its closing step.
        self.spent_budget: Json = None
        #: Micro-USD spent so far; a lower bound once a price was unknown.
        self.spent_micro = record.cost_micro
        self.cost_incomplete = record.cost_incomplete
        #: Documents it has looked at, by digest: each stays what it was when the run began.
        self.books: dict[str, Playbook] = {}
        #: Its part in the project's trace, while it is carried.
        self.leg = spans.Leg()
        #: When each call under way has to be over, on the monotonic clock.
        self._due: dict[object, float] = {}
        #: Seconds in calls of models and tools, since this worker carries it.
        self.called_s = 0.0
        self.become(agent)

        self.node_id: str | None = record.node_id
        self.steps, self.tokens, self.turns = record.steps, record.tokens, record.turns
        self.backoffs = record.backoffs
        self.window: dict[str, int] = dict(record.window or {"steps": 0, "tokens": 0, "runningMs": 0})
        self.input = record.input
        self.resume = record.resume
        self.signals = record.signals
        #: Children of the fan-out it stands in.
        self.children = record.children
        #: What a person said of calls whose outcome nobody knew, and its model has not read.
        self.repairs = {repair.call_id: repair for repair in record.repairs}
        self._read_repairs: set[str] = set()
        #: What the engine itself remembers: {generate, handoffs, blocked, wait, repairs, cuts, wrote}.
        self.memo: dict[str, Json] = dict(record.memo)
        self.calls = {c.id: c for c in record.calls.values() if c.step == record.steps}
        #: The state with its histories in it: lists of messages that only grow.
        self.state, self.messages = restore.state(record)
        self.output: Json = restore.output(record)
        self.output_ref: Json = record.output_ref
        self.last_history = record.messages[-1].history if record.messages else "messages"
        #: Every history it has rows in: after a handoff also those that the speaker of today does not use.
        self._histories = {message.history for message in [*record.carried, *record.messages]}
        #: The results of its tool calls so far, in the order they reached the model.
        self.results = [restore.tool_result(m.body) for m in record.messages if m.body["role"] == "tool"]
        #: Whether this agent's `core:start` has taken the input.
        self.started = record.checkpoint > 0
        #: Whether this worker has begun the run from its start.
        self.begun = False
        known = [*record.carried, *record.messages]
        self.call_ids = {call["id"] for m in known for call in m.body.get("toolCalls") or []}

        self._numbers = record.checkpoint
        self._numbered_steps = record.steps
        self._event_count = 0
        self._running_ms, self._since = record.running_ms, time.monotonic()
        self._booked = (record.steps, record.tokens, record.running_ms)
        self._dirty: set[str] = set(self.state) if record.checkpoint == 0 else set()
        self._removed: set[str] = set()
        self.pending = self._fresh()
        if record.checkpoint == 0:
            self.pending.input = record.input

    def become(self, agent: AgentDefinition) -> None:
        """Takes an agent's prompts, graph, tools and rights: at the start, and at a handoff."""
        self.agent = agent
        self.graph: Graph = agent.effective_graph()
        above = tuple(Policy(agent_map, run_map, mode) for agent_map, run_map, mode in self.record.ancestors)
        self.policy = Policy(agent.permissions, self.record.permissions, self.record.mode or agent.mode, above)
        self.tools = Toolset(agent, self.services, kind=self.record.kind, serve=self._serve, plugged=self._plugged)
        #: What listens to each event of the run; most agents have none.
        self.hooks = by_event(agent.hooks)

    def _serve(self, servers: Sequence[str]) -> Sequence[Skill]:
        """The tools of its MCP servers; what is left out is told in the trace."""

        def left_out(server: str, tool: str | None, reason: str) -> None:
            self.emit("mcp.skipped", server=server, tool=tool, reason=reason)

        return self.services.mcp(servers, left_out)

    def _plugged(self, plugins: Sequence[str], taken: Callable[[Skill], bool]) -> Sequence[Skill]:
        """The tools of its plugins; what is left out is told in the trace."""

        def left_out(plugin: str, tool: str | None, reason: str) -> None:
            self.emit("plugin.skipped", plugin=plugin, tool=tool, reason=reason)

        found = []
        for skill in self.services.plugins.skills(self.record.owner_id, plugins, left_out):
            if taken(skill):
                left_out(str(skill.plugin), skill.name, "its name is taken by another tool of this agent")
            else:
                found.append(skill)
        return found

    @property
    def fence(self) -> int:
        """What every write of this execution carries."""
        return self.record.fence

    @property
    def is_child(self) -> bool:
        return self.record.kind in ("spawn", "item")

    @property
    def carries_on(self) -> bool:
        """Whether it goes on while its calls wait for a yes; a child cannot ask at all."""
        return "carryOn" in (self.record.approvals, self.agent.approvals)

    @property
    def is_team_run(self) -> bool:
        """A task's root run on the default loop: the turn limit and the loop guards of team agents apply to it."""
        return self.record.task is not None and not self.is_child and self.agent.graph is None

    @property
    def running_ms(self) -> int:
        """Milliseconds of running time so far; parked time never counts."""
        return self._running_ms + round((time.monotonic() - self._since) * 1000)

    def slots(self) -> Slots:
        item = ABSENT if self.record.item is UNSET else self.record.item
        index = ABSENT if self.record.index is UNSET else self.record.index
        return Slots(self.input, self.state, self.output, self.resume, item, index)

    def history(self, key: str) -> list[dict[str, Json]]:
        """The live list of a history; a key that is absent is an empty one."""
        found: list[dict[str, Json]] = self.state.setdefault(key, [])
        if not isinstance(found, list):
            raise RunFailure("messages_path", f"$state.{key} is no list of messages")
        return found

    def append(self, body: dict[str, Json], *, history: str | None = None) -> int:
        """Appends a message; returns its number in the run."""
        key = history or self.last_history
        with self.lock:
            self.messages += 1
            self.history(key).append(body)
            self.pending.messages.append(MessageRecord(self.messages, key, body))
            self.last_history = key
            self._histories.add(key)
            self.call_ids.update(call["id"] for call in body.get("toolCalls") or [])
            if body["role"] == "tool":
                self.results.append(restore.tool_result(body))
            else:
                self._tell_message(body)
            return self.messages

    def write(self, key: str, value: Json) -> None:
        """Sets a key of the state."""
        with self.lock:
            self.state[key] = value
            self._dirty.add(key)
            self._removed.discard(key)

    def remove(self, key: str) -> None:
        with self.lock:
            if self.state.pop(key, UNSET) is not UNSET:
                self._dirty.discard(key)
                self._removed.add(key)

    def emit(self, kind: str, /, node_id: str | None = None, **data: Json) -> None:
        """Adds a line to the trace; None values are left out. Past the limit only states and signals are kept."""
        self._event_count += 1
        if self._event_count > self.limits.events_per_run and not kind.startswith(ALWAYS):
            return
        line = Event(
            kind,
            {key: value for key, value in data.items() if value is not None},
            task_id=self.record.task.id if self.record.task else None,
            run_id=self.record.id,
            agent_id=self.agent.id,
            node_id=node_id or self.node_id,
        )
        with self.lock:
            self.pending.events.append(line)

    def keep_call(self, call: CallRecord) -> None:
        """Stores how far a call has come, with the next write."""
        with self.lock:
            call.checkpoint = self._numbers + 1
            self.calls[call.id] = call
            self.pending.calls = [c for c in self.pending.calls if c.id != call.id] + [call]

    def keep_file(self, file: FileRecord) -> None:
        with self.lock:
            self.pending.files.append(file)

    def raise_signal(self, signal: SignalRecord) -> None:
        if signal.life_ms is None:
            signal.life_ms = self.limits.signal_life_days * DAY_MS
        with self.lock:
            self.signals[signal.id] = signal
            self.pending.signals.append(signal)
        self.emit(
            "signal.raised",
            signalId=signal.id,
            signalKind=signal.kind,
            title=signal.title,
            schema=signal.schema,
            action=signal.action,
        )

    def use(self, signal: SignalRecord, execution: str = "succeeded") -> None:
        """Consumes an answer with the next write; it can be consumed once."""
        with self.lock:
            signal.execution = execution
            self.pending.consume[signal.id] = execution
        spans.answered(self, signal)

    def hear(self, repairs: Iterable[RepairRecord]) -> None:
        """Takes in what a person said while it is at work; its model reads it before its next turn."""
        with self.lock:
            self.repairs |= {one.call_id: one for one in repairs if one.call_id not in self._read_repairs}

    def read_repairs(self) -> list[RepairRecord]:
        """What was said, for its model to read; with the next write it has."""
        with self.lock:
            found, self.repairs = list(self.repairs.values()), {}
            self._read_repairs |= {one.call_id for one in found}
            self.pending.told += [one.call_id for one in found]
            return found

    def spend(self, cost_micro: int | None) -> None:
        """Books money with the next write; None is a price nobody knows, which is not the same as free."""
        with self.lock:
            if cost_micro is None:
                self.cost_incomplete = self.pending.cost_incomplete = True
            else:
                self.spent_micro += cost_micro
                self.pending.cost_micro += cost_micro

    def settle(self, signal: SignalRecord, execution: str) -> None:
        """Records how the call of a consumed grant came out."""
        with self.lock:
            signal.execution = execution
            if signal.id in self.pending.consume:
                self.pending.consume[signal.id] = execution
            else:
                self.pending.settle[signal.id] = execution

    def save(
        self,
        *,
        numbered: bool = True,
        park: Park | None = None,
        ending: Ending | None = None,
        fanout: Fanout | None = None,
    ) -> None:
        """Writes everything pending in one transaction.

        Args:
            numbered: whether the state gets a checkpoint row of its own; small writes in the middle of a node do not,
                unless the run has `moved`.

        Raises:
            LeaseStale: the run is not ours any more; the caller stops.
        """
        with self.lock:
            pending = self.pending
            pending.park, pending.ending, pending.fanout = park, ending, fanout
            pending.steps, pending.tokens, pending.turns = self.steps, self.tokens, self.turns
            pending.running_ms, pending.window = self.running_ms, self.window
            pending.backoffs, pending.messages_count = self.backoffs, self.messages
            pending.shared, pending.drawn = self._drawn()
            pending.asked = bool(self.signals)
            if numbered:
                self._number(pending)
            self.fanned_out = tuple(self.services.journal.save(pending))
            self.pending = self._fresh()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Around a call that has to be over within so many seconds."""
        key, begun = object(), time.monotonic()
        self._due[key] = begun + seconds
        try:
            yield
        finally:
            del self._due[key]
            self.called_s += time.monotonic() - begun

    def overdue(self, slack_s: float) -> bool:
        """Whether a call is still under way so many seconds after it had to be over: its thread may never come back."""
        return any(time.monotonic() > due + slack_s for due in tuple(self._due.values()))

    def shared_budgets(self) -> list[tuple[str, dict[str, Json]]]:
        """Budgets this run shares, its own first: (run id, budget)."""
        own = self.agent.budget
        mine = [(self.record.id, own.to_json())] if own is not None and own.shared else []
        return [*mine, *self.record.shared]

    def unbooked(self) -> tuple[int, int, int]:
        """Steps, tokens and milliseconds used since the last write."""
        steps, tokens, running_ms = self._booked
        return self.steps - steps, self.tokens - tokens, self.running_ms - running_ms

    def _drawn(self) -> tuple[list[str], tuple[int, int, int]]:
        windows = [f"run:{run_id}" for run_id, _ in self.shared_budgets()]
        used = self.unbooked()
        self._booked = (self.steps, self.tokens, self.running_ms)
        return windows, used if windows else (0, 0, 0)

    @property
    def moved(self) -> bool:
        """Whether pure nodes were executed since the last checkpoint.

        A write in the middle of a node has to be a checkpoint then, or the run would come back to an earlier place with
        later counters, and would not find the calls of this step.
        """
        return self._numbers == 0 or self.steps != self._numbered_steps

    def close_signal(self, signal: SignalRecord) -> None:
        """Closes a question the run goes on without, with the next write."""
        with self.lock:
            signal.status = "expired"
            self.pending.close.append(signal.id)

    @contextmanager
    def node(self, node_id: str) -> Iterator[None]:
        """Events in here belong to this node."""
        before, self.node_id = self.node_id, node_id
        try:
            yield
        finally:
            self.node_id = before

    def _number(self, pending: Checkpoint) -> None:
        self._numbers += 1
        self._numbered_steps = self.steps
        pending.number, pending.node_id = self._numbers, self.node_id
        pending.snapshot = self._numbers % SNAPSHOT_EVERY == 1
        if pending.snapshot:
            pending.patch = {"set": self._without_histories(self.state)}
            pending.input = self.input
        else:
            changed = {key: self.state[key] for key in self._dirty if key in self.state}
            pending.patch = {"set": self._without_histories(changed)}
            if self._removed:
                pending.patch["remove"] = sorted(self._removed)
        pending.memo = self.memo
        pending.resume = self.resume
        pending.output_ref = self.output_ref
        pending.output = None if self.output_ref is not None else self.output
        self._dirty, self._removed = set(), set()

    def _without_histories(self, values: dict[str, Json]) -> dict[str, Json]:
        return {key: value for key, value in values.items() if key not in self.tools.history_keys | self._histories}

    def _fresh(self) -> Checkpoint:
        return Checkpoint(
            self.record.id,
            self.record.fence,
            trace_id=self.record.project_id or "",
            owner_id=self.record.owner_id,
            child=self.record.parent_id is not None,
            root=self.record.kind == "root" and self.record.task is not None,
        )

    def _tell_message(self, body: dict[str, Json]) -> None:
        self.emit(
            "message",
            role=body["role"],
            text=clip(str(body.get("content") or ""), self.limits.event_bytes // 4),
            toolCalls=body.get("toolCalls") or None,
            finishReason=body.get("finishReason"),
            kind=body.get("kind"),
            origin=body.get("origin"),
        )


def clip(text: str, chars: int) -> str:
    """A text cut for a trace, with the count of what is left out."""
    return text if len(text) <= chars else f"{text[:chars]}\n[... {len(text) - chars} more characters]"


def size(value: Json) -> int:
    """Bytes of a value as JSON."""
    return len(compact(value).encode("utf-8", "replace"))
