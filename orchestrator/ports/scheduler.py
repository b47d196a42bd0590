"""Schedules as the pack `scheduler` sees them, over the table all schedules share (spec: engine 15, 20)."""

from typing import Any

from sqlalchemy import Connection, Row, select
from sqlalchemy.exc import IntegrityError

from orchestrator import makers
from orchestrator.ports.firings import seen
from orchestrator.ports.keys import call_key
from orchestrator.ports.schedules import MAX_ACTIVE
from orchestrator.ports.voices import Rooms, Voice, invalid, looser, mode_of, thread_of
from orchestrator.store import audit, schedules, sends
from orchestrator.store.database import Database, now_ms
from registry.base import Json
from registry.errors import SkillError
from registry.ids import new_id
from registry.schedules import Schedule
from registry.skills.context import Caller
from registry.skills.triggers import Hand, Planned


class StoredScheduler:
    """The `Scheduler` port over rows."""

    def __init__(self, database: Database, rooms: Rooms) -> None:
        self._database = database
        self._rooms = rooms

    def rows(self, caller: Caller) -> list[dict[str, Json]]:
        """See `Scheduler`."""
        with self._database.read() as connection:
            found = schedules.of_owner(connection, caller.owner_id)
        return [view(row) for row in found if _may_see(caller, row)]

    def peek(self, caller: Caller, schedule_id: str, last: int) -> list[dict[str, Json]]:
        """See `Scheduler`."""
        with self._database.read() as connection:
            row = _mine(connection, caller, schedule_id)
            return [seen(connection, row, firing) for firing in schedules.latest(connection, row.id, last)]

    def save(self, hand: Hand, planned: Planned) -> dict[str, Json]:
        """See `Scheduler`."""
        work = self._change if planned.id is not None else self._create
        try:
            return self._database.write(lambda c: work(c, hand, planned))
        except IntegrityError:  # the same call, or the same thread, at the same moment: now it is there to be seen
            return self._database.write(lambda c: work(c, hand, planned))

    def pause(self, caller: Caller, schedule_id: str, *, paused: bool) -> dict[str, Json]:
        """See `Scheduler`."""

        def move(connection: Connection) -> dict[str, Json]:
            row = _mine(connection, caller, schedule_id)
            if paused and row.status == "active":
                schedules.stop(connection, row.id, "paused", "somebody paused it")
            elif not paused and row.status != "active":
                following = schedules.rule(row).next_time(_now(connection))
                if following is None or (row.max_runs is not None and row.runs >= row.max_runs):
                    raise SkillError("conflict", "it has no time left to run at; change its cron, or make another")
                _room(connection, caller.owner_id)
                schedules.let_go_on(connection, row.id, following)
            _note(connection, caller, "schedule.changed", row.id, status="paused" if paused else "active")
            return view(_mine(connection, caller, schedule_id))

        return self._database.write(move)

    def delete(self, caller: Caller, schedule_id: str) -> None:
        """See `Scheduler`."""

        def move(connection: Connection) -> None:
            row = _mine(connection, caller, schedule_id)
            schedules.remove(connection, caller.owner_id, row.id)
            _note(connection, caller, "schedule.removed", row.id)

        self._database.write(move)

    def _create(self, connection: Connection, hand: Hand, planned: Planned) -> dict[str, Json]:
        caller, key = hand.caller, call_key(hand.caller)
        if (before := schedules.of_call(connection, key)) is not None:
            return _told(connection, caller, before)
        assert planned.name is not None and planned.cron is not None
        _room(connection, caller.owner_id)
        voice = self._rooms.voice(connection, hand, planned.agent_id)
        mode = mode_of(hand, planned.mode, voice.agent)
        thread_id = self._thread(connection, hand, planned, voice, planned.name, mode)
        schedule = _rule(connection, planned.name, planned.cron, planned.timezone or "UTC", planned.detail or "")
        row = {
            "id": new_id(),
            "owner_id": caller.owner_id,
            "agent_id": voice.agent.id,
            "thread_id": thread_id,
            "title": schedule.title,
            "kind": schedule.kind,
            "spec": schedule.spec,
            "timezone": schedule.timezone,
            "action": schedule.action,
            "mode": mode,
            "history": planned.history or "none",
            "history_last": planned.history_last,
            "maker": makers.of(caller, hand.policy),
            "next_run_at": schedule.next_time(schedule.anchor),
            "call_key": key,
            "created_at": schedule.anchor,
        }
        schedules.create(connection, row)
        _note(connection, caller, "schedule.made", str(row["id"]), title=schedule.title)
        return _told(connection, caller, str(row["id"]))

    def _change(self, connection: Connection, hand: Hand, planned: Planned) -> dict[str, Json]:
        row = _mine(connection, hand.caller, str(planned.id))
        values: dict[str, Any] = {}
        title = planned.name or row.title
        if planned.name is not None:
            values["title"] = planned.name
        if row.thread_id is None and (planned.detail, planned.thread_id, planned.history) != (None, None, None):
            raise invalid("id", "that schedule starts a project each time and has no thread; make a new one")
        if planned.detail is not None:
            values["action"] = {"kind": "prompt", "text": planned.detail}
        if planned.history is not None:
            values |= {"history": planned.history, "history_last": planned.history_last}
        values |= self._new_voice(connection, hand, planned, row, title)
        values |= _new_times(connection, planned, row, title)
        schedules.change(connection, row.id, values)
        _note(connection, hand.caller, "schedule.changed", row.id, fields=sorted(values))
        return _told(connection, hand.caller, row.id)

    def _new_voice(
        self, connection: Connection, hand: Hand, planned: Planned, row: Row[Any], title: str
    ) -> dict[str, Any]:
        """Agent, thread and mode of a changed schedule; whatever it keeps has to be the caller's to give."""
        if row.thread_id is None and planned.agent_id is None and planned.mode is None:
            return {}
        voice = self._rooms.voice(connection, hand, planned.agent_id or row.agent_id)
        kept = mode_of(hand, planned.mode if planned.mode is not None else row.mode, voice.agent)
        values: dict[str, Any] = {"mode": kept}
        moved = planned.thread_id is not None or (planned.agent_id is not None and planned.agent_id != row.agent_id)
        if row.thread_id is not None and moved:
            sends.withdraw(connection, row.id)
            values["thread_id"] = self._thread(connection, hand, planned, voice, title, kept, but=row.id)
        elif planned.detail is not None and looser(connection, row.thread_id, hand, voice.agent):
            raise SkillError("denied", "denied: its thread may do more than you; make a schedule of your own")
        if planned.agent_id is not None:
            values["agent_id"] = voice.agent.id
        return values

    def _thread(
        self,
        connection: Connection,
        hand: Hand,
        planned: Planned,
        voice: Voice,
        title: str,
        mode: Any,
        *,
        but: str | None = None,
    ) -> str:
        """The thread it speaks in: the one that is named, or a new one."""
        if planned.thread_id is None:
            return self._rooms.thread(connection, hand, voice, kind="schedule", title=title, mode=mode)
        own = planned.thread_id == "self"
        wanted = hand.caller.thread_id if own else planned.thread_id
        found = thread_of(connection, hand.caller.owner_id, wanted) if wanted is not None else None
        if found is None:
            words = "this run is in no thread" if own else f"there is no thread {planned.thread_id[:80]!r} of yours"
            raise invalid("threadId", f"{words}; leave threadId out, and it gets one of its own")
        if found.agent_id != voice.agent.id:
            words = f"{found.agent_name} speaks in that thread, not {voice.agent.name}"
            raise invalid("threadId", f"{words}: a schedule's thread belongs to its agent; leave threadId out")
        if looser(connection, found.id, hand, voice.agent):
            raise SkillError("denied", "denied: that thread may do more than you; leave threadId out")
        taken = schedules.of_thread(connection, found.id)
        if taken is not None and taken != but:
            words = f"the schedule {taken} speaks in that thread already; change that one, or leave threadId out"
            raise SkillError("conflict", words)
        return str(found.id)


