"""The last checkpoint of a run: closes its task, frees or skips dependents, closes the project when nothing is left.

One transaction, locks in the order of the design: project, task, run, signal, event counter.
"""

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, select, update

from orchestrator.records import Checkpoint, Ending, Event, Wake
from orchestrator.states import PROJECT_ENDED
from orchestrator.store import (
    checkpoints,
    completions,
    joins,
    money,
    open_calls,
    plans,
    runs,
    sends,
    signals,
    threads,
    wakes,
)
from orchestrator.store.database import now_ms
from orchestrator.store.tables import dependencies, projects, tasks
from orchestrator.store.tables import runs as runs_table
from registry import masking
from registry.errors import LeaseStale

#: Failures a new root run may get past (spec: skills 13.2); of `budget_exceeded` only the turn limit.
RETRYABLE = frozenset({"model_failed", "loop_detected", "empty_output"})
#: Milliseconds between two root runs of a task at most; the wait doubles with each attempt.
MOST_BACKOFF_MS = 300_000
LOST = "the run was taken over or cancelled before it could end"


def end(connection: Connection, checkpoint: Checkpoint) -> list[Wake]:
    """Writes the last checkpoint of a run; returns the wake-ups to send after the commit.

    Raises:
        LeaseStale: the run is not this worker's any more; nothing is written.
    """
    assert checkpoint.ending is not None
    ending = replace(checkpoint.ending, error=masking.mask(checkpoint.ending.error))
    found: Row[Any] = connection.execute(  # type: ignore[assignment]
        select(runs_table.c.project_id, runs_table.c.task_id, runs_table.c.kind, runs_table.c.parent_id).where(
            runs_table.c.id == checkpoint.run_id
        )
    ).one()
    if found.parent_id is not None:
        ((_, ready),) = joins.end(connection, [checkpoint])
        if ready is None:
            raise LeaseStale(LOST)
        return ready
    if found.kind == "root" and found.task_id is not None and ending.status == "completed":
        (done,) = completions.end(connection, [checkpoint])
        if done is None:
            raise LeaseStale(LOST)
        return done
    project = connection.execute(
        select(projects).where(projects.c.id == found.project_id).with_for_update(key_share=True)
    ).one()
    task = None
    if found.task_id is not None and found.kind == "root":
        task = connection.execute(
            select(tasks).where(tasks.c.id == found.task_id).with_for_update(key_share=True)
        ).one()
    if not checkpoints.move(connection, checkpoint, joins.ended(ending), checkpoints.ENDED_NOW):
        raise LeaseStale(LOST)
    checkpoints.append(connection, [checkpoint])
    money.release(connection, [checkpoint.run_id])
    lines = joins.left_open(connection, checkpoint) + signals.close_of_run(connection, [checkpoint.run_id])
    if task is not None and project.status not in PROJECT_ENDED:
        lines += _close(connection, project, task, checkpoint, ending)
    elif found.kind == "plan" and project.status not in PROJECT_ENDED:
        _spent(connection, project, checkpoint.run_id)
        lines += plans.planned(connection, project, ending)
    elif found.kind in threads.RUN_KINDS and project.status not in PROJECT_ENDED:
        _spent(connection, project, checkpoint.run_id)
        if checkpoint.number is None:  # nobody could read it, so nobody closed its calls
            lines += open_calls.close(connection, checkpoint.run_id)
        lines += sends.ended(connection, project, checkpoint.run_id)
    ready = wakes.take(connection, project.id) if project.status not in PROJECT_ENDED else []
    checkpoints.seal(connection, [checkpoint], {checkpoint.run_id: lines}, {checkpoint.run_id: found.project_id})
    return ready


