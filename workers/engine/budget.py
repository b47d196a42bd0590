"""Budgets: a window of steps, tokens and running time that the run may use up (spec: engine 7)."""

from dataclasses import dataclass
from typing import Literal

from orchestrator.records import Park, SignalRecord
from registry.agents import Budget
from registry.base import Json
from registry.errors import RunFailure
from registry.ids import new_id
from workers.engine.session import Session

#: A root run without a budget and without a graph of its own.
DEFAULT = Budget(max_steps=50, policy="ask")
ANSWER: dict[str, Json] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}
OPTIONS = [{"id": "continue", "label": "Continue"}, {"id": "stop", "label": "Stop"}]

Kind = Literal["steps", "tokens", "deadline"]


@dataclass(frozen=True)
class Exhausted:
    kind: Kind
    limit: int
    used: int


def in_force(session: Session) -> Budget | None:
    """The agent's own budget, or the default of an agent without a graph; a graph of its own has none."""
    if session.agent.budget is not None:
        return session.agent.budget
    return DEFAULT if session.agent.graph is None else None


def used(session: Session) -> dict[str, int]:
    """What the window has used; the totals go on over renewals."""
    now = {"steps": session.steps, "tokens": session.tokens, "runningMs": session.running_ms}
    return {key: value - session.window.get(key, 0) for key, value in now.items()}


def exhausted(session: Session) -> Exhausted | None:
    """The first limit that is reached, in the order steps, tokens, time."""
    budget, spent = in_force(session), used(session)
    if budget is None:
        return None
    if budget.max_steps is not None and spent["steps"] >= budget.max_steps:
        return Exhausted("steps", budget.max_steps, spent["steps"])
    if budget.max_tokens is not None and spent["tokens"] >= budget.max_tokens:
        return Exhausted("tokens", budget.max_tokens, spent["tokens"])
    if budget.deadline_ms is not None and spent["runningMs"] > budget.deadline_ms:
        return Exhausted("deadline", budget.deadline_ms, spent["runningMs"])
    return None


def check(session: Session, next_node: str) -> Park | None:
    """Looks at the budget before a node that is no end; a park when a person has to decide.

    Raises:
        RunFailure: `budget_exceeded` under the policy `error`; `timed_out` past the task's deadline.
    """
    _check_deadline(session)
    reached = exhausted(session)
    if reached is None:
        return None
    budget = in_force(session)
    policy = "error" if session.is_child or budget is None else budget.policy
    facts: dict[str, Json] = {"kind": reached.kind, "limit": reached.limit, "used": reached.used}
    session.emit("budget.exhausted", policy=policy, **facts)
    words = f"the run has used {reached.used} of {reached.limit} {_unit(reached.kind)}"
    if policy == "error":
        raise RunFailure("budget_exceeded", words, **facts)
    signal = SignalRecord(
        id=new_id(),
        kind="budget",
        title=f"{session.agent.name} has used up its budget: {reached.used} of {reached.limit} {_unit(reached.kind)}",
        node_id=next_node,
        reason="Continue opens a new window of the same size; Stop cancels the run.",
        options=OPTIONS,
        schema=ANSWER,
        body=reached.kind,
    )
    session.raise_signal(signal)
    return Park("needs_input", "signals", [signal.id])


def answered(session: Session) -> SignalRecord | None:
    """A budget question that has been answered, or whose time is over, and not acted on yet."""
    return next((s for s in session.signals.values() if s.kind == "budget" and s.execution == "none"), None)


def renew(session: Session, signal: SignalRecord) -> bool:
    """Acts on the answer: True and a new window, or False when the person said stop."""
    session.use(signal)
    if not (isinstance(signal.answer, dict) and signal.answer.get("approved") is True):
        return False
    session.window = {"steps": session.steps, "tokens": session.tokens, "runningMs": session.running_ms}
    session.emit("budget.renewed", kind=signal.body)
    return True


def note(session: Session) -> str | None:
    """What is left, for the model."""
    budget, spent = in_force(session), used(session)
    if budget is None:
        return None
    left = []
    if budget.max_steps is not None:
        left.append(f"{max(0, budget.max_steps - spent['steps'])} steps")
    if budget.max_tokens is not None:
        left.append(f"{max(0, budget.max_tokens - spent['tokens'])} tokens")
    if budget.deadline_ms is not None:
        left.append(f"{max(0, budget.deadline_ms - spent['runningMs']) // 1000} s of running time")
    return "Left of your budget: " + ", ".join(left) + "." if left else None


def _check_deadline(session: Session) -> None:
    limit = session.limits.task_deadline_s
    if session.is_team_run and session.running_ms > limit * 1000:
        raise RunFailure("timed_out", f"the task has worked longer than {limit:g} s", limit=limit)


def _unit(kind: Kind) -> str:
    return {"steps": "steps", "tokens": "tokens", "deadline": "ms of running time"}[kind]