def _new_times(connection: Connection, planned: Planned, row: Row[Any], title: str) -> dict[str, Any]:
    if planned.cron is None and planned.timezone is None:
        return {}
    if planned.cron is None and row.kind != "cron":
        raise invalid("timezone", "that schedule has no cron line; give cron as well")
    schedule = _rule(connection, title, planned.cron or row.spec, planned.timezone or row.timezone, "")
    values: dict[str, Any] = {"kind": "cron", "spec": schedule.spec, "timezone": schedule.timezone}
    if row.status == "active":
        # Strictly after the last firing, too: a time that was worked off does not come again.
        last = row.last_run_at or 0
        values["next_run_at"] = schedule.next_time(max(schedule.anchor, last))
    return values


def _rule(connection: Connection, title: str, cron: str, timezone: str, text: str) -> Schedule:
    action: dict[str, Json] = {"kind": "prompt", "text": text}
    schedule = Schedule(title, "cron", cron, timezone, action, anchor=_now(connection))
    if schedule.next_time(schedule.anchor) is None:
        raise invalid("cron", "never comes due")
    return schedule


def _now(connection: Connection) -> int:
    return int(connection.execute(select(now_ms())).scalar_one())


def view(row: Row[Any]) -> dict[str, Json]:
    """A schedule as `schedule_list` shows it."""
    action = row.action
    return {
        "id": row.id,
        "name": row.title,
        "status": row.status,
        "cron": row.spec if row.kind == "cron" else None,
        "timezone": row.timezone,
        "detail": action.get("text") or action.get("skill") or action.get("generatorId") or "",
        "agentId": row.agent_id,
        "mode": row.mode,
        "history": row.history,
        "historyLast": row.history_last,
        "nextRunAt": row.next_run_at,
        "threadId": row.thread_id,
        "lastFiredAt": row.last_run_at,
    }


