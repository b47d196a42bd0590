"""Moves of `signals`: the row is the truth, one conditional update decides an answer, a grant is consumed once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, func, insert, or_, select, update

from orchestrator.records import QUOTA, Event, SignalRecord, Wake
from orchestrator.states import RUN_ENDED, SIGNAL_OF_PARK
from orchestrator.store import audit, wakes
from orchestrator.store.database import now_ms
from orchestrator.store.events import append as append_events
from orchestrator.store.sql import among, several
from orchestrator.store.tables import projects, runs, signals
from registry import masking
from registry.base import Json
from registry.errors import Refused

#: Milliseconds a signal stays open when nothing says otherwise; the settings' days override it at the raise.
DEFAULT_LIFE_MS = 7 * 24 * 3600 * 1000
#: Signals that only tell a person something; they are dismissed, never answered by a run's leave.
TELLS = frozenset({"notice", "alert", "result"})
#: Signals a run itself waits for. What a skill raised has a key of its call, and the run went on at once.
WAITED_FOR = and_(signals.c.kind.in_(sorted(SIGNAL_OF_PARK)), ~signals.c.carry_on, signals.c.dedupe_key.is_(None))

_CLOSE_ALL = (
    update(signals)
    .where(
        among(signals.c.run_id, several("ids")),
        signals.c.status == "open",
        signals.c.kind.in_(sorted(SIGNAL_OF_PARK)),
    )
    .values(status="expired")
    .returning(signals.c.id, signals.c.run_id, signals.c.task_id)
)
_CLOSE = _CLOSE_ALL.where(~signals.c.carry_on)
_OF_RUN = (
    select(signals)
    .where(signals.c.run_id == bindparam("run"), signals.c.execution == "none", WAITED_FOR)
    .order_by(signals.c.created_at, signals.c.id)
)


@dataclass(frozen=True)
class Answered:
    """What an answer did: the signal, and the wake-ups to send after the commit."""

    signal_id: str
    owner_id: str
    project_id: str | None
    wakes: list[Wake]
    #: Its action is to be run outside the run that asked.
    act: bool = False


def lock_projects(connection: Connection, batch: Iterable[tuple[str, Sequence[SignalRecord]]]) -> None:
    """Locks the projects in which runs are about to ask for decisions, so that two do not count the same free place.

    Args:
        batch: run id and what the run raises. Lock order: projects before runs.
    """
    asking = sorted(run_id for run_id, raised in batch if any(one.kind == "decision" for one in raised))
    if asking:
        theirs = select(runs.c.project_id).where(runs.c.id.in_(asking))
        locked = select(projects.c.id).where(projects.c.id.in_(theirs)).order_by(projects.c.id)
        connection.execute(locked.with_for_update(key_share=True))


def insert_raised(connection: Connection, run_id: str, raised: Sequence[SignalRecord]) -> None:
    """Stores signals of a run; their project, task, agent and owner are the run's.

    A decision for which its project has no place any more is closed at once, and says so.
    """
    query = (
        select(runs.c.project_id, runs.c.task_id, runs.c.agent_id, runs.c.agent_name, projects.c.owner_id)
        .join(projects, projects.c.id == runs.c.project_id)
        .where(runs.c.id == run_id)
    )
    owner = dict(connection.execute(query).one()._mapping)
    for record in raised:
        if record.kind == "decision" and record.most_open is not None:
            full = open_decisions(connection, owner["project_id"]) >= record.most_open
            record.status, record.answer = ("expired", QUOTA) if full else ("open", None)
        row = owner | _row(record) | {"run_id": run_id, "created_at": now_ms()}
        row |= {name: masking.mask_text(row[name]) for name in ("title", "body", "reason") if row[name]}
        row["expires_at"] = now_ms() + (record.life_ms or DEFAULT_LIFE_MS)
        connection.execute(insert(signals).values(row))


def closed_at_once(raised: Sequence[SignalRecord]) -> list[Event]:
    """The lines of decisions that were closed as they were raised."""
    return [Event("signal.expired", {"signalId": one.id, "reason": "quota"}) for one in raised if one.answer == QUOTA]


def answer(connection: Connection, signal_id: str, payload: Json, *, rejected: bool, by: str) -> Answered:
    """The one conditional update open -> answered; the winner's transaction queues the run.

    The payload was checked against the stored schema by the caller.

    Raises:
        Refused: `unknown_signal`, `already_answered` (with the earlier answer in words), `run_ended`.
    """
    found = get(connection, signal_id)
    if found.project_id is not None:  # lock order: project, where the run may get a place, then run, then signal
        wakes.lock_places(connection, found.project_id)
    if found.run_id is not None:
        connection.execute(select(runs.c.id).where(runs.c.id == found.run_id).with_for_update(key_share=True))
    won = connection.execute(
        update(signals)
        .where(signals.c.id == signal_id, signals.c.status == "open", signals.c.expires_at > now_ms())
        .values(status="answered", answer=payload, rejected=rejected, answered_by=by, answered_at=now_ms())
    ).rowcount
    if not won:
        raise _lost(connection, get(connection, signal_id))
    ready = _requeue(connection, found, "answer")
    data = {"signalId": signal_id, "payload": payload, "rejected": rejected, "by": by}
    _tell(connection, found, "signal.answered", data)
    _note(connection, found, by, "signal.answered", rejected=rejected)
    return Answered(signal_id, found.owner_id, found.project_id, ready, act=found.carry_on and not rejected)


def dismiss(connection: Connection, signal_id: str, *, by: str) -> Answered:
    """open -> dismissed, for what only told something.

    Raises:
        Refused: `unknown_signal`, `not_dismissible` for a question, `already_answered` when it is not open.
    """
    found = get(connection, signal_id)
    if found.kind not in TELLS:
        words = f"signal {signal_id} is a {found.kind} and wants an answer; only notices, alerts and results go away"
        raise Refused(words, code="not_dismissible")
    gone = update(signals).where(signals.c.id == signal_id, signals.c.status == "open")
    if not connection.execute(gone.values(status="dismissed", answered_by=by, answered_at=now_ms())).rowcount:
        raise Refused(f"signal {signal_id} is {found.status} already", code="already_answered")
    _note(connection, found, by, "signal.dismissed")
    return Answered(signal_id, found.owner_id, found.project_id, [])


def _note(connection: Connection, found: Row[Any], by: str, act: str, **facts: Json) -> None:
    """The audit log's line: what was asked, and of a decision which call exactly."""
    asked = {"kind": found.kind, "title": found.title, "skill": (found.action or {}).get("skill")}
    told = asked | {"digest": found.digest, "run": found.run_id} | facts
    audit.record(connection, found.owner_id, by, act, found.id, project_id=found.project_id, **told)


