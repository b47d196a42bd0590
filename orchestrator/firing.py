"""Schedules that are due: each is moved on in the transaction that begins its work (spec: skills 19, engine 20).

One with a thread says its text there, where it waits in the queue when the thread is busy. Others start a project each
time, and leave out a time at which the last one still works.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, Row, insert
from sqlalchemy.exc import DataError, SQLAlchemyError

from orchestrator import crashpoints, desk, events, queue, starting
from orchestrator.records import Event, Wake
from orchestrator.settings import Settings
from orchestrator.starting import Cause, Gone
from orchestrator.states import PROJECT_ENDED
from orchestrator.store import events as trace
from orchestrator.store import schedules, sends
from orchestrator.store.database import Database, now_ms
from orchestrator.store.tables import signals
from registry.base import Json
from registry.errors import OfficinaError, Refused, Unavailable
from registry.ids import new_id

log = logging.getLogger(__name__)

#: Failed runs or projects in a row after which a schedule rests.
FAILURES: Final = 5


@dataclass
class Fired:
    """What became of a schedule that was due."""

    count: int = 0
    #: (project id, title)
    projects: list[tuple[str, str]] = field(default_factory=list)
    #: Threads that have something new.
    threads: list[str] = field(default_factory=list)
    wakes: list[Wake] = field(default_factory=list)
    #: (owner, id of an alert)
    alerts: list[tuple[str, str]] = field(default_factory=list)


def fire_due(settings: Settings, database: Database, limit: int) -> int:
    """Fires what is due, each schedule in a transaction of its own; returns how many were moved on."""
    with database.read() as connection:
        rows = schedules.due(connection, limit)
    moved = 0
    for row in rows:
        fired = _fired(settings, database, row)
        moved += fired.count
        if fired.projects or fired.wakes:
            crashpoints.reached("fired")
        for project_id, title in fired.projects:
            queue.advance(settings, project_id, title)
            events.publish(settings, project_id, 0)
        queue.send(settings, fired.wakes)
        for thread_id in fired.threads:
            events.publish(settings, thread_id, 0)
        for owner_id, signal_id in fired.alerts:
            desk.changed(settings, owner_id, [signal_id])
    return moved


def _fired(settings: Settings, database: Database, row: Row[Any]) -> Fired:
    """What became of one; a fault of ours moves it on as well, so that it keeps no other from its time."""
    try:
        return database.write(lambda c: _fire(c, settings, row))
    except Exception as error:
        # What no database keeps it will not keep next time either; any other fault of it says nothing of the schedule.
        if isinstance(error, (Unavailable, SQLAlchemyError)) and not isinstance(error, DataError):
            log.warning("the schedule %s could not be fired yet", row.id, exc_info=True)
            return Fired()  # it stays due
        log.exception("the schedule %s could not be fired", row.id)
        words = error.message if isinstance(error, OfficinaError) else "a fault on our side; the log has it"
        return database.write(lambda c: _stumble(c, row, words))


def _fire(connection: Connection, settings: Settings, row: Row[Any]) -> Fired:
    following = schedules.rule(row).next_time(row.now)
    late = row.now - row.next_run_at
    in_time = late <= settings.limits.late_schedule_s * 1000
    runs_left = None if row.max_runs is None else row.max_runs - row.runs
    history = schedules.latest(connection, row.id, FAILURES)
    busy = in_time and row.thread_id is None and _busy(history)
    last = in_time and not busy and runs_left is not None and runs_left <= 1
    if not schedules.claim(connection, row, None if last else following):
        return Fired()
    if not in_time:
        schedules.record(connection, row, "missed", reason=f"found {late // 60_000} minutes late")
        return Fired(1)
    if busy:
        schedules.record(connection, row, "skipped", reason="the project of the last time still works")
        return Fired(1)
    if _fails(connection, row, history):
        return _rest(connection, row, "paused", f"it failed {FAILURES} times in a row")
    try:
        return _say(connection, settings, row) if row.thread_id is not None else _start(connection, settings, row, late)
    except Gone as gone:
        return _rest(connection, row, "failed", str(gone))


def _say(connection: Connection, settings: Settings, row: Row[Any]) -> Fired:
    """Says the text of a schedule in its thread.

    Raises:
        Gone: the thread was deleted, or nobody speaks in it any more.
    """
    text = str(row.action.get("text") or "")
    if not text.strip():
        schedules.record(connection, row, "empty", reason="it has nothing to say")
        return Fired(1)
    message = sends.Message(
        text,
        origin="schedule",
        source_id=row.id,
        client_key=f"schedule:{row.id}:{row.next_run_at}",
        mode=row.mode,
        history=row.history or "none",
        history_last=row.history_last,
    )
    try:
        sent = sends.trigger(connection, row.thread_id, message, most=settings.limits.pending_triggers)
    except Refused as refused:
        raise Gone(refused.message) from None
    if sent.dropped:
        schedules.record(connection, row, "dropped", reason="its thread is busy and has no room for it")
    else:
        schedules.record(connection, row, "queued" if sent.queued else "fired", run_id=sent.run_id)
    return Fired(1, threads=[row.thread_id], wakes=list(sent.wakes))


def _start(connection: Connection, settings: Settings, row: Row[Any], late: int) -> Fired:
    """Raises:
    Gone: what it would start is not there any more.
    """
    cause = Cause(
        owner_id=row.owner_id,
        key=f"schedule:{row.id}:{row.next_run_at}",
        title=row.title,
        action=row.action,
        agent_id=row.agent_id,
        mode=row.mode,
        maker=row.maker,
    )
    project_id = starting.start(connection, settings, cause)
    schedules.record(connection, row, "fired", project_id=project_id)
    told: dict[str, Json] = {"scheduleId": row.id, "title": row.title, "dueAt": row.next_run_at, "lateMs": late}
    trace.append(connection, project_id, [Event("schedule.fired", told)])
    return Fired(1, [(project_id, row.title)])


def _busy(history: Sequence[Row[Any]]) -> bool:
    """Whether the last project it started still works; one that is gone does not."""
    last = next((one for one in history if one.result == "fired"), None)
    return last is not None and last.project_status is not None and last.project_status not in PROJECT_ENDED


def _fails(connection: Connection, row: Row[Any], history: Sequence[Row[Any]]) -> bool:
    """Whether it failed too often running since somebody last looked at it."""
    if row.thread_id is None:
        return len(history) == FAILURES and all(one.project_status == "failed" for one in history)
    runs = sends.of_source(connection, row.id, FAILURES)
    since = row.watched_from or 0
    return len(runs) == FAILURES and all(run.status == "failed" and run.created_at >= since for run in runs)


def _stumble(connection: Connection, row: Row[Any], words: str) -> Fired:
    """Moves on a schedule that could not be fired, and stops it when that happened too often running, or when it has
    no other time."""
    try:
        following = schedules.rule(row).next_time(row.now)
    except Exception:  # what it says about its times cannot be read
        following = None
    history = schedules.latest(connection, row.id, FAILURES - 1)
    hopeless = following is None or (len(history) == FAILURES - 1 and all(one.result == "failed" for one in history))
    if not schedules.claim(connection, row, following):
        return Fired()
    if hopeless:
        return _rest(connection, row, "failed", f"it could not be fired: {words}", result="failed")
    schedules.record(connection, row, "failed", reason=words[:500])
    return Fired(1)


def _rest(connection: Connection, row: Row[Any], status: str, why: str, *, result: str = "skipped") -> Fired:
    """Stops a schedule and tells its owner."""
    schedules.record(connection, row, result, reason=why[:500])
    schedules.stop(connection, row.id, status, why[:500])
    alert = {
        "id": new_id(),
        "owner_id": row.owner_id,
        "kind": "alert",
        "status": "open",
        "title": f'The schedule "{row.title}" is {status}'[:120],
        "body": f"{why[:1].upper()}{why[1:]}. It does not run until somebody looks at it.",
        "options": [],
        "priority": "high",
        "schema": {"type": "object"},
        "created_at": now_ms(),
    }
    connection.execute(insert(signals).values(alert))
    return Fired(1, alerts=[(row.owner_id, alert["id"])])


__all__ = ["fire_due"]
