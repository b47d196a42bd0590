"""A batch of tool calls under execution.

A batch can be left and come back to: what is done stands in its call rows, what waits for a person has its signal, what
was started and not finished is unknown. Nothing that finished runs twice.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from orchestrator import crashpoints
from orchestrator.records import CallRecord, SignalRecord
from orchestrator.unknown import UNKNOWN
from registry.base import Json
from registry.errors import Refused, SkillError, Unavailable
from registry.graph.model import ToolCall
from registry.jsontext import compact
from registry.skills.context import Authority, SkillContext
from registry.skills.registry import Checked, Pending, SkillResult
from registry.skills.skill import Skill
from workers.engine import asking, contexts, results, spans
from workers.engine.calls import Call
from workers.engine.results import Result
from workers.engine.session import Session, clip
from workers.engine.toolhooks import ToolHooks

#: Tools that queue work for a node: run first, in call order, so that the queue has the order of the calls.
CONTROL_TOOLS = frozenset({"map", "wait", "agents_spawn", "agents_handoff"})

#: What a child may never do, whatever its rights: it cannot speak to a person, and must not outlive its parent.
NOT_IN_CHILDREN = frozenset(
    {
        "ask_user",
        "wait",
        "plan_save",
        "plan_item_update",
        "pin_set",
        "pin_remove",
        "schedule_set",
        "schedule_pause",
        "schedule_delete",
        "webhook_set",
        "webhook_delete",
        "schedule.create",
        "studio.author_agent",
        "studio.author_generator",
        "studio.author_skill_bundle",
    }
)


class Batch:
    """One execution of a batch, from wherever its rows say it stands."""

    def __init__(self, session: Session, node: ToolCall, todo: list[Call], concurrency: str) -> None:
        self.session = session
        self.node = node
        self.calls = todo
        self.sequential = concurrency == "sequential"
        #: Signals this batch waits for, once it has run as far as it can.
        self.asked: list[str] = []
        self._allowed = contexts.allowed(session, node)
        self._hooks = ToolHooks(session)
        #: Tools whose calls ask a person here, by the name that calls go by.
        self._approved = frozenset(map(session.tools.named, node.approve.tools if node.approve else ()))
        self._gated: dict[str, SkillResult] = {}

    def run(self) -> None:
        """Runs every call that can run now."""
        for call in self.calls:
            if call.id not in self.session.calls:
                self._announce(call)
        # Again while questions turn out to need no person (refused for want of room, or carried on): in a sequence the
        # calls behind them have not run yet.
        while (todo := [c for c in self.calls if not self._done(c)]) and not self.asked and self.session.lost is None:
            self._gated.clear()
            if self.sequential:
                self._one_by_one(todo)
            else:
                self._at_once(todo)
            self._ask(todo)

    def entries(self) -> list[dict[str, Json]]:
        """`$output.results`, in call order."""
        return [self.session.calls[c.id].result for c in self.calls]

    def _one_by_one(self, todo: list[Call]) -> None:
        for call in todo:
            self._run(call)
            if not self._done(call):  # it waits for a person, and so do those after it
                return

    def _at_once(self, todo: list[Call]) -> None:
        first = [c for c in todo if c.name in CONTROL_TOOLS]
        rest = [c for c in todo if c.name not in CONTROL_TOOLS]
        for call in first:
            self._run(call)
        if len(rest) == 1:
            self._run(rest[0])
        elif rest:
            with ThreadPoolExecutor(min(self.session.limits.tool_threads, len(rest)), "tool") as pool:
                for _ in pool.map(self._run, rest):
                    pass

    def _run(self, call: Call) -> None:
        """One call as far as it goes: to its result, or to the question that has to be answered first."""
        known = self.session.calls.get(call.id)
        signal = self.session.signals.get(known.signal_id) if known and known.signal_id else None
        if known is not None and known.status == "started":
            self._after_crash(call, known)
        elif signal is not None:
            self._answered(call, signal)
        else:
            self._invoke(call, None)

    def _invoke(self, call: Call, signal: SignalRecord | None) -> None:
        if self.session.is_child and (call.name in NOT_IN_CHILDREN or self._must_approve(call)):
            words = f"denied in subagent context: {call.name} needs a person or lasts beyond this run"
            self._finish(call, results.denied(words), None)
            return
        about = self._context(call, signal)
        authority = None
        if signal is not None and signal.kind == "decision":
            if not asking.intact(signal):
                words = "denied: what the person was shown is not the call that would run, so it was not run"
                self._finish(call, results.denied(words), signal)
                return
            authority = Authority(signal.digest, signal.id, (signal.action or {}).get("release"))
        elif self._must_approve(call) and (pending := self._forced(call, about)):
            self._gate(call, SkillResult(False, code="approval_required", pending=pending))
            return
        skill = self.session.tools.registry.find(call.name)
        with self.session.within(skill.timeout_s if skill else 0):
            given = self._hooks.input(call)
            work = partial(self.session.tools.registry.invoke, call.name, given, about, authority)
            result = spans.executed(self.session, skill, call_id=call.id, given=given, work=work)
        crashpoints.reached("acted")
        if result.code == "approval_required":
            self._gate(call, result)
            return
        self._finish(call, results.of(result), signal)

    def _answered(self, call: Call, signal: SignalRecord) -> None:
        said = asking.verdict(signal)
        if said == "open":
            return
        if said in ("approved", "answered"):
            self._invoke(call, signal)
        else:
            self.session.use(signal, "declined")
            words = asking.why_not(signal)
            denied = words == asking.TOO_MANY
            self._finish(call, results.denied(words, code="quota") if denied else results.rejected(words), None)

    def _after_crash(self, call: Call, known: CallRecord) -> None:
        """A once call that was started: unknown; where a person had to be asked, they are asked whether to repeat."""
        about = self._context(call, None)
        pending = self._forced(call, about)
        if known.signal_id is not None:
            self.session.pending.settle[known.signal_id] = UNKNOWN
            self.session.emit("signal.executed", signalId=known.signal_id, ok=False, code=UNKNOWN)
        if pending is not None and known.signal_id is not None and not self._hooks.refusal(call, pending.reason):
            again = asking.decision(self.session, call, pending, again=True)
            self._raise(call, again, pending.digest, outcome=UNKNOWN)
            return
        self._finish(call, results.unknown(call), None)

    def _gate(self, call: Call, result: SkillResult) -> None:
        pending = result.pending
        if pending is not None:
            run, task = self.session.record, self.session.record.task
            if self.session.services.journal.was_refused(run.id, task.id if task else None, pending.digest):
                words = "denied: a person said no to this very call before; do not try it again"
                self._finish(call, results.rejected(words), None)
                return
            if refusal := self._hooks.refusal(call, pending.reason):
                self._finish(call, results.denied(refusal), None)
                return
        with self.session.lock:
            self._gated[call.id] = result

    def _ask(self, todo: list[Call]) -> None:
        """Raises the questions of this batch together, in call order."""
        room = self.session.limits.open_decisions_per_project
        room -= self.session.services.journal.open_decisions(self.session.record.project_id) if self._gated else 0
        for call in todo:
            known = self.session.calls.get(call.id)
            if call.id in self._gated:
                result = self._gated[call.id]
                if result.pending is None:
                    self._raise(call, asking.question(self.session, call, result), None)
                elif room <= 0:
                    self._finish(call, results.denied(asking.TOO_MANY, code="quota"), None)
                else:
                    room -= 1
                    self._decide(call, result.pending)
            elif known is not None and known.status == "asked" and known.signal_id not in self.asked:
                self.asked.append(str(known.signal_id))
            elif known is None or known.status == "announced":
                self._keep(call, "announced")

    def _decide(self, call: Call, pending: Pending) -> None:
        """Raises the decision about a call; the run parks on it, or goes on where its approvals say so."""
        if not self.session.carries_on:
            schema = self.node.approve.resume_schema if self.node.approve and self._must_approve(call) else None
            self._raise(call, asking.decision(self.session, call, pending, schema=schema), pending.digest)
            return
        run, task = self.session.record, self.session.record.task
        known = self.session.services.journal.open_decision(run.id, task.id if task else None, pending.digest)
        if known is None:
            signal = asking.decision(self.session, call, pending, carry_on=True)
            self.session.raise_signal(signal)
            known = signal.id
        self._finish(call, results.deferred(known), None)

    def _raise(self, call: Call, signal: SignalRecord, digest: str | None, *, outcome: str | None = None) -> None:
        with self.session.lock:
            self.session.raise_signal(signal)
            self._keep(call, "asked", digest=digest, signal_id=signal.id, outcome=outcome)
            self.asked.append(signal.id)

    def _finish(self, call: Call, result: Result, signal: SignalRecord | None) -> None:
        """Records an outcome; what is not pure is written at once, unless the batch ends with it anyway."""
        self._hooks.finished(call, result)
        with self.session.lock:
            if signal is not None:
                self.session.use(signal) if signal.execution == "none" else None
                self.session.settle(signal, "succeeded" if not result.is_error else "failed")
            results.tell(self.session, call, result)
            if self.session.is_child and result.outcome == "denied":
                blocked = [*self.session.memo.get("blocked", []), {"tool": call.name, "reason": result.value}]
                self.session.memo["blocked"] = blocked
            started = self.session.calls.get(call.id)
            self._keep(call, "done", outcome=result.outcome, result=result.entry(call), duration=result.duration_ms)
            if started is not None and started.status == "started" and not all(map(self._done, self.calls)):
                self._flush()

    def _begin(self, call: Call, checked: Checked, signal: SignalRecord | None) -> None:
        """Intent before effect: the mark, the look at the fence and the use of the grant are one transaction."""
        if checked.skill.effect_of(checked.input) != "once":
            return
        with self.session.lock:
            if signal is not None:
                self.session.use(signal, "started")
            self._keep(call, "started", digest=checked.digest, signal_id=signal.id if signal else None)
            self._flush()
            if self.session.lost is not None:
                raise SkillError("cancelled", f"nothing was done: {self.session.lost.message}")

    def _flush(self) -> None:
        """Writes what the batch has so far; calls that are announced and not done are named, so as to be so once.

        A write that is refused ends this worker's part in the run: the loop raises it when the batch has come to rest.
        """
        for call in self.calls:
            if call.id not in self.session.calls:
                self._keep(call, "announced")
        try:
            self.session.save(numbered=self.session.moved)
        except (Refused, Unavailable) as error:
            self.session.stopped.set()
            self.session.lost = error

    def _keep(
        self,
        call: Call,
        status: str,
        *,
        digest: str | None = None,
        signal_id: str | None = None,
        outcome: str | None = None,
        result: Json = None,
        duration: int | None = None,
    ) -> None:
        before = self.session.calls.get(call.id)
        self.session.keep_call(
            CallRecord(
                id=call.id,
                node_id=str(self.session.node_id),
                step=self.session.steps,
                position=call.position,
                name=call.name,
                input=self._hooks.input(call),
                status=status,  # type: ignore[arg-type]
                digest=digest or (before.digest if before else None),
                signal_id=signal_id or (before.signal_id if before else None),
                outcome=outcome,
                result=result,
                duration_ms=duration,
            )
        )

    def _announce(self, call: Call) -> None:
        """The `tool.call` of a call: all of a batch first, in call order."""
        skill = self.session.tools.registry.find(call.name)
        operations, effect = _nature(skill, call.args)
        shown = call.args if self._fits(call.args) else clip(compact(call.args), results.EVENT_BYTES)
        self.session.emit(
            "tool.call", toolCallId=call.id, name=call.name, input=shown, operations=operations, effect=effect
        )

    def _fits(self, value: Json) -> bool:
        return len(compact(value)) <= 3 * results.EVENT_BYTES

    def _done(self, call: Call) -> bool:
        known = self.session.calls.get(call.id)
        return known is not None and known.status == "done"

    def _must_approve(self, call: Call) -> bool:
        return call.name in self._approved

    def _context(self, call: Call, signal: SignalRecord | None) -> SkillContext:
        return contexts.of_call(
            self.session,
            call,
            signal,
            node=self.node,
            allowed=self._allowed,
            hooks=self._hooks,
            begin=lambda checked: self._begin(call, checked, signal),
        )

    def _forced(self, call: Call, about: SkillContext) -> Pending | None:
        """What a decision about this call would show, whatever its gate says; None when its input is no good."""
        try:
            checked = self.session.tools.registry.check(call.name, self._hooks.input(call), about)
        except SkillError:
            return None
        reason = self.node.approve.reason if self.node.approve else None
        operation = next(iter(checked.operations), None)
        words, release = reason or "the graph says so", checked.skill.release
        return Pending(checked.skill.name, checked.canonical, checked.digest, operation, words, release)


def _nature(skill: Skill | None, arguments: Json) -> tuple[list[str], str | None]:
    """Operations and effect as the trace shows them; nothing where they depend on an input that is no good."""
    if skill is None:
        return [], None
    try:
        checked = skill.input.check(arguments) if callable(skill.operations) or callable(skill.effect) else None
    except SkillError:
        return [], None
    return skill.operations_of(checked), skill.effect_of(checked)