def expire_due(connection: Connection, limit: int) -> list[Answered]:
    """Closes open signals whose time is over and queues the runs that waited for them."""
    due = (
        select(signals)
        .where(signals.c.status == "open", signals.c.expires_at <= now_ms())
        .order_by(signals.c.expires_at)
        .limit(limit)
    )
    closed, lines = [], []
    over = connection.execute(due).all()
    for project_id in sorted({found.project_id for found in over if found.project_id is not None}):
        wakes.lock_places(connection, project_id)
    waiting = sorted({found.run_id for found in over if found.run_id is not None})
    connection.execute(
        select(runs.c.id).where(among(runs.c.id, waiting)).order_by(runs.c.id).with_for_update(key_share=True)
    )
    for found in over:
        mine = update(signals).where(signals.c.id == found.id, signals.c.status == "open")
        mine = mine.values(status="expired", rejected=found.kind == "decision")  # silence counts as a no
        if connection.execute(mine).rowcount:
            ready = _requeue(connection, found, "answer")
            lines.append((found, {"signalId": found.id}))
            closed.append(Answered(found.id, found.owner_id, found.project_id, ready))
    for found, data in sorted(lines, key=lambda line: line[0].project_id or ""):  # the counters last, in one order
        _tell(connection, found, "signal.expired", data)
    return closed


