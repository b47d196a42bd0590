"""What a person does with schedules: make one, rename, pause and resume it, delete it."""

from typing import Annotated, Any, Final

from pydantic import Field
from sqlalchemy import Connection, Row, select

from orchestrator.ports import firings
from orchestrator.ports.schedules import MAX_ACTIVE, StoredSchedules
from orchestrator.settings import Settings
from orchestrator.store import audit, schedules
from orchestrator.store.database import get_database, now_ms
from registry import masking
from registry.base import Json
from registry.errors import Fault, Refused, WrongUse
from registry.schedules import local
from registry.skills.context import Caller
from registry.skills.registry import SkillRegistry
from registry.skills.scheduling import CreateSchedule, faults, schedule_of

#: Minutes between two firings of a person's schedule, at least.
LEAST_MINUTES: Final = 1


class NewSchedule(CreateSchedule):
    """As the skill takes it, but up to once a minute."""

    every_minutes: Annotated[int, Field(ge=LEAST_MINUTES, le=43_200)] | None = None


def create(settings: Settings, skills: SkillRegistry, given: NewSchedule) -> dict[str, Json]:
    """Stores a schedule; whatever it calls asks when it is due.

    Raises:
        WrongUse: `invalid_input`.
        SkillError: the action is of no use; `quota`.
    """
    database = get_database(settings)
    with database.read() as connection:
        now = int(connection.execute(select(now_ms())).scalar_one())
    schedule = schedule_of(given, given.timezone or settings.timezone, now)
    found = [Fault(field, "invalid_input", words) for field, words in faults(schedule, now, LEAST_MINUTES)]
    if found:
        raise WrongUse(str(found[0]), code="invalid_input", faults=found)
    port = StoredSchedules(settings, database, skills)
    made = port.create(Caller(kind="person", owner_id=settings.owner), schedule, allowed=None)
    return show(settings, made)


def listed(settings: Settings, *, limit: int, after: tuple[int, str] | None) -> list[dict[str, Json]]:
    """The owner's schedules, the eldest first."""
    with get_database(settings).read() as connection:
        return [view(row) for row in schedules.page(connection, settings.owner, limit, after)]


def show(settings: Settings, schedule_id: str) -> dict[str, Json]:
    """
    Raises:
        Refused: `unknown_schedule`.
    """
    with get_database(settings).read() as connection:
        return view(_mine(connection, settings, schedule_id))


def seen(settings: Settings, schedule_id: str, last: int) -> list[dict[str, Json]]:
    """What became of its last due times, the latest first.

    Raises:
        Refused: `unknown_schedule`.
    """
    with get_database(settings).read() as connection:
        row = _mine(connection, settings, schedule_id)
        found = [firings.seen(connection, row, firing) for firing in schedules.latest(connection, row.id, last)]
    return [one | {"due": local(one["dueAt"], row.timezone)} for one in found]


def change(settings: Settings, schedule_id: str, *, title: str | None, status: str | None) -> dict[str, Json]:
    """Renames, pauses or resumes a schedule; one that is resumed goes on with its next time from now.

    Args:
        status: `active` or `paused`; None: as it is.

    Raises:
        Refused: `unknown_schedule`, `schedule_ended`, `quota`.
    """

    def write(connection: Connection) -> dict[str, Json]:
        row = _mine(connection, settings, schedule_id)
        values: dict[str, Any] = {} if title is None else {"title": title}
        if status == "paused" and row.status == "active":
            values |= {"status": "paused", "next_run_at": None, "reason": "a person paused it"}
        elif status == "active" and row.status != "active":
            following = schedules.rule(row).next_time(row.now)
            spent = row.max_runs is not None and row.runs >= row.max_runs
            if following is None or spent:
                raise Refused("it has had its last time; make a new one", code="schedule_ended")
            if schedules.active(connection, settings.owner) >= MAX_ACTIVE:
                raise Refused(f"{MAX_ACTIVE} schedules are active already; pause or delete one first", code="quota")
            schedules.let_go_on(connection, row.id, following)
        if values:
            schedules.change(connection, row.id, values)
        audit.record(connection, settings.owner, settings.by, "schedule.changed", row.id, title=title, status=status)
        return view(_mine(connection, settings, schedule_id))

    return get_database(settings).write(write)


def remove(settings: Settings, schedule_id: str) -> None:
    """
    Raises:
        Refused: `unknown_schedule`.
    """

    def write(connection: Connection) -> bool:
        done = schedules.remove(connection, settings.owner, schedule_id)
        if done:
            audit.record(connection, settings.owner, settings.by, "schedule.removed", schedule_id)
        return done

    if not get_database(settings).write(write):
        raise _unknown(schedule_id)


def view(row: Row[Any]) -> dict[str, Json]:
    """A schedule as it may be seen."""
    rule = schedules.rule(row)
    return {
        "id": row.id,
        "title": row.title,
        "kind": row.kind,
        "spec": row.spec,
        "timezone": row.timezone,
        "description": rule.words,
        "action": masking.mask(row.action),
        "agentId": row.agent_id,
        "status": row.status,
        "reason": row.reason,
        "nextRunAt": row.next_run_at,
        "nextRun": None if row.next_run_at is None else local(row.next_run_at, row.timezone),
        "lastRunAt": row.last_run_at,
        "lastResult": row.last_result,
        "runs": row.runs,
        "maxRuns": row.max_runs,
        "startAt": row.start_at,
        "endAt": row.end_at,
        "createdAt": row.created_at,
    }


def _mine(connection: Connection, settings: Settings, schedule_id: str) -> Row[Any]:
    row = schedules.get(connection, settings.owner, schedule_id)
    if row is None:
        raise _unknown(schedule_id)
    return row


def _unknown(schedule_id: str) -> Refused:
    return Refused(f"you have no schedule {schedule_id[:80]!r}", code="unknown_schedule")
