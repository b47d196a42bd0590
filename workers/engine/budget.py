"""Budgets: windows of steps, tokens, running time and money that a run may use up (spec: engine 7).

A run has its own window; where a budget is shared, the runs below draw on the same one, a row of the store.
"""

from dataclasses import dataclass
from typing import Literal

from orchestrator.records import Park, SignalRecord, Usage
from registry.agents import Budget
from registry.base import Json
from registry.errors import RunFailure
from registry.ids import new_id
from workers.engine.session import Session

#: A root run without a budget and without a graph of its own.
DEFAULT = Budget(max_steps=50, policy="ask")
#: An item run whose parent has none.
ITEM = Budget(max_steps=50, policy="error")
ANSWER: dict[str, Json] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}
OPTIONS = [{"id": "continue", "label": "Continue"}, {"id": "stop", "label": "Stop"}]

Kind = Literal["steps", "tokens", "deadline", "cost"]
UNITS: dict[Kind, str] = {
    "steps": "steps",
    "tokens": "tokens",
    "deadline": "ms of running time",
    "cost": "micro-USD",
}


@dataclass(frozen=True)
class Exhausted:
    """A limit that is reached; `window_id` names the shared window or the money's, None is the run's own."""

    kind: Kind
    limit: int
    used: int
    window_id: str | None = None
    #: Micro-USD the next call may cost.
    wanted: int = 0

    @property
    def words(self) -> str:
        if self.kind == "cost":
            room = f"{self.used / 1e6:.4f} of {self.limit / 1e6:.4f} USD"
            return f"{room}, and the next call may cost up to {self.wanted / 1e6:.4f} USD"
        return f"{self.used} of {self.limit} {UNITS[self.kind]}"


def in_force(session: Session) -> Budget | None:
    """The agent's own budget, or the default of an agent without a graph; a graph of its own has none."""
    if session.agent.budget is not None:
        return session.agent.budget
    if session.record.kind == "item":
        return ITEM
    return DEFAULT if session.agent.graph is None else None


def policy(session: Session) -> Literal["ask", "error"]:
    """A child cannot ask."""
    budget = in_force(session)
    return "error" if session.is_child or budget is None else budget.policy


def used(session: Session) -> Usage:
    """What the run's own window has used; the totals go on over renewals."""
    start = session.window
    return Usage(
        steps=session.steps - start.get("steps", 0),
        tokens=session.tokens - start.get("tokens", 0),
        running_ms=session.running_ms - start.get("runningMs", 0),
        spent_micro=0,
    )


def exhausted(session: Session) -> Exhausted | None:
    """The first limit that is reached: the run's own, then those it shares."""
    budget = in_force(session)
    own = _reached(budget, used(session), None) if budget is not None else None
    if own is not None:
        return own
    for run_id, body in session.shared_budgets():
        window_id = f"run:{run_id}"
        reached = _reached(Budget.model_validate(body), _shared_usage(session, window_id), window_id)
        if reached is not None:
            return reached
    return None


def check(session: Session, next_node: str) -> Park | None:
    """Looks at the budget before a node that is no end; a park when a person has to decide.

    Raises:
        RunFailure: `budget_exceeded` under the policy `error`; `timed_out` past the task's deadline.
    """
    _check_deadline(session)
    reached = exhausted(session)
    return None if reached is None else refuse(session, reached, next_node)


def refuse(session: Session, reached: Exhausted, node_id: str) -> Park:
    """What a reached limit leads to: the question to a person.

    Raises:
        RunFailure: `budget_exceeded`, where the policy is to end.
    """
    chosen = policy(session)
    facts: dict[str, Json] = {"kind": reached.kind, "limit": reached.limit, "used": reached.used}
    session.emit("budget.exhausted", policy=chosen, **facts)
    if chosen == "error":
        raise RunFailure("budget_exceeded", f"the run has used {reached.words}", **facts)
    signal = SignalRecord(
        id=new_id(),
        kind="budget",
        title=f"{session.agent.name} is at the end of a budget: {reached.words}",
        node_id=node_id,
        reason="Continue opens a new window of the same size; Stop cancels the run.",
        options=OPTIONS,
        schema=ANSWER,
    )
    session.memo["budget"] = facts | {"windowId": reached.window_id}
    session.raise_signal(signal)
    return Park("needs_input", "signals", [signal.id])


def answered(session: Session) -> SignalRecord | None:
    """A budget question that was asked and not acted on yet."""
    return next((s for s in session.signals.values() if s.kind == "budget" and s.execution == "none"), None)


def renew(session: Session, signal: SignalRecord) -> bool:
    """Acts on the answer: True and a new window, or False when the person said stop."""
    session.use(signal)
    asked = session.memo.pop("budget", {})
    if not (isinstance(signal.answer, dict) and signal.answer.get("approved") is True):
        return False
    window_id = asked.get("windowId")
    if window_id is not None:
        session.pending.renewed[window_id] = asked["limit"] if asked["kind"] == "cost" else None
    else:
        session.window = {"steps": session.steps, "tokens": session.tokens, "runningMs": session.running_ms}
    session.emit("budget.renewed", kind=asked.get("kind"))
    session.save(numbered=False)
    return True


def time_left(session: Session) -> float:
    """Seconds of running time the run may still use; infinite without a limit."""
    found = in_force(session)
    left = [float("inf")]
    if found is not None and found.deadline_ms is not None:
        left.append((found.deadline_ms - used(session).running_ms) / 1000)
    if session.is_team_run:
        left.append(session.limits.task_deadline_s - session.running_ms / 1000)
    return max(0.0, min(left))


def note(session: Session) -> str | None:
    """What is left, for the model."""
    budget, spent = in_force(session), used(session)
    if budget is None:
        return None
    left = []
    if budget.max_steps is not None:
        left.append(f"{max(0, budget.max_steps - spent.steps)} steps")
    if budget.max_tokens is not None:
        left.append(f"{max(0, budget.max_tokens - spent.tokens)} tokens")
    if budget.deadline_ms is not None:
        left.append(f"{max(0, budget.deadline_ms - spent.running_ms) // 1000} s of running time")
    return "Left of your budget: " + ", ".join(left) + "." if left else None


def _reached(budget: Budget, spent: Usage, window_id: str | None) -> Exhausted | None:
    """The first limit, in the order steps, tokens, time."""
    if budget.max_steps is not None and spent.steps >= budget.max_steps:
        return Exhausted("steps", budget.max_steps, spent.steps, window_id)
    if budget.max_tokens is not None and spent.tokens >= budget.max_tokens:
        return Exhausted("tokens", budget.max_tokens, spent.tokens, window_id)
    if budget.deadline_ms is not None and spent.running_ms > budget.deadline_ms:
        return Exhausted("deadline", budget.deadline_ms, spent.running_ms, window_id)
    return None


def _shared_usage(session: Session, window_id: str) -> Usage:
    """What the row says, and what this run has used since it last wrote."""
    row = session.services.journal.usage(window_id)
    steps, tokens, running_ms = session.unbooked()
    return Usage(row.steps + steps, row.tokens + tokens, row.running_ms + running_ms, row.spent_micro)


def _check_deadline(session: Session) -> None:
    limit = session.limits.task_deadline_s
    if session.is_team_run and session.running_ms > limit * 1000:
        raise RunFailure("timed_out", f"the task has worked longer than {limit:g} s", limit=limit)