def close_of_run(connection: Connection, run_ids: Sequence[str], *, cancelled: bool = False) -> list[Event]:
    """Closes what ended runs still had open; a late answer is then refused.

    Decisions a run did not wait for outlive it, unless it was cancelled.
    """
    closed = connection.execute(_CLOSE_ALL if cancelled else _CLOSE, {"ids": run_ids})
    return [Event("signal.expired", {"signalId": r.id}, task_id=r.task_id, run_id=r.run_id) for r in closed]


def close(connection: Connection, signal_ids: Sequence[str]) -> list[Event]:
    """open -> expired for questions whose run goes on without an answer."""
    if not signal_ids:
        return []
    mine = update(signals).where(signals.c.id.in_(signal_ids), signals.c.status == "open").values(status="expired")
    gone = connection.execute(mine.returning(signals.c.id, signals.c.run_id, signals.c.task_id))
    return [Event("signal.expired", {"signalId": r.id}, task_id=r.task_id, run_id=r.run_id) for r in gone]


def close_of_project(connection: Connection, project_id: str) -> list[Event]:
    """Closes what runs that ended before their project was cancelled still had open, and takes back the yes to
    actions that have not begun."""
    closing = (
        update(signals)
        .where(
            signals.c.project_id == project_id, signals.c.status == "open", signals.c.kind.in_(sorted(SIGNAL_OF_PARK))
        )
        .values(status="expired")
        .returning(signals.c.id, signals.c.run_id, signals.c.task_id)
    )
    closed = connection.execute(closing).all()
    # After the closing: a yes that came just before it is seen here.
    unbegun = (
        signals.c.project_id == project_id,
        signals.c.carry_on,
        signals.c.status == "answered",
        signals.c.execution == "none",
    )
    why: Json = {"ok": False, "code": "cancelled", "error": "the project was cancelled before this began"}
    connection.execute(update(signals).where(*unbegun).values(execution="declined", result=why))
    return [Event("signal.expired", {"signalId": r.id}, task_id=r.task_id, run_id=r.run_id) for r in closed]


def consume(connection: Connection, signal_id: str, execution: str) -> None:
    """Uses up an answer, a grant above all; whoever comes second finds none.

    Raises:
        Refused: `already_executed`.
    """
    used = (
        update(signals)
        .where(signals.c.id == signal_id, signals.c.status != "open", signals.c.execution == "none")
        .values(execution=execution)
    )
    if connection.execute(used).rowcount != 1:
        raise Refused(f"the answer of signal {signal_id} has been used already", code="already_executed")


def settle(connection: Connection, signal_id: str, execution: str) -> None:
    """Records how the consumed grant's call came out."""
    connection.execute(update(signals).where(signals.c.id == signal_id).values(execution=execution))


def any_closed(connection: Connection, signal_ids: Sequence[str]) -> bool:
    """Whether one of these was answered or expired already."""
    query = select(signals.c.id).where(signals.c.id.in_(signal_ids), signals.c.status != "open").limit(1)
    return connection.execute(query).first() is not None


def of_run(connection: Connection, run_id: str) -> dict[str, SignalRecord]:
    """The signals a run still has to act on."""
    return {row.id: record(row) for row in connection.execute(_OF_RUN, {"run": run_id})}


def was_refused(connection: Connection, task_id: str | None, run_id: str, digest: str) -> bool:
    """Whether a person said no to this very call before, by words or by silence until the end of its time: in the same
    task, or for a run without one in the same run. A question that was closed with its run was refused by nobody.
    """
    scope = signals.c.task_id == task_id if task_id else signals.c.run_id == run_id
    query = select(signals.c.id).where(
        scope, signals.c.digest == digest, signals.c.kind == "decision", signals.c.rejected
    )
    return connection.execute(query.limit(1)).first() is not None


