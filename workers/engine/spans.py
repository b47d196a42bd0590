"""A run as spans: a leg for each stretch of work of one speaker, tools inside of it, and the waits between legs.

Names and attributes follow the GenAI conventions of OpenTelemetry where they have a word; ours begin with `officina.`
(docs/observability.md lists them). No text of a model, a person or a tool is in them unless that is switched on.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from orchestrator import tracing
from orchestrator.records import RunRecord, SignalRecord, wall_ms
from registry import masking
from registry.base import Json
from registry.jsontext import compact
from registry.skills.registry import SkillResult
from registry.skills.skill import Skill

if TYPE_CHECKING:
    from registry.agents import AgentDefinition
    from workers.calling import Call
    from workers.engine.session import Session

#: Where a run remembers its legs: {parent, leg}, each a `traceparent`.
MEMO = "trace"
#: Stands for the name of a tool that is none: whoever made it up may have written anything.
UNKNOWN = "unknown"
#: Characters of an input or output that a span shows at most.
SHOWN = 16_000


class Leg:
    """The stretch of a run that is under way; of nothing, where traces are off."""

    def __init__(self) -> None:
        self.span = tracing.NOTHING
        #: The leg before this one, which parked, handed over or died.
        self.before: str | None = None
        self._open = ExitStack()

    @property
    def context(self) -> str | None:
        return self.span.context

    @contextmanager
    def carried(self, session: "Session") -> Iterator[None]:
        """Around a worker's part in a run, from its claim until it parks, ends or is lost."""
        if not tracing.on():
            yield
            return
        kept = session.memo.get(MEMO)
        known: dict[str, Json] = kept if isinstance(kept, dict) else {}
        self.before = known.get("leg")
        why = session.record.resumed_by or ("lease" if self.before else None)
        self._begin(session, session.agent, known.get("parent"), why)
        try:
            yield
        finally:
            self._end(session)

    def hand_over(self, session: "Session", target: "AgentDefinition") -> None:
        """The speaker changes: one leg ends, with the handoff as its last span, and the next begins."""
        if self.context is None:
            return
        facts = {"officina.handoff.from": session.agent.id, "officina.handoff.to": target.id}
        with tracing.span(f"handoff {target.name}", parent=self.context, attributes=facts):
            pass
        self.before = self.context
        self.span.say({"officina.run.status": "handed_over"} | _counters(session))
        self._open.close()
        self._begin(session, target, session.memo[MEMO]["parent"], "handoff")

    def _begin(self, session: "Session", agent: "AgentDefinition", parent: str | None, why: str | None) -> None:
        record = session.record
        parent = parent or record.trace_parent
        made = tracing.span(
            f"invoke_agent {agent.name}",
            parent=parent,
            links={self.before: why or "before"} if self.before else None,
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.id": agent.id,
                "gen_ai.agent.name": agent.name,
                "gen_ai.conversation.id": record.thread_id,
                "officina.resumed_by": why,
                **_whose(record),
            },
        )
        self.span = self._open.enter_context(made)
        if self.context is not None:
            # A run that nobody traced before hangs under its own first leg.
            session.memo[MEMO] = {"parent": parent or self.context, "leg": self.context}

    def _end(self, session: "Session") -> None:
        if self.span.recording:
            waits = session.parked.waiting_on if session.parked else None
            self.span.say({"officina.run.status": _status(session), "officina.park.on": waits} | _counters(session))
            if session.status == "failed":
                self.span.fail(session.code or "failed")
        self._open.close()
        self.span = tracing.NOTHING


def left_at(record: RunRecord) -> str | None:
    """The leg in which a run is, or was last; None: nobody traced it."""
    kept = record.memo.get(MEMO)
    leg = kept.get("leg") if isinstance(kept, dict) else None
    return leg if isinstance(leg, str) else record.trace_parent


def executed(
    session: "Session",
    skill: Skill | None,
    *,
    call_id: str,
    given: Json,
    work: Callable[[], SkillResult],
) -> SkillResult:
    """The result of a tool, in its span; threads of a batch hang theirs under the run's leg."""
    if session.leg.context is None:
        return work()
    name = skill.name if skill else UNKNOWN
    with tracing.span(f"execute_tool {name}", parent=session.leg.context) as span:
        if span.recording:
            span.say(_of_tool(name, skill, call_id, given))
        return _done(span, work())


