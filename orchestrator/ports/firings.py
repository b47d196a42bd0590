"""What became of a due time, for whoever looks back: what was said, which tools were called, errors."""

from typing import Any, Final

from sqlalchemy import Connection, Row, select

from orchestrator.store.kept import thread_runs
from orchestrator.store.tables import calls, messages, runs, tasks
from registry.base import Json
from registry.jsontext import compact

#: Characters of a text.
MOST: Final = 2_000
#: Names of tools, and texts of one firing.
TOOLS: Final = 50
TEXTS: Final = 10


def seen(connection: Connection, schedule: Row[Any], firing: Row[Any]) -> dict[str, Json]:
    """One firing: {dueAt, at, result, reason, runId, projectId, status, texts, tools, errors}."""
    told: dict[str, Json] = {
        "dueAt": firing.due_at,
        "at": firing.at,
        "result": firing.result,
        "reason": firing.reason,
        "runId": None,
        "projectId": firing.project_id,
        "status": None,
        "texts": [],
        "tools": [],
        "errors": [],
    }
    if firing.project_id is not None:
        return told | _of_project(connection, firing)
    run = _run(connection, schedule, firing)
    return told if run is None else told | {"runId": run.id, "status": run.status} | _of_runs(connection, [run])


def _run(connection: Connection, schedule: Row[Any], firing: Row[Any]) -> Row[Any] | None:
    """The run a firing began in its thread: at once, or when its message had waited its turn."""
    if firing.result not in ("fired", "queued"):
        return None
    query = (
        select(runs)
        .join(thread_runs, thread_runs.c.run_id == runs.c.id)
        .where(thread_runs.c.client_key == f"schedule:{schedule.id}:{firing.due_at}")
    )
    return connection.execute(query).first()


def _of_project(connection: Connection, firing: Row[Any]) -> dict[str, Json]:
    found = list(connection.execute(select(runs).where(runs.c.project_id == firing.project_id).order_by(runs.c.id)))
    done = select(tasks.c.output, tasks.c.error).where(tasks.c.project_id == firing.project_id)
    told = _of_runs(connection, found)
    ended = connection.execute(done.order_by(tasks.c.position)).all()
    told["texts"] = [_clip(row.output) for row in ended if row.output is not None][:TEXTS]
    return told | {"status": firing.project_status}


def _of_runs(connection: Connection, found: list[Row[Any]]) -> dict[str, Json]:
    ids = [run.id for run in found]
    said = select(messages.c.body).where(messages.c.run_id.in_(ids)).order_by(messages.c.run_id, messages.c.number)
    texts = [
        _clip(body["content"])
        for body in connection.execute(said).scalars()
        if body.get("role") == "assistant" and body.get("content") and body.get("kind") is None
    ]
    used = select(calls.c.name).where(calls.c.run_id.in_(ids)).order_by(calls.c.run_id, calls.c.step, calls.c.position)
    errors = [_clip(f"{run.error.get('code')}: {run.error.get('message')}") for run in found if run.error]
    return {
        "texts": texts[-TEXTS:],
        "tools": list(connection.execute(used.limit(TOOLS)).scalars()),
        "errors": errors[:TEXTS],
    }


def _clip(value: Json) -> str:
    text = value if isinstance(value, str) else compact(value)
    return text if len(text) <= MOST else text[: MOST - 1] + "…"


__all__ = ["seen"]
