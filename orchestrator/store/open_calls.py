"""Calls of a thread's history that were left open: a run that was ended from outside closes none of them itself.

The next run of the thread reads on from here, and no model is asked over a call without a result (spec: engine 5.3).
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from orchestrator.records import Event
from orchestrator.store.tables import calls, messages, runs
from orchestrator.unknown import UNRUN
from registry.base import Json
from registry.errors import OfficinaError
from registry.jsontext import compact

#: Characters of such a result; a whole one was never written beside.
MOST_CHARS = 8_000


def close(connection: Connection, run_id: str) -> list[Event]:
    """Gives every open call of an ended run its result, or a stub; gives the lines.

    A call that ran, or may have, though its batch never reached the barrier, keeps what its row says.
    """
    run = connection.execute(select(runs).where(runs.c.id == run_id)).one()
    try:
        bodies = [(m.history, m.body) for m in connection.execute(_messages(run_id))]
    except (ValueError, OfficinaError):  # rows that nobody can read: what comes after it cannot either, and says so
        return []
    left = _open(bodies)
    known = {c.id: c for c in connection.execute(select(calls).where(calls.c.run_id == run_id, calls.c.id.in_(left)))}
    lines, rows = [], []
    for number, (call_id, (history, name)) in enumerate(left.items(), start=run.messages + 1):
        call = known.get(call_id)
        done = call is not None and call.status == "done"
        content = _content(call) if done and call is not None else UNRUN
        body: dict[str, Json] = {"role": "tool", "toolCallId": call_id, "name": name, "content": content}
        if done:
            body["outside"] = len(content)  # whatever it is, it is fenced as data
        rows.append({"run_id": run_id, "number": number, "history": history, "body": body})
        if not done:
            told = {"toolCallId": call_id, "name": name, "outcome": "skipped", "isError": False}
            told |= {"output": UNRUN, "durationMs": 0}
            lines.append(Event("tool.result", told, run.task_id, run_id, run.agent_id, run.node_id))
    if rows:
        connection.execute(insert(messages), rows)
        connection.execute(update(runs).where(runs.c.id == run_id).values(messages=run.messages + len(rows)))
    return lines


def _messages(run_id: str) -> Any:
    query = select(messages.c.history, messages.c.body).where(messages.c.run_id == run_id)
    return query.order_by(messages.c.number)


def _open(bodies: list[tuple[str, Mapping[str, Json]]]) -> dict[str, tuple[str, str]]:
    """Calls without a tool message, in order: id -> its history and the tool's name."""
    found: dict[str, tuple[str, str]] = {}
    for history, body in bodies:
        found |= {call["id"]: (history, call["name"]) for call in body.get("toolCalls") or []}
        found.pop(str(body.get("toolCallId")), None)
    return found


def _content(call: Row[Any]) -> str:
    result = (call.result or {}).get("result", "")
    text = result if isinstance(result, str) else compact(result)
    return text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}\n[... {len(text) - MOST_CHARS} more characters]"