def acted(record: RunRecord | None, row: Any, parent: str | None, work: Callable[[], SkillResult]) -> SkillResult:
    """The result of an action that ran outside of its run, after a person's yes; both are spans of the asking run.

    Args:
        row: its signal.
        parent: where these spans hang.
    """
    name = row.action["skill"]
    if row.answered_at is not None:
        tracing.past("approval", row.created_at, row.answered_at, parent=parent, attributes=_asked(row, "approved"))
    with tracing.span(f"execute_tool {name}", parent=parent) as span:
        if span.recording:
            whose = _whose(record) if record is not None else {"officina.project.id": row.project_id}
            span.say(_of_tool(name, None, row.call_id, row.action["input"]) | whose | {"officina.signal.id": row.id})
        return _done(span, work())


def called(wanted: "Call", skill: Skill | None, work: Callable[[], SkillResult]) -> SkillResult:
    """The result of a call outside of any run, by a person or a program."""
    name = skill.name if skill else UNKNOWN
    with tracing.span(f"execute_tool {name}", parent=wanted.trace_parent) as span:
        if span.recording:
            whose = {"officina.project.id": wanted.project.id if wanted.project else None}
            span.say(_of_tool(name, skill, wanted.id, wanted.arguments) | whose)
        return _done(span, work())


def answered(session: "Session", signal: SignalRecord) -> None:
    """A question to a person, from the asking to the answer; it hangs under the leg that asked."""
    if session.leg.context is None or signal.asked_at is None:
        return
    said = "rejected" if signal.rejected and signal.status == "answered" else signal.status
    if signal.kind == "decision" and said == "answered":
        said = "approved"
    name = "approval" if signal.kind == "decision" else f"ask {signal.kind}"
    parent = session.leg.before or session.leg.context
    facts = _asked(signal, said) | _whose(session.record)
    tracing.past(name, signal.asked_at, signal.answered_at, parent=parent, attributes=facts)


def fanned_out(session: "Session", memo: Json) -> None:
    """A fan-out, from the making of its children until their results are taken."""
    if session.leg.context is None or not isinstance(memo, dict) or "wallMs" not in memo or not session.children:
        return
    kind = "map" if session.children[0].kind == "item" else "spawn"
    facts = {
        "officina.fanout.kind": kind,
        "officina.fanout.children": len(session.children),
        "officina.fanout.failed": sum(child.status != "completed" for child in session.children),
    }
    parent = memo.get("span") or session.leg.context
    tracing.past(kind, memo["wallMs"], wall_ms(), parent=parent, attributes=facts | _whose(session.record))


def _whose(record: RunRecord) -> dict[str, Any]:
    task = record.task
    return {
        "officina.project.id": record.project_id,
        "officina.run.id": record.id,
        "officina.run.kind": record.kind,
        "officina.run.attempt": record.attempt,
        "officina.parent_run.id": record.parent_id,
        "officina.task.id": task.id if task else None,
        "officina.task.key": task.key if task else None,
        "officina.task.role": task.role if task else None,
    }


def _status(session: "Session") -> str:
    if session.status != "running":
        return session.status
    return "released" if session.leave.is_set() and not session.stopped.is_set() else "lost"


def _counters(session: "Session") -> dict[str, Any]:
    """How far the run has come, over all of its legs."""
    return {
        "officina.run.steps": session.steps,
        "officina.run.tokens": session.tokens,
        "officina.run.cost_usd": session.spent_micro / 1_000_000,
    }


def _asked(signal: Any, said: str) -> dict[str, Any]:
    return {
        "officina.signal.id": signal.id,
        "officina.signal.kind": signal.kind,
        "officina.signal.answer": said,
        "officina.signal.skill": (signal.action or {}).get("skill"),
    }


def _of_tool(name: str, skill: Skill | None, call_id: str | None, given: Json) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.description": skill.description[:1_000] if skill else None,
        "gen_ai.tool.call.arguments": _shown(given) if tracing.shows_content() else None,
    }


def _done(span: tracing.Span, result: SkillResult) -> SkillResult:
    if span.recording:
        outcome = "ok" if result.ok else (result.code or "failed")
        shown = _shown(result.output) if result.ok and tracing.shows_content() else None
        span.say({"officina.tool.outcome": outcome, "gen_ai.tool.call.result": shown})
        if not result.ok and result.code != "approval_required":
            span.fail(outcome)
    return result


def _shown(value: Json) -> str:
    return compact(masking.mask(value))[:SHOWN]