def _close(
    connection: Connection, project: Row[Any], task: Row[Any], checkpoint: Checkpoint, ending: Ending
) -> list[Event]:
    spent = _spent(connection, project, checkpoint.run_id)
    cost = {
        "cost_micro": tasks.c.cost_micro + spent.cost_micro,
        "cost_incomplete": task.cost_incomplete or spent.cost_incomplete,
        "attempt": task.attempt + 1,
    }
    if ending.status == "failed" and task.attempt < task.retries and _may_pass(ending.error or {}):
        return _retry(connection, project, task, ending, cost)
    lines = [_task_closed(connection, task, ending, cost, spent.cost_micro)]
    lines += (skipped := _skip(connection, task, ending))
    return lines + completions.close_project(connection, project, closed=1 + len(skipped), completed=0)


def _spent(connection: Connection, project: Row[Any], run_id: str) -> Row[Any]:
    """Adds what a run cost to its project; returns it."""
    query = select(runs_table.c.cost_micro, runs_table.c.cost_incomplete).where(runs_table.c.id == run_id)
    spent: Row[Any] = connection.execute(query).one()  # type: ignore[assignment]
    values = {
        "cost_micro": projects.c.cost_micro + spent.cost_micro,
        "cost_incomplete": project.cost_incomplete or spent.cost_incomplete,
    }
    connection.execute(update(projects).where(projects.c.id == project.id).values(values))
    return spent


def _may_pass(error: dict[str, Any]) -> bool:
    return error.get("code") in RETRYABLE or (error.get("code") == "budget_exceeded" and error.get("kind") == "turns")


def _retry(
    connection: Connection, project: Row[Any], task: Row[Any], ending: Ending, cost: dict[str, Any]
) -> list[Event]:
    """The task's next root run: a row that waits out its back-off, and no worker with it."""
    code = (ending.error or {}).get("code")
    wait_ms = min(ending.backoff_ms * 2**task.attempt, MOST_BACKOFF_MS)
    status = "waiting" if wait_ms else "queued"
    values = cost | {"status": status, "error": ending.error}
    again = connection.execute(update(tasks).where(tasks.c.id == task.id).values(values).returning(tasks)).one()
    if wait_ms:
        runs.make_later(connection, again, project, wait_ms)
    else:
        runs.make_roots(connection, [again], project)
    reason = f"tried again after {code}" + (f", in {wait_ms / 1000:.0f} s" if wait_ms else "")
    return [_status("task.status", status, task.status, task_id=task.id, reason=reason)]


def _task_closed(connection: Connection, task: Row[Any], ending: Ending, cost: dict[str, Any], spent: int) -> Event:
    error = ending.error or {}
    reason = f"{error['code']}: {error['message']}" if error else ending.note
    values = cost | {
        "status": ending.status,
        "output": ending.output,
        "error": ending.error,
        "reason": reason,
        "ended_at": now_ms(),
    }
    connection.execute(update(tasks).where(tasks.c.id == task.id).values(values))
    line = _status("task.status", ending.status, task.status, task_id=task.id, reason=reason)
    line.data["costUsd"] = (task.cost_micro + spent) / 1_000_000
    return line


def _skip(connection: Connection, task: Row[Any], ending: Ending) -> list[Event]:
    """Skips everything that depends on a task that did not complete, however far away."""
    code = (ending.error or {}).get("code")
    word = f"{ending.status} ({code})" if code else ending.status
    reach = select(dependencies.c.task_id).where(dependencies.c.depends_on_id == task.id).cte(recursive=True)
    further = select(dependencies.c.task_id).where(dependencies.c.depends_on_id == reach.c.task_id)
    below = reach.union(further)
    reason = f"it depends on {task.key!r}, which {word}"
    moved = (
        update(tasks)
        .where(tasks.c.id.in_(select(below.c.task_id)), tasks.c.status == "pending")
        .values(status="skipped", reason=reason, ended_at=now_ms())
        .returning(tasks.c.id, tasks.c.position)
    )
    rows = sorted(connection.execute(moved).all(), key=lambda t: t.position)
    return [_status("task.status", "skipped", "pending", task_id=row.id, reason=reason) for row in rows]


def _status(kind: str, status: str, before: str, *, task_id: str | None = None, reason: str | None = None) -> Event:
    data: dict[str, Any] = {"status": status, "from": before}
    if reason:
        data["reason"] = reason
    return Event(kind, data, task_id=task_id)
