"""How a run ends: completed with an output, failed with a code, cancelled with a reason. One transaction each."""

import random

from orchestrator.records import Checkpoint, Ending, Event, RunRecord
from registry.base import Json
from registry.errors import RunFailure
from registry.jsontext import compact
from workers.engine import hooks
from workers.engine.history import close_open_calls
from workers.engine.services import Services
from workers.engine.session import Session, clip

#: Reason -> what a person is told of a task whose last words are not whole.
CUT_SHORT = {
    "length": "its last answer was cut off by the length limit",
    "content-filter": "its last answer was cut off by the model's content filter",
}


def complete(session: Session, output: Json) -> None:
    """Ends the run as completed.

    Raises:
        RunFailure: `empty_output` of a team agent that said nothing and wrote nothing.
    """
    value = _task_output(session, output)
    missing = _missing_deliverables(session)
    wrote = session.memo.get("wrote") or len(missing) < len(_deliverables(session))
    if session.is_team_run and not _says_something(value) and not wrote:
        raise RunFailure("empty_output", "the agent ended without an answer and without a file")
    close_open_calls(session)
    hooks.ended(session, "completed")
    session.emit("output", output=output, text=clip(value if isinstance(value, str) else compact(value), 16_000))
    session.emit(
        "run.completed",
        steps=session.steps,
        tokens=session.tokens,
        costUsd=session.spent_micro / 1_000_000,
        costIncomplete=True if session.cost_incomplete else None,
    )
    if session.is_child:
        _tell_parent(session, error=None)
    odd = [f"deliverables not found: {', '.join(missing)}"] if missing else []
    odd += [CUT_SHORT[output["finishReason"]]] if _cut_short(output) else []
    session.final, session.brought = output, _result(session, output, None)
    session.save(ending=Ending("completed", output=value, note="; ".join(odd) or None, result=session.brought))
    session.status = "completed"


def fail(session: Session, failure: RunFailure) -> None:
    """Ends the run as failed; the event names code, message and node."""
    close_open_calls(session)
    if failure.code != "poison":  # what took its workers down may have been a hook
        hooks.ended(session, "failed", code=failure.code)
    session.emit("run.failed", code=failure.code, message=failure.message, **failure.data)
    error = {"code": failure.code, "message": failure.message, "node": session.node_id, **failure.data}
    brief: dict[str, Json] = {"code": failure.code, "message": failure.message}
    if session.is_child:
        _tell_parent(session, error=brief)
    session.brought = _result(session, None, brief)
    # Tasks that failed together, because a model was away, do not come back all at once.
    backoff_ms = round(session.limits.retry_backoff_s * random.uniform(750, 1250))
    session.save(ending=Ending("failed", error=error, result=session.brought, backoff_ms=backoff_ms))
    session.status, session.code = "failed", failure.code


def cancel(session: Session, reason: str, *, code: str | None = None) -> None:
    """Ends the run as cancelled by a person's answer."""
    close_open_calls(session)
    hooks.ended(session, "cancelled", code=code)
    session.emit("run.cancelled", reason=reason, code=code)
    session.save(ending=Ending("cancelled", error={"code": code or "cancelled", "message": reason}))
    session.status, session.code = "cancelled", code


def refuse(record: RunRecord, services: Services, message: str) -> None:
    """Fails a run whose definition cannot even be read, at 0 steps."""
    data: dict[str, Json] = {"code": "agent_invalid", "message": message[:4000]}
    brought: dict[str, Json] | None = {"output": None, "error": data} if record.parent_id else None
    services.journal.save(
        Checkpoint(
            record.id,
            record.fence,
            trace_id=record.project_id or "",
            owner_id=record.owner_id,
            events=[Event("run.failed", data, record.task.id if record.task else None, record.id, record.agent_id)],
            ending=Ending("failed", error=data, result=brought),
        )
    )


def abandon(run_id: str, fence: int, services: Services, failure: RunFailure) -> None:
    """Fails a claimed run of which nothing can be read: its rows are not as this release writes them."""
    error: dict[str, Json] = {"code": failure.code, "message": failure.message, **failure.data}
    services.journal.save(
        Checkpoint(
            run_id,
            fence,
            events=[Event("run.failed", error, run_id=run_id)],
            ending=Ending("failed", error=error, result={"output": None, "error": error}),
        )
    )


def _task_output(session: Session, output: Json) -> Json:
    """A task's output is its run's text, or its JSON when the graph ends with a value."""
    if isinstance(output, dict) and output.get("role") == "assistant" and "content" in output:
        return output["content"]
    return output


def _cut_short(output: Json) -> bool:
    return isinstance(output, dict) and output.get("role") == "assistant" and output.get("finishReason") in CUT_SHORT


def _says_something(value: Json) -> bool:
    return bool(value.strip()) if isinstance(value, str) else value is not None


def _deliverables(session: Session) -> list[str]:
    return session.record.task.deliverables if session.record.task and not session.is_child else []


def _missing_deliverables(session: Session) -> list[str]:
    workspace = session.services.workspace(session.record)
    if workspace is None:
        return []
    return [path for path in _deliverables(session) if not workspace.exists(path)]


def _result(session: Session, output: Json, error: dict[str, Json] | None) -> dict[str, Json] | None:
    """What a child brings its parent."""
    if not session.is_child:
        return None
    brought: dict[str, Json] = {"output": output}
    if error is not None:
        brought["error"] = error
    if session.memo.get("blocked"):
        brought["blocked"] = session.memo["blocked"]
    if session.spent_budget is not None:
        brought["budget"] = session.spent_budget
    return brought


def _tell_parent(session: Session, *, error: dict[str, Json] | None) -> None:
    """The child's own line of the fan-out, in the transaction that ends it."""
    extra = error or {}
    if session.record.kind == "item":
        kind = "map.item.failed" if error else "map.item.completed"
        session.emit(kind, index=session.record.position, **extra)
        return
    kind = "agent.failed" if error else "agent.completed"
    session.emit(
        kind,
        agentId=session.agent.id,
        spawnId=session.record.id,
        index=session.record.position,
        budget=session.spent_budget,
        **extra,
    )
