"""What a skill may put on the desk: notices, questions, alerts, results. Never anything that approves a call."""

from datetime import timedelta

from sqlalchemy import Connection, func, insert, select

from orchestrator import desk, events
from orchestrator.ports.keys import call_key
from orchestrator.records import Event
from orchestrator.settings import Settings
from orchestrator.states import RUN_ENDED
from orchestrator.store.database import Database, now_ms
from orchestrator.store.events import append
from orchestrator.store.sql import take_turns
from orchestrator.store.tables import runs, signals
from registry import masking
from registry.base import Json
from registry.errors import SkillError
from registry.ids import new_id
from registry.skills.context import Caller, RaisedSignal

#: Open signals one agent may have; more would be noise.
OPEN_PER_AGENT = 10
#: The same kind and title within this time is the same signal.
SAME_WITHIN = timedelta(minutes=10)


class DeskSignals:
    """The `Signals` port over the rows, shown on the desk at once."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._database = database

    def raise_signal(
        self,
        caller: Caller,
        *,
        kind: str,
        title: str,
        body: str,
        options: list[str],
        priority: str,
        expires_in_hours: int,
    ) -> RaisedSignal:
        """Stores the signal once per call and shows it; the same words again within minutes give the earlier one.

        Raises:
            SkillError: `quota`.
        """
        row: dict[str, Json] = {
            "id": new_id(),
            "owner_id": caller.owner_id,
            "project_id": caller.project_id,
            "task_id": caller.task_id,
            "run_id": caller.run_id,
            "agent_id": caller.agent_id,
            "agent_name": caller.agent_name,
            "call_id": caller.call_id,
            "kind": kind,
            "status": "open",
            "title": masking.mask_text(title),
            "body": masking.mask_text(body),
            "options": [{"id": option, "label": option} for option in options],
            "priority": priority,
            "schema": _schema(options),
            "dedupe_key": call_key(caller),
        }
        raised = self._database.write(lambda c: _store(c, caller, row, expires_in_hours))
        desk.changed(self._settings, caller.owner_id, [raised.signal_id])
        if caller.project_id:
            events.publish(self._settings, caller.project_id, 0)
        return raised


def _store(connection: Connection, caller: Caller, row: dict[str, Json], hours: int) -> RaisedSignal:
    if caller.run_id is not None:  # a run that was ended meanwhile says nothing more; lock order: run before signal
        mine = select(runs.c.status).where(runs.c.id == caller.run_id).with_for_update(key_share=True)
        if connection.execute(mine).scalar() in RUN_ENDED:
            raise SkillError("cancelled", "the run was ended meanwhile: nothing was raised")
    take_turns(connection, f"signals {caller.owner_id} {caller.project_id} {caller.agent_id}")
    if earlier := _earlier(connection, caller, row):
        return RaisedSignal(earlier, "open", deduplicated=True)
    mine = select(func.count()).where(
        signals.c.owner_id == caller.owner_id,
        signals.c.project_id == caller.project_id,
        signals.c.agent_id == caller.agent_id,
        signals.c.status == "open",
    )
    if connection.execute(mine).scalar_one() >= OPEN_PER_AGENT:
        raise SkillError("quota", f"{OPEN_PER_AGENT} signals of this agent are open already; wait for an answer")
    times = {"created_at": now_ms(), "expires_at": now_ms() + hours * 3_600_000}
    connection.execute(insert(signals).values(row | times))
    if caller.project_id:
        data = {"signalId": row["id"], "signalKind": row["kind"], "title": row["title"], "schema": row["schema"]}
        line = Event("signal.raised", data, caller.task_id, caller.run_id, caller.agent_id)
        append(connection, caller.project_id, [line])
    return RaisedSignal(row["id"], "open", deduplicated=False)


def _earlier(connection: Connection, caller: Caller, row: dict[str, Json]) -> str | None:
    """The signal of this very call when it runs again after a crash, or the same words a moment ago."""
    if row["dedupe_key"]:
        again = connection.execute(select(signals.c.id).where(signals.c.dedupe_key == row["dedupe_key"])).scalar()
        if again:
            return str(again)
    since = now_ms() - round(SAME_WITHIN.total_seconds() * 1000)
    same = select(signals.c.id).where(
        signals.c.owner_id == caller.owner_id,
        signals.c.project_id == caller.project_id,
        signals.c.agent_id == caller.agent_id,
        signals.c.kind == row["kind"],
        signals.c.title == row["title"],
        signals.c.status == "open",
        signals.c.created_at > since,
    )
    return connection.execute(same.limit(1)).scalar()


def _schema(options: list[str]) -> dict[str, Json]:
    text = {"type": "string", "maxLength": 4000}
    chosen = {"type": "array", "items": {"enum": options}, "maxItems": 1}
    properties = {"text": text} | ({"optionIds": chosen} if options else {})
    return {"type": "object", "properties": properties, "additionalProperties": False}
