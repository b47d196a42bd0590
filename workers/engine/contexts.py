"""What one call of a batch may know and touch: the context the registry invokes it with."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

from orchestrator.records import FileRecord, RunRecord, SignalRecord
from registry.base import Json
from registry.graph.model import Generate, ToolCall
from registry.skills.context import NO_ANSWER, Caller, Colleague, SkillContext
from registry.skills.registry import Checked
from workers.engine import budget, documents, shelf
from workers.engine.calls import Call
from workers.engine.control import QueueKeys
from workers.engine.inner import RunModel, RunPainter
from workers.engine.services import Services
from workers.engine.session import Session
from workers.engine.toolhooks import ToolHooks


def allowed(session: Session, node: ToolCall) -> frozenset[str]:
    """Calls of the model may use what the answering node offered; hand-written calls any tool of the run set."""
    if not node.answers_model:
        return session.tools.names
    return session.tools.offered(_answering(session, node), shelf.loaded_when_asked(session))


def _answering(session: Session, node: ToolCall) -> Generate | None:
    """The node whose model call is being answered; None when the calls are the graph's own."""
    if not node.answers_model:
        return None
    reference = session.output_ref
    answered = reference.get("node") if isinstance(reference, dict) else None
    answering = session.graph.nodes.get(str(answered))
    return answering if isinstance(answering, Generate) else None


def of_call(
    session: Session,
    call: Call,
    signal: SignalRecord | None,
    *,
    node: ToolCall,
    allowed: frozenset[str],
    hooks: ToolHooks,
    begin: Callable[[Checked], None],
) -> SkillContext:
    """The context of a call.

    Args:
        signal: the question that was answered before it runs, if one was.
        node: whose batch it is in.
        begin: told right before the call runs.
    """
    record = session.record
    asked = signal is not None and signal.kind == "question"
    return SkillContext(
        caller=_caller(session, call),
        policy=session.policy,
        specs=session.tools.specs,
        allowed=allowed,
        llm=RunModel(session, call.id),
        images=RunPainter(session, call.id),
        control=QueueKeys(session),
        documents=documents.RunDocuments(session),
        shelf=shelf.RunShelf(session, _answering(session, node)),
        agent=session.agent,
        roster=Roster(session.services, record, session.agent.id),
        rehearsal=record.rehearsal,
        time_left=budget.time_left(session),
        answer=_payload(signal) if asked and signal else NO_ANSWER,
        cancelled=session.stopped.is_set,
        now_ms=session.services.now_ms,
        emit=lambda kind, data: _emit(session, kind, data),
        revise=lambda checked: hooks.revise(call, checked),
        review=lambda checked, result: hooks.review(call, checked, result),
        begin=begin,
        **session.services.ports(record),
    )


def of_notes(session: Session) -> SkillContext:
    """The context in which a pack says what the agent should know at a model call; it writes nothing."""
    return SkillContext(
        caller=_caller(session, None),
        policy=session.policy,
        specs=session.tools.specs,
        cancelled=session.stopped.is_set,
        now_ms=session.services.now_ms,
        **session.services.ports(session.record),
    )


def _caller(session: Session, call: Call | None) -> Caller:
    record = session.record
    return Caller(
        kind="run",
        owner_id=record.owner_id,
        project_id=record.project_id,
        thread_id=record.thread_id,
        task_id=record.task.id if record.task else None,
        run_id=record.id,
        agent_id=session.agent.id,
        agent_name=session.agent.name,
        being_id=session.agent.being_id,
        call_id=call.id if call else None,
        tier=session.agent.tier,
    )


def _emit(session: Session, kind: str, data: dict[str, Json]) -> None:
    session.emit(kind, **data)
    if kind == "file.written":
        session.keep_file(FileRecord(data["path"], data["bytes"], data["sha256"], data.get("skill")))
        session.memo["wrote"] = True


def _payload(signal: SignalRecord) -> Json:
    """The answer a question got; a rejection and an expiry are both none."""
    return None if signal.rejected or signal.status != "answered" else signal.answer


class Roster(Sequence[Colleague]):
    """The agents at hand for one of them, looked up when a call asks for them: most never do."""

    def __init__(self, services: Services, record: RunRecord, agent_id: str) -> None:
        self._services, self._record, self._agent_id = services, record, agent_id

    @cached_property
    def _all(self) -> list[Colleague]:
        services, found = self._services, []
        for target in services.targets(self._record):
            if target.level == "delegate" and target.delegate_of != self._agent_id:
                continue
            d = target.definition
            packs = tuple(name for name, on in (d.get("packs") or {}).items() if on not in (False, None))
            faults = partial(services.check_definition, d, self._record)
            found.append(Colleague(target, d.get("role"), packs, tuple(d.get("skills") or ()), faults))
        return found

    def __getitem__(self, index: Any) -> Any:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)
