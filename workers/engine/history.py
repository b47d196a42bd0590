"""The tool-calls invariant: every call of an assistant message has its tool message before the model is asked again."""

from typing import TypeGuard

from orchestrator import unknown
from orchestrator.records import CallRecord
from orchestrator.unknown import UNRUN
from registry.base import Json
from workers.engine import results
from workers.engine.session import Session


def are_messages(value: Json) -> TypeGuard[list[dict[str, Json]]]:
    """Whether a value of the state can be a history: a definition or a carried state may put anything there."""
    return isinstance(value, list) and all(isinstance(m, dict) and isinstance(m.get("role"), str) for m in value)


def open_calls(messages: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """Calls of assistant messages that lack a tool message, in order."""
    answered = {m["toolCallId"] for m in messages if m["role"] == "tool"}
    return [c for m in messages for c in m.get("toolCalls") or [] if c["id"] not in answered]


def close_open_calls(session: Session) -> None:
    """Gives every open call a stub result, so that a thread can go on from this history."""
    for key in sorted(session.tools.history_keys):
        history = session.state.get(key)
        if not are_messages(history):
            continue
        for call in open_calls(history):
            known = session.calls.get(call["id"])
            if known is not None and known.status == "started":  # its line is written with the end of the run
                _answer(session, key, call, unknown.words(call["name"]))
            else:
                _stub(session, key, call, known if known is not None and known.status == "done" else None)


def _stub(session: Session, key: str, call: dict[str, Json], done: CallRecord | None) -> None:
    """A call that ran, though its batch never reached the barrier, keeps its own result."""
    if done is not None:
        session.append(results.message(session, done.result), history=key)
        return
    _answer(session, key, call, UNRUN)
    session.emit(
        "tool.result",
        toolCallId=call["id"],
        name=call["name"],
        outcome="skipped",
        isError=False,
        output=UNRUN,
        durationMs=0,
    )


def _answer(session: Session, key: str, call: dict[str, Json], content: str) -> None:
    session.append({"role": "tool", "toolCallId": call["id"], "name": call["name"], "content": content}, history=key)
