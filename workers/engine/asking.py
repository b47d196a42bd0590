"""Questions a batch puts to a person: decisions about calls, questions of skills; and what the answers mean."""

from typing import Literal

from orchestrator.records import QUOTA, SignalRecord
from orchestrator.unknown import AGAIN
from registry.base import Json
from registry.ids import new_id
from registry.jsontext import digest
from registry.skills.registry import Pending, SkillResult
from workers.engine.calls import Call
from workers.engine.session import Session

DECISION: dict[str, Json] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}
DO_IT, NO = "Do it", "No"
TOO_MANY = "quota: too many calls of this project wait for a person already"

Verdict = Literal["open", "approved", "rejected", "expired", "answered"]


def decision(
    session: Session,
    call: Call,
    pending: Pending,
    *,
    again: bool = False,
    carry_on: bool = False,
    schema: dict[str, Json] | None = None,
) -> SignalRecord:
    """A decision about one exact call. The headline holds no word of the model's."""
    outside = " which acts outside Officina" if pending.operation == "world" else ""
    title = f"Something running for you wants to use {pending.skill}{',' if outside else ''}{outside}"
    reason = f"{session.agent.name} asks: {pending.reason}"
    if again:
        reason += f". {AGAIN}"
    return SignalRecord(
        id=new_id(),
        kind="decision",
        title=title,
        node_id=session.node_id,
        call_id=call.id,
        reason=reason,
        options=[{"id": DO_IT, "label": DO_IT}, {"id": NO, "label": NO}],
        action={"toolCallId": call.id} | pending.action,
        digest=pending.digest,
        schema=schema or DECISION,
        most_open=session.limits.open_decisions_per_project,
        carry_on=carry_on,
    )


def question(session: Session, call: Call, result: SkillResult) -> SignalRecord:
    """A question a skill asks before it can answer."""
    asked = result.question
    assert asked is not None
    return SignalRecord(
        id=new_id(),
        kind="question",
        title=asked.title,
        node_id=session.node_id,
        call_id=call.id,
        body=asked.prompt,
        options=list(asked.options),
        schema=asked.schema,
    )


def intact(signal: SignalRecord) -> bool:
    """Whether the action a person was shown is the one its digest was made of."""
    shown = signal.action or {}
    return digest({"skill": shown.get("skill"), "input": shown.get("input")}) == signal.digest


def verdict(signal: SignalRecord) -> Verdict:
    """What an answer means. Only a decision whose payload says approved is a yes; all else is none."""
    if signal.status == "open":
        return "open"
    if signal.kind == "question":
        return "answered"
    if signal.status != "answered":
        return "expired"
    said_yes = isinstance(signal.answer, dict) and signal.answer.get("approved") is True
    return "approved" if said_yes and not signal.rejected else "rejected"


def why_not(signal: SignalRecord) -> str:
    """The words a denied call brings back to the model."""
    if signal.answer == QUOTA:
        return TOO_MANY
    if verdict(signal) == "expired":
        return "denied: nobody answered in time"
    said = signal.answer.get("reason") if isinstance(signal.answer, dict) else None
    return "denied: a person said no" + (f": {said}" if said else " to this call; do not try it again")