def _note(connection: Connection, caller: Caller, act: str, schedule_id: str, **facts: Json) -> None:
    """An agent's act goes to the audit log like a person's."""
    by = caller.agent_name or caller.owner_id
    audit.record(connection, caller.owner_id, by, act, schedule_id, project_id=caller.project_id, **facts)


def _told(connection: Connection, caller: Caller, schedule_id: str) -> dict[str, Json]:
    row = schedules.get(connection, caller.owner_id, schedule_id)
    assert row is not None
    thread = thread_of(connection, caller.owner_id, row.thread_id) if row.thread_id is not None else None
    about: dict[str, Json] = {}
    if thread is not None:
        about = {"id": thread.id, "title": thread.title, "kind": thread.kind, "agentId": thread.agent_id}
    return {"schedule": view(row), "thread": about}


def _room(connection: Connection, owner_id: str) -> None:
    if schedules.active(connection, owner_id) >= MAX_ACTIVE:
        words = f"{MAX_ACTIVE} schedules are active already; pause or delete one first (schedule_list shows yours)"
        raise SkillError("quota", words)


def _may_see(caller: Caller, row: Row[Any]) -> bool:
    if caller.kind == "person":
        return True
    made_by = (row.maker or {}).get("agentId")
    return caller.agent_id is not None and caller.agent_id in (row.agent_id, made_by)


def _mine(connection: Connection, caller: Caller, schedule_id: str) -> Row[Any]:
    row = schedules.get(connection, caller.owner_id, schedule_id)
    if row is None or not _may_see(caller, row):
        words = f"there is no schedule {schedule_id[:80]!r} of yours; schedule_list shows those there are"
        raise SkillError("not_found", words)
    return row


__all__ = ["StoredScheduler", "view"]