def open_decision(connection: Connection, task_id: str | None, run_id: str, digest: str) -> str | None:
    """The open decision about this very call that a run of the same task did not wait for."""
    scope = signals.c.task_id == task_id if task_id else signals.c.run_id == run_id
    query = select(signals.c.id).where(
        scope, signals.c.digest == digest, signals.c.status == "open", signals.c.carry_on
    )
    return connection.execute(query.limit(1)).scalar()


def open_decisions(connection: Connection, project_id: str) -> int:
    query = select(func.count()).where(
        signals.c.project_id == project_id, signals.c.status == "open", signals.c.kind == "decision"
    )
    return int(connection.execute(query).scalar_one())


def get(connection: Connection, signal_id: str) -> Row[Any]:
    """The row.

    Raises:
        Refused: `unknown_signal`.
    """
    row = connection.execute(select(signals).where(signals.c.id == signal_id)).one_or_none()
    if row is None:
        raise Refused(f"there is no signal {signal_id}", code="unknown_signal")
    return row


def record(row: Row[Any]) -> SignalRecord:
    return SignalRecord(
        id=row.id,
        kind=row.kind,
        title=row.title,
        node_id=row.node_id,
        call_id=row.call_id,
        body=row.body,
        reason=row.reason,
        options=row.options,
        priority=row.priority,
        action=row.action,
        digest=row.digest,
        schema=row.schema,
        status=row.status,
        answer=row.answer,
        rejected=row.rejected,
        answered_by=row.answered_by,
        execution=row.execution,
        carry_on=row.carry_on,
        asked_at=row.created_at,
        answered_at=row.answered_at,
    )


def _requeue(connection: Connection, found: Row[Any], by: str) -> list[Wake]:
    """Queues the run that waits for this signal; one still at work sees the answer when it parks."""
    if found.run_id is None or found.carry_on or found.dedupe_key is not None:
        return []
    parked = or_(
        runs.c.status == "needs_input",
        (runs.c.status == "waiting") & (runs.c.waiting_on == "gate"),
    )
    moved = update(runs).where(runs.c.id == found.run_id, parked).values(wakes.queued(by)).returning(runs.c.kind)
    if connection.execute(moved).scalar() is None:
        return []
    return wakes.take(connection, found.project_id) if found.project_id else []


def _tell(connection: Connection, found: Row[Any], kind: str, data: dict[str, Json]) -> None:
    if found.project_id is None:
        return
    line = Event(kind, data, found.task_id, found.run_id, found.agent_id, found.node_id)
    append_events(connection, found.project_id, [line])


def _lost(connection: Connection, row: Row[Any]) -> Refused:
    if row.status == "dismissed":
        return Refused(f"signal {row.id} was dismissed by {row.answered_by}", code="already_answered")
    if row.status == "answered":
        words = "no" if row.rejected else "yes" if row.kind == "decision" else "an answer"
        return Refused(f"signal {row.id} already has {words}, from {row.answered_by}", code="already_answered")
    status = connection.execute(select(runs.c.status).where(runs.c.id == row.run_id)).scalar()
    if status in RUN_ENDED:
        return Refused(f"signal {row.id} is closed: its run is {status}", code="run_ended")
    return Refused(f"signal {row.id} is closed: nobody answered in time", code="already_answered")


def _row(r: SignalRecord) -> dict[str, Any]:
    return {
        "id": r.id,
        "kind": r.kind,
        "status": r.status,
        "answer": r.answer,
        "title": r.title,
        "node_id": r.node_id,
        "call_id": r.call_id,
        "body": r.body,
        "reason": r.reason,
        "options": r.options,
        "priority": r.priority,
        "action": r.action,
        "digest": r.digest,
        "schema": r.schema,
        "carry_on": r.carry_on,
    }
