"""`control:wait`: a sleep, or a gate that a person opens. Parked, the run holds nothing."""

import math

from orchestrator.records import Park, SignalRecord
from registry.base import Json
from registry.errors import RunFailure
from registry.graph import expressions
from registry.graph.expressions import ExpressionError
from registry.graph.model import Wait
from registry.ids import new_id
from workers.engine.outcome import Done, Outcome, Parked
from workers.engine.session import DAY_MS, Session

#: Where the memo keeps a wait under way: {step, fireAt?, signal?}.
MEMO = "wait"


def wait(session: Session, node: Wait) -> Outcome:
    """Parks until the time has come or the gate is answered; executed again, it sees which of them it was."""
    if session.is_child:
        raise RunFailure("sandbox_blocked", "a child run cannot wait for a time or a person")
    under_way = session.memo.get(MEMO)
    if not isinstance(under_way, dict) or under_way.get("step") != session.steps:
        return _begin(session, node)
    return _sleep_on(session, under_way) if node.is_sleep else _at_gate(session, node, under_way)


def _begin(session: Session, node: Wait) -> Outcome:
    now = session.services.now_ms()
    fire_at = _fire_at(session, node, now) if node.is_sleep else now + node.timeout_ms if node.timeout_ms else None
    memo: dict[str, Json] = {"step": session.steps, "fireAt": fire_at}
    mode = "sleep" if node.is_sleep else "gate"
    waits: list[str] = []
    if not node.is_sleep:
        signal = _gate(session, node)
        session.raise_signal(signal)
        waits, memo["signal"] = [signal.id], signal.id
    session.memo[MEMO] = memo
    on_timeout = node.on_timeout if fire_at is not None and not node.is_sleep else None
    session.emit("wait.started", mode=mode, fireAt=fire_at, onTimeout=on_timeout, reason=node.reason)
    due = None if fire_at is None else max(0, fire_at - now)
    return Parked(Park("waiting", "timer" if node.is_sleep else "gate", waits, due_in_ms=due))


def _sleep_on(session: Session, memo: dict[str, Json]) -> Outcome:
    left = int(memo["fireAt"]) - session.services.now_ms()
    woken = session.record.resumed_by == "answer"
    if left > 0 and not woken:
        return Parked(Park("waiting", "timer", due_in_ms=left))
    return _go_on(session, {"timedOut": False}, by="answer" if woken else "timer", timed_out=False)


def _at_gate(session: Session, node: Wait, memo: dict[str, Json]) -> Outcome:
    signal = session.signals.get(str(memo.get("signal")))
    if signal is not None and signal.status == "answered":
        session.use(signal)
        return _go_on(session, None if signal.rejected else signal.answer, by="answer", timed_out=False)
    if signal is None or signal.status == "expired":
        raise RunFailure("signal_expired", "nobody opened the gate in time")
    fire_at = memo.get("fireAt")
    left = None if fire_at is None else int(fire_at) - session.services.now_ms()
    if left is None or left > 0:
        return Parked(Park("waiting", "gate", [signal.id], due_in_ms=left))
    if node.on_timeout == "interrupt":
        memo["fireAt"] = None
        return Parked(Park("needs_input", "signals", [signal.id]))
    if node.on_timeout == "fail":
        raise RunFailure("wait_timeout", f"nobody opened the gate within {node.timeout_ms} ms")
    session.close_signal(signal)
    return _go_on(session, {"timedOut": True}, by="timer", timed_out=True)


def _go_on(session: Session, resume: Json, *, by: str, timed_out: bool) -> Done:
    session.memo.pop(MEMO, None)
    session.remove("waitUntilMs")
    session.resume = resume
    session.emit("wait.ended", timedOut=timed_out, by=by)
    return Done(resumed=True, durable=True)


def _gate(session: Session, node: Wait) -> SignalRecord:
    return SignalRecord(
        id=new_id(),
        kind="gate",
        title=(node.reason or f"{session.agent.name} waits at a gate")[:120],
        node_id=session.node_id,
        reason=node.reason,
        schema=node.resume_schema,
        # A gate stands open for all of its own time; a person who is asked after it gets the usual time on top.
        life_ms=(node.timeout_ms or 0) + session.limits.signal_life_days * DAY_MS,
    )


def _fire_at(session: Session, node: Wait, now: int) -> int:
    if node.delay_ms is not None:
        return now + node.delay_ms
    try:
        value = expressions.compile(str(node.until_ms)).evaluate(session.slots())
    except ExpressionError as error:
        raise RunFailure(error.code, error.message) from None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise RunFailure("wait_mode", f"untilMs gives {value!r}, and has to be a finite number of milliseconds")
    return int(value)
