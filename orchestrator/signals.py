"""Answering signals: what was said becomes a payload, is checked against the stored schema, and counts once."""

from typing import Any

from orchestrator import crashpoints
from orchestrator.notify import Notifier
from orchestrator.settings import Settings
from orchestrator.store import signals
from orchestrator.store.database import Database, get_database
from orchestrator.store.signals import Answered
from registry import schemas
from registry.base import Json
from registry.errors import Refused

#: "No payload given", where null is one: a rejection.
NONE: Any = object()


def answer(settings: Settings, signal_id: str, *, option: str | None = None, payload: Json = NONE, by: str) -> Answered:
    """Answers an open signal; whoever is first wins, and everybody else is told so.

    Args:
        option: the id or label of one of its options, as "Do it".
        payload: instead of an option; null rejects.
        by: who answered, for the record.

    Raises:
        Refused: `unknown_signal`, `already_answered`, `resume_validation_failed` (the signal stays open), `run_ended`.
    """
    from orchestrator.broadcast import Broadcast

    return answer_in(get_database(settings), Broadcast(settings), signal_id, option=option, payload=payload, by=by)


def answer_in(
    database: Database,
    notifier: Notifier,
    signal_id: str,
    *,
    option: str | None = None,
    payload: Json = NONE,
    by: str,
) -> Answered:
    """The same for a database and whoever is to be told, whichever they are."""
    with database.read() as connection:
        row = signals.get(connection, signal_id)
    if payload is NONE:
        payload = _chosen(row, option)
    if payload is not None:
        _check(row.schema, payload)
    rejected = payload is None or (row.kind == "decision" and not _approves(payload))
    done = database.write(lambda c: signals.answer(c, signal_id, payload, rejected=rejected, by=by))
    crashpoints.reached("answered")
    notifier.wake(done.wakes)
    if done.act and done.project_id:
        notifier.advance(done.project_id, row.title)
    if done.project_id:
        notifier.grown(done.project_id, 0)
    notifier.asked(done.owner_id, [signal_id])
    return done


def dismiss(settings: Settings, signal_id: str, *, by: str) -> None:
    """Takes a notice, alert or result off the desk.

    Raises:
        Refused: `unknown_signal`, `not_dismissible`, `already_answered`.
    """
    from orchestrator.broadcast import Broadcast

    done = get_database(settings).write(lambda c: signals.dismiss(c, signal_id, by=by))
    Broadcast(settings).asked(done.owner_id, [signal_id])


def _chosen(row: Any, option: str | None) -> Json:
    """The payload an option stands for."""
    said = (option or "").strip().casefold()
    ids = [o["id"] for o in row.options if said in (o["id"].casefold(), o["label"].casefold())]
    if not ids:
        known = ", ".join(repr(o["label"]) for o in row.options) or "none; give a payload"
        raise Refused(f"{option!r} is no option of this signal; its options: {known}", code="resume_validation_failed")
    if row.kind == "decision":
        return {"approved": ids[0] == "Do it"}
    if row.kind == "budget":
        return {"approved": ids[0] == "continue"}
    return {"optionIds": ids[:1]}


def _check(schema: dict[str, Json], payload: Json) -> None:
    for flaw in schemas.flaws(schema, payload):
        words = f"the answer does not fit: {schemas.at(flaw.path) or 'it'}: {flaw.message}"
        raise Refused(words, code="resume_validation_failed")


def _approves(payload: Json) -> bool:
    return isinstance(payload, dict) and payload.get("approved") is True
