"""Moves of a conversation: a message begins a run, a run that ends frees its thread for what waits (spec: engine 20).

| a message of | free thread | busy | busy, queue full |
|---|---|---|---|
| a person | begins a run | refused: `thread_busy`, or `pending_signal` when its run waits for a person | the same |
| a schedule | begins a run | into the queue, once for each schedule | dropped |
| a webhook | begins a run | into the queue | refused: `queue_full` |

Each is one transaction under the lock of the thread's project. The history is never copied: a run says with which run
of its thread its own begins, and whoever loads it reads on from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from orchestrator.records import Event, Wake
from orchestrator.store import agents, beginnings, events, money, open_calls, projects, runs, signals, threads, wakes
from orchestrator.store.database import now_ms
from orchestrator.store.sql import upsert
from orchestrator.store.tables import files
from orchestrator.store.tables import runs as runs_table
from orchestrator.store.thread_tables import thread_runs, triggers
from orchestrator.store.thread_tables import threads as threads_table
from registry.base import Json
from registry.errors import Refused
from registry.ids import new_id

Origin = Literal["person", "schedule", "webhook"]
History = Literal["none", "last", "all"]
#: What the trace says when the message of a schedule or a webhook becomes a run.
FIRED: Final[Mapping[str, str]] = {"schedule": "schedule.fired", "webhook": "webhook.received"}
#: Messages that wait in front of a busy thread at most, unless the limits say otherwise.
PENDING: Final = 20


@dataclass(frozen=True)
class Message:
    """What somebody says in a thread."""

    text: str
    origin: Origin = "person"
    #: Files of the workspace that come with it: `path`, `bytes`, `sha256`.
    attachments: tuple[Json, ...] = ()
    #: The schedule or webhook it is from.
    source_id: str | None = None
    #: The same key in the same thread is the same message.
    client_key: str | None = None
    #: Of its run; None: the thread's.
    mode: str | None = None
    #: Of how many earlier runs its run knows the messages: all, the last so many, or none.
    history: History = "all"
    history_last: int | None = None
    #: The `traceparent` of whoever says it; None: its run begins a trace.
    trace_parent: str | None = None


@dataclass(frozen=True)
class Sent:
    """What became of a message: the run it began, or its place in the queue."""

    #: None: it waits, or was dropped.
    run_id: str | None
    #: Whether this very call made the run or put it into the queue; False: the key had been used before.
    is_new: bool
    queued: bool = False
    dropped: bool = False
    wakes: list[Wake] = field(default_factory=list)


def send(connection: Connection, thread_id: str, message: Message) -> Sent:
    """A person's message: begins a run, or is the one this key began before.

    Raises:
        Refused: `unknown_thread`, `thread_busy`, `pending_signal`, `unknown_agent`.
    """
    project, thread = threads.lock(connection, thread_id)
    if (known := _of_key(connection, thread_id, message.client_key)) is not None:
        return known
    _admit(connection, thread)
    run_id = _begin(connection, project, thread, message)
    laid = [{"project_id": thread_id, "run_id": run_id} | dict(one) for one in message.attachments]
    upsert(connection, files, laid, written_at=now_ms())
    return Sent(run_id, True, wakes=wakes.take(connection, thread_id))


def earlier(connection: Connection, thread_id: str, client_key: str | None) -> Sent | None:
    """What a person's message of this key began before, without a lock; None: it may be sent, as things stand.

    Raises:
        Refused: `unknown_thread`, `thread_busy`, `pending_signal`.
    """
    thread = threads.get(connection, thread_id)
    if (known := _of_key(connection, thread_id, client_key)) is not None:
        return known
    _admit(connection, thread)
    return None


def trigger(connection: Connection, thread_id: str, message: Message, *, most: int = PENDING) -> Sent:
    """The message of a schedule or webhook: begins a run, or waits until the thread is free.

    Writes a line of the trace, so that nothing but rows of no trace may follow in the transaction.

    Args:
        most: how many may wait.

    Raises:
        Refused: `unknown_thread`, `queue_full` (a webhook's), `unknown_agent`.
    """
    project, thread = threads.lock(connection, thread_id)
    if (known := _of_key(connection, thread_id, message.client_key)) is not None:
        return known
    if thread.run_id is None:
        run_id = _begin(connection, project, thread, message)
        ready = wakes.take(connection, thread_id)
        events.append(connection, thread_id, [_fired(thread_id, message.origin, message.source_id, run_id)])
        return Sent(run_id, True, wakes=ready)
    told: dict[str, Json] = {"id": message.source_id, "threadId": thread_id}
    waiting = select(func.count(), func.max(triggers.c.number)).where(triggers.c.thread_id == thread_id)
    count, last = connection.execute(waiting).one()
    reason = _no_place(connection, thread_id, message, count, most)
    if reason is not None:
        events.append(connection, thread_id, [Event("trigger.dropped", told | {"reason": reason})])
        return Sent(None, True, dropped=True)
    row = {
        "thread_id": thread_id,
        "number": (last or 0) + 1,
        "origin": message.origin,
        "source_id": message.source_id,
        "schedule_id": message.source_id if message.origin == "schedule" else None,
        "client_key": message.client_key,
        "message": {"text": message.text, "attachments": list(message.attachments)},
        "mode": message.mode,
        "history": message.history,
        "history_last": message.history_last,
    }
    connection.execute(insert(triggers).values(row | {"created_at": now_ms()}))
    events.append(connection, thread_id, [Event("trigger.queued", told)])
    return Sent(None, True, queued=True)


def compact(connection: Connection, thread_id: str) -> Sent:
    """A run that does nothing but sum the thread up, which is as busy meanwhile as with any other.

    Raises:
        Refused: `unknown_thread`, `thread_busy`, `pending_signal`, `unknown_agent`.
    """
    project, thread = threads.lock(connection, thread_id)
    _admit(connection, thread)
    run_id = _begin(connection, project, thread, None)
    return Sent(run_id, True, wakes=wakes.take(connection, thread_id))


def ended(connection: Connection, project: Row[Any], run_id: str) -> list[Event]:
    """The thread of a run that has ended is free, or goes on with what waits for it; gives the lines.

    The project is locked, and the run's row says how it ended. Whoever spoke last speaks next.
    """
    mine = (threads_table.c.id == project.id, threads_table.c.run_id == run_id)
    before = connection.execute(select(threads_table).where(*mine)).one_or_none()
    if before is None:
        return []
    run = connection.execute(select(runs_table).where(runs_table.c.id == run_id)).one()
    values = {"run_id": None, "active_at": now_ms(), "agent_id": run.agent_id, "agent_name": run.agent_name}
    if agents.one_at_hand(connection, project.owner_id, project.id, run.agent_id) is not None:
        values["definition_digest"] = None
    elif before.definition_digest is not None or before.agent_id != run.agent_id:
        values["definition_digest"] = run.definition_digest
    freed = update(threads_table).where(*mine).values(values).returning(threads_table)
    return _next(connection, project, connection.execute(freed).one())


def stop(connection: Connection, thread_id: str, reason: str) -> tuple[str | None, list[Wake]]:
    """Ends the run under way with everything below it; the thread goes on. Gives that run, and wake-ups to send.

    Raises:
        Refused: `unknown_thread`.
    """
    project, thread = threads.lock(connection, thread_id)
    if thread.run_id is None:
        return None, []
    lines = _cut_off(connection, thread, reason)
    lines += ended(connection, project, thread.run_id)
    ready = wakes.take(connection, thread_id)
    events.append(connection, thread_id, lines)
    return str(thread.run_id), ready


def remove(connection: Connection, thread_id: str, reason: str) -> None:
    """Deletes a thread: its run is ended, its queue emptied, and nobody can say anything in it any more.

    Its rows stay: they are what was done in its owner's name, and what it cost.

    Raises:
        Refused: `unknown_thread`.
    """
    _, thread = threads.lock(connection, thread_id)
    lines = [] if thread.run_id is None else _cut_off(connection, thread, reason)
    connection.execute(update(threads_table).where(threads_table.c.id == thread_id).values(run_id=None))
    lines += signals.close_of_project(connection, thread_id)
    lines += threads.close(connection, thread_id, reason)
    events.append(connection, thread_id, lines)


def withdraw(connection: Connection, source_id: str) -> int:
    """Takes what a schedule or webhook has in queues out of them, because it is deleted; gives how many those were."""
    gone = delete(triggers).where(triggers.c.source_id == source_id)
    return int(connection.execute(gone).rowcount)


def of_source(connection: Connection, source_id: str, limit: int) -> list[Row[Any]]:
    """The latest runs a schedule or webhook began, newest first: id, status, error, times, and whose thread."""
    query = (
        select(
            *(runs_table.c.id, runs_table.c.status, runs_table.c.error, runs_table.c.created_at),
            *(runs_table.c.ended_at, thread_runs.c.thread_id, thread_runs.c.number),
        )
        .join(thread_runs, thread_runs.c.run_id == runs_table.c.id)
        .where(thread_runs.c.source_id == source_id)
        .order_by(runs_table.c.created_at.desc(), runs_table.c.id.desc())
        .limit(limit)
    )
    return list[Any](connection.execute(query).all())


def _cut_off(connection: Connection, thread: Row[Any], reason: str) -> list[Event]:
    """Ends the run of a thread from outside: no worker closes its calls, so they are closed here."""
    gone, lines = projects.end_runs(connection, thread.id, reason)
    lines += open_calls.close(connection, thread.run_id)
    money.release(connection, gone)
    return lines


def _admit(connection: Connection, thread: Row[Any]) -> None:
    if thread.run_id is None:
        return
    query = select(runs_table.c.status, runs_table.c.waiting_on).where(runs_table.c.id == thread.run_id)
    run = connection.execute(query).one()
    if run.status == "needs_input" or run.waiting_on == "gate":
        words = f"the thread waits for an answer to a question of its run {thread.run_id}; answer that first"
        raise Refused(words, code="pending_signal")
    words = f"the thread is at work on run {thread.run_id} ({run.status}); send again when it has ended"
    raise Refused(words, code="thread_busy")


def _of_key(connection: Connection, thread_id: str, client_key: str | None) -> Sent | None:
    """What this key did before."""
    if client_key is None:
        return None
    made = select(thread_runs.c.run_id)
    made = made.where(thread_runs.c.thread_id == thread_id, thread_runs.c.client_key == client_key)
    if (run_id := connection.execute(made).scalar()) is not None:
        return Sent(str(run_id), False)
    waits = select(triggers.c.number)
    waits = waits.where(triggers.c.thread_id == thread_id, triggers.c.client_key == client_key)
    return None if connection.execute(waits).scalar() is None else Sent(None, False, queued=True)


def _no_place(connection: Connection, thread_id: str, message: Message, count: int, most: int) -> str | None:
    """Why a message cannot wait in the queue; None: it can.

    Raises:
        Refused: `queue_full` for a webhook's, whose sender can try again.
    """
    if message.origin == "schedule":
        same = select(triggers.c.number)
        same = same.where(triggers.c.thread_id == thread_id, triggers.c.schedule_id == message.source_id)
        if connection.execute(same).scalar() is not None:
            return "waiting_already"
    if count < most:
        return None
    if message.origin == "schedule":
        return "queue_full"
    raise Refused(f"{count} messages wait for this thread already; send again later", code="queue_full")


def _begin(connection: Connection, project: Row[Any], thread: Row[Any], message: Message | None) -> str:
    """The next run of a free thread, `queued`; None as message: one that sums the thread up."""
    agent_id, name, definition = threads.speaker(connection, thread, project.owner_id)
    run_id, number = new_id(), thread.runs + 1
    kind, given = ("compact", None) if message is None else ("thread", _given(message))
    message = message or Message("")
    row = {
        "id": run_id,
        "project_id": project.id,
        "kind": kind,
        "agent_id": agent_id,
        "agent_name": name,
        "definition_digest": definition,
        "status": "queued",
        "attempt": 1,
        "trace_parent": message.trace_parent,
        "mode": message.mode or project.mode,
        "permissions": project.permissions,
        "approvals": project.approvals,
        "priority": project.priority,
    }
    runs.insert_queued(connection, [row])
    beginnings.write(connection, [beginnings.row(run_id, given, {})])
    about = {
        "thread_id": thread.id,
        "number": number,
        "run_id": run_id,
        "history_from": _first(message, number),
        "origin": message.origin,
        "source_id": message.source_id,
        "client_key": message.client_key,
    }
    connection.execute(insert(thread_runs).values(about))
    values = {"run_id": run_id, "runs": number, "active_at": now_ms()}
    connection.execute(update(threads_table).where(threads_table.c.id == thread.id).values(values))
    if project.max_cost_micro is not None:  # the cap is that of one run: a conversation may go on for years
        money.extend(connection, f"project:{project.id}", project.max_cost_micro)
    return run_id


def _given(message: Message) -> dict[str, Json]:
    """`$input` of its run."""
    given: dict[str, Json] = {"text": message.text, "origin": message.origin}
    return given | ({"attachments": list(message.attachments)} if message.attachments else {})


def _first(message: Message, number: int) -> int:
    """The run of the thread with which the history of its run `number` begins."""
    if message.history == "none":
        return number
    if message.history == "last":
        return max(1, number - (message.history_last or 1))
    return 1


def _next(connection: Connection, project: Row[Any], thread: Row[Any]) -> list[Event]:
    """Begins the run of what waits longest for a free thread."""
    lines: list[Event] = []
    queue = select(triggers).where(triggers.c.thread_id == thread.id).order_by(triggers.c.number)
    for row in connection.execute(queue).all():
        mine = delete(triggers).where(triggers.c.thread_id == row.thread_id, triggers.c.number == row.number)
        connection.execute(mine)
        try:
            run_id = _begin(connection, project, thread, _waited(row))
        except Refused as refused:
            told = {"id": row.source_id, "threadId": thread.id, "reason": refused.code}
            lines.append(Event("trigger.dropped", told))
            continue
        return [*lines, _fired(thread.id, row.origin, row.source_id, run_id)]
    return lines


def _waited(row: Row[Any]) -> Message:
    return Message(
        text=row.message["text"],
        origin=row.origin,
        attachments=tuple(row.message["attachments"]),
        source_id=row.source_id,
        client_key=row.client_key,
        mode=row.mode,
        history=row.history,
        history_last=row.history_last,
    )


def _fired(thread_id: str, origin: str, source_id: str | None, run_id: str) -> Event:
    return Event(FIRED[origin], {"id": source_id, "threadId": thread_id, "runId": run_id}, run_id=run_id)
