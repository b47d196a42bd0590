"""The owner's schedules, as far as a skill may add to them (spec: skills 7.22, 19)."""

from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from orchestrator import makers
from orchestrator.ports.keys import call_key
from orchestrator.settings import Settings
from orchestrator.store import audit, generators
from orchestrator.store import schedules as moves
from orchestrator.store.database import Database
from registry.base import Json
from registry.errors import Detail, SkillError
from registry.ids import new_id
from registry.permissions import Policy
from registry.schedules import Schedule
from registry.skills.context import Caller, SkillContext
from registry.skills.registry import SkillRegistry

#: Schedules of one owner that will run again.
MAX_ACTIVE: Final = 50
#: What no schedule may call: it could plant others without end.
NEVER: Final = "schedule.create"


class StoredSchedules:
    """The `Schedules` port over rows."""

    def __init__(self, settings: Settings, database: Database, skills: SkillRegistry) -> None:
        self._settings = settings
        self._database = database
        self._skills = skills

    @property
    def timezone(self) -> str:
        return self._settings.timezone

    def made(self, caller: Caller) -> tuple[str, Schedule] | None:
        """See `Schedules`."""
        with self._database.read() as connection:
            mine = moves.of_call(connection, call_key(caller))
            row = moves.get(connection, caller.owner_id, mine) if mine is not None else None
        return None if row is None else (str(row.id), moves.rule(row))

    def create(
        self, caller: Caller, schedule: Schedule, *, allowed: frozenset[str] | None, policy: Policy | None = None
    ) -> str:
        """See `Schedules`."""
        action = schedule.action
        if action["kind"] == "skill":
            action = self._skill(caller, action, allowed)
        row: dict[str, Any] = {
            "owner_id": caller.owner_id,
            "agent_id": caller.agent_id,
            "title": schedule.title,
            "kind": schedule.kind,
            "spec": schedule.spec,
            "timezone": schedule.timezone,
            "action": action,
            "next_run_at": schedule.next_time(schedule.anchor),
            "max_runs": schedule.max_runs,
            "maker": makers.of(caller, policy),
            "start_at": schedule.start_at,
            "end_at": schedule.end_at,
            "call_key": call_key(caller),
            "created_at": schedule.anchor,
        }
        by = caller.agent_name or self._settings.by
        try:
            return self._database.write(lambda c: _store(c, row, by, caller.project_id))
        except IntegrityError:  # the same call in two places: the other one was first
            return self._database.write(lambda c: _store(c, row, by, caller.project_id))

    def _skill(self, caller: Caller, action: dict[str, Json], allowed: frozenset[str] | None) -> dict[str, Json]:
        """The action with the skill's own name and its input as it would run."""
        name = str(action["skill"])
        found = self._skills.find(name)
        if found is None:
            raise _invalid("action.skill", f"there is no skill {name!r}")
        if found.name == NEVER:
            raise _invalid("action.skill", "a schedule cannot create schedules")
        if allowed is not None and found.name not in allowed:
            raise _invalid("action.skill", f"{found.name} is not offered to you, so you cannot schedule it either")
        try:
            checked = self._skills.check(found.name, action.get("input", {}), SkillContext(caller))
        except SkillError as error:
            details = [Detail(f"action.input.{d.path}", d.message) for d in error.details]
            raise SkillError(error.code, f"action.input: {error.message}", details=details) from None
        return action | {"skill": found.name, "input": checked.canonical}


def _store(connection: Connection, row: dict[str, Any], by: str, project_id: str | None) -> str:
    if mine := moves.of_call(connection, row["call_key"]):
        return mine
    action = row["action"]
    if action["kind"] == "generator":
        _generator(connection, row["owner_id"], action)
    if moves.active(connection, row["owner_id"]) >= MAX_ACTIVE:
        raise SkillError("quota", f"{MAX_ACTIVE} schedules are active already; one has to end first")
    made = new_id()
    moves.create(connection, row | {"id": made})
    audit.record(connection, row["owner_id"], by, "schedule.made", made, project_id=project_id, title=row["title"])
    return made


def _generator(connection: Connection, owner_id: str, action: dict[str, Json]) -> None:
    from registry.generators import Unusable, plan

    found = generators.get(connection, owner_id, str(action["generatorId"]))
    if found is None:
        raise _invalid("action.generatorId", "there is no such generator of yours")
    try:
        plan(found, action.get("inputs", {}))
    except Unusable as error:
        details = [Detail(f"action.{f.path}", f.message) for f in error.faults]
        first = error.faults[0]
        raise SkillError("invalid_input", f"action.{first.path}: {first.message}", details=details) from None


def _invalid(path: str, words: str) -> SkillError:
    return SkillError("invalid_input", f"{path}: {words}", details=[Detail(path, words)])
