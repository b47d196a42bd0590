"""schedule.create: when it runs, what is refused, what is stored (spec: skills 7.22)."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from orchestrator.ports import schedules as port
from orchestrator.ports.schedules import StoredSchedules
from orchestrator.settings import Settings
from orchestrator.store.database import Database, get_database
from orchestrator.store.kept import generators, schedules
from registry.schedules import Schedule, local
from registry.skills import catalogue
from registry.skills.context import Caller, SkillContext
from registry.skills.registry import SkillResult

SKILLS = catalogue.build()
PROMPT = {"kind": "prompt", "text": "Write the digest."}
#: Sunday 29 November 2026, 12:00 UTC.
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def ms(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)


def times(kind: Any, spec: str, zone: str, after: str, count: int = 3, **bounds: int) -> list[str]:
    made = Schedule("t", kind, spec, zone, PROMPT, anchor=ms(after), **bounds)
    return [local(moment, zone) for moment in islice(made.times(ms(after)), count)]


# When it runs


def test_a_cron_line_is_read_in_its_zone() -> None:
    assert times("cron", "0 9 * * 1-5", "Europe/Warsaw", "2026-11-27T10:00:00+01:00") == [
        "2026-11-30T09:00:00+01:00",
        "2026-12-01T09:00:00+01:00",
        "2026-12-02T09:00:00+01:00",
    ]


def test_a_skipped_local_time_moves_to_the_end_of_the_gap() -> None:
    assert times("cron", "30 2 * * *", "Europe/Warsaw", "2026-03-28T12:00:00+01:00", 2) == [
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]


def test_a_doubled_local_time_fires_once() -> None:
    assert times("cron", "30 2 * * *", "Europe/Warsaw", "2026-10-24T12:00:00+02:00", 2) == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-26T02:30:00+01:00",
    ]
    assert times("cron", "30 2 * * *", "Europe/Warsaw", "2026-10-25T02:30:00+02:00", 1) == ["2026-10-26T02:30:00+01:00"]


def test_minutes_count_real_time_across_a_clock_change() -> None:
    assert times("every", "60", "Europe/Warsaw", "2026-10-25T01:30:00+02:00") == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-25T02:30:00+01:00",
        "2026-10-25T03:30:00+01:00",
    ]


def test_start_and_end_bound_what_runs() -> None:
    start, end = ms("2026-12-01T09:00:00Z"), ms("2026-12-01T10:00:00Z")
    assert times("every", "30", "UTC", "2026-11-01T00:00:00Z", 9, start_at=start, end_at=end) == [
        "2026-12-01T09:00:00+00:00",
        "2026-12-01T09:30:00+00:00",
        "2026-12-01T10:00:00+00:00",
    ]
    assert times("cron", "0 9 * * *", "UTC", "2026-11-01T00:00:00Z", 1, start_at=start) == ["2026-12-01T09:00:00+00:00"]
    assert times("at", str(start), "UTC", "2026-12-01T09:00:00Z") == []


# The skill


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    return Settings(home=tmp_path / "home", database_url=database_url, timezone="Europe/Warsaw", _env_file=None)  # type: ignore[call-arg]


@pytest.fixture
def desk(settings: Settings) -> Iterator["Desk"]:
    made = Desk(settings)
    yield made
    made.database.dispose()


class Desk:
    def __init__(self, settings: Settings) -> None:
        self.database: Database = get_database(settings)
        self.port = StoredSchedules(settings, self.database, SKILLS)

    def call(
        self, caller: Caller | None = None, *, allowed: frozenset[str] | None = None, **arguments: Any
    ) -> SkillResult:
        given = {"title": "Digest", "action": PROMPT} | arguments
        about = SkillContext(
            caller or Caller("person"),
            schedules=self.port,
            allowed=None if allowed is None else allowed | {"schedule.create"},
            now_ms=lambda: round(NOW.timestamp() * 1000),
        )
        return SKILLS.invoke("schedule.create", given, about)

    def made(self, **arguments: Any) -> dict[str, Any]:
        result = self.call(**arguments)
        assert result.ok, result.error
        return result.output  # type: ignore[no-any-return]

    @property
    def rows(self) -> list[Any]:
        with self.database.read() as connection:
            return list(connection.execute(select(schedules)))


def test_a_cron_schedule_is_stored_and_told(desk: Desk) -> None:
    made = desk.made(cron="0 9 * * 1-5", maxRuns=10, title=" Morning digest ")

    assert made == {
        "scheduleId": desk.rows[0].id,
        "kind": "cron",
        "nextRuns": ["2026-11-30T09:00:00+01:00", "2026-12-01T09:00:00+01:00", "2026-12-02T09:00:00+01:00"],
        "timezone": "Europe/Warsaw",
        "description": "at 09:00 on Monday through Friday, Europe/Warsaw",
        "wired": True,
        "note": None,
    }
    (row,) = desk.rows
    assert (row.title, row.status, row.runs, row.max_runs, row.action) == ("Morning digest", "active", 0, 10, PROMPT)
    assert row.next_run_at == ms("2026-11-30T09:00:00+01:00")


def test_a_moment_and_minutes_are_schedules_too(desk: Desk) -> None:
    at = desk.made(at="2026-12-24T18:00:00-05:00", timezone="America/New_York")
    every = desk.made(everyMinutes=90, maxRuns=2)

    assert (at["kind"], at["nextRuns"]) == ("at", ["2026-12-24T18:00:00-05:00"])
    assert at["description"] == "once, at 2026-12-24T18:00:00-05:00"
    assert (every["kind"], len(every["nextRuns"]), every["description"]) == ("every", 2, "every 90 minutes")
    assert every["nextRuns"][0] == "2026-11-29T14:30:00+01:00"


def later(**delta: float) -> str:
    return (NOW + timedelta(**delta)).isoformat()


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "exactly one"),
        ({"cron": "0 9 * * *", "everyMinutes": 60}, "exactly one"),
        ({"at": "2027-03-01T09:00:00"}, "at"),
        ({"at": "2027-03-01"}, "at"),
        ({"at": 1_800_000_000}, "at"),
        ({"at": "1800000000"}, "at"),
        ({"at": later(seconds=29)}, "at"),
        ({"at": later(days=-1)}, "at"),
        ({"at": later(days=740)}, "at"),
        ({"everyMinutes": 4}, "everyMinutes"),
        ({"everyMinutes": 43_201}, "everyMinutes"),
        ({"everyMinutes": 5.0}, "everyMinutes"),
        ({"cron": "@daily"}, "cron"),
        ({"cron": "0 0 9 * * *"}, "cron"),
        ({"cron": "0 9 * *"}, "cron"),
        ({"cron": "0  9 * * *"}, "cron"),
        ({"cron": "0 0 L * *"}, "cron"),
        ({"cron": "0 0 * * MON#2"}, "cron"),
        ({"cron": "0 0 * * FUN"}, "cron"),
        ({"cron": "60 0 * * *"}, "cron"),
        ({"cron": "٠ 9 * * *"}, "cron"),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"cron": "0 0 31 4,6 *"}, "cron"),
        ({"cron": "* * * * *"}, "cron"),
        ({"cron": "0,4 9 * * *"}, "cron"),
        ({"cron": "0 9 * * *", "timezone": "Mars/Olympus"}, "timezone"),
        ({"cron": "0 9 * * *", "timezone": "../../etc/passwd"}, "timezone"),
        ({"cron": "0 9 * * *", "timezone": "europe/warsaw"}, "timezone"),
        ({"everyMinutes": 60, "startAt": later(days=2), "endAt": later(days=1)}, "endAt"),
        ({"everyMinutes": 60, "endAt": later(days=-1)}, "endAt"),
        ({"everyMinutes": 60, "startAt": later(days=740)}, "startAt"),
        ({"everyMinutes": 60, "startAt": "9999-12-31T23:59:00+00:00"}, "startAt"),
        ({"cron": "0 9 * * *", "startAt": "9999-12-31T23:59:00-12:00"}, "startAt"),
        ({"everyMinutes": 60, "endAt": later(minutes=30)}, "everyMinutes"),
        ({"cron": "0 9 1 1 *", "endAt": later(days=2)}, "cron"),
        ({"everyMinutes": 60, "maxRuns": 0}, "maxRuns"),
        ({"everyMinutes": 60, "maxRuns": 1001}, "maxRuns"),
        ({"everyMinutes": 60, "title": "a\nb"}, "title"),
        ({"everyMinutes": 60, "title": " "}, "title"),
        ({"everyMinutes": 60, "title": "x" * 121}, "title"),
        ({"everyMinutes": 60, "approved": True}, "approved"),
        ({"everyMinutes": 60, "action": {"kind": "prompt", "text": ""}}, "action"),
        ({"everyMinutes": 60, "action": {"kind": "prompt", "text": "x" * 2001}}, "action"),
        ({"everyMinutes": 60, "action": {"kind": "prompt", "text": "x", "approved": True}}, "approved"),
        ({"everyMinutes": 60, "action": {"kind": "shell", "text": "x"}}, "action"),
        ({"everyMinutes": 60, "action": {"kind": "skill", "skill": "no.such"}}, "action.skill"),
        ({"everyMinutes": 60, "action": {"kind": "skill", "skill": "schedule.create"}}, "action.skill"),
        ({"everyMinutes": 60, "action": {"kind": "skill", "skill": "schedule__create"}}, "action.skill"),
        ({"everyMinutes": 60, "action": {"kind": "skill", "skill": "math.evaluate", "input": {}}}, "action.input"),
        (
            {
                "everyMinutes": 60,
                "action": {"kind": "skill", "skill": "code.execute", "input": {"code": "1", "approved": True}},
            },
            "approved",
        ),
        ({"everyMinutes": 60, "action": {"kind": "generator", "generatorId": "none"}}, "action.generatorId"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_stored(desk: Desk, arguments: dict[str, Any], field: str) -> None:
    refused = desk.call(**arguments)

    assert refused.code == "invalid_input", refused
    assert field in str(refused.error)
    assert desk.rows == []


def test_a_skill_may_be_scheduled_with_an_input_that_fits_and_its_own_name(desk: Desk) -> None:
    desk.made(everyMinutes=60, action={"kind": "skill", "skill": "math__evaluate", "input": {"expression": "1+1"}})
    desk.made(everyMinutes=60, action={"kind": "skill", "skill": "code.execute", "input": {"code": "print(1)"}})

    first, second = desk.rows
    assert first.action["skill"] == "math.evaluate"
    assert first.action["input"] == {"expression": "1+1", "variables": {}, "precision": 15}
    assert second.action["skill"] == "code.execute"


def test_nobody_schedules_what_they_may_not_call(desk: Desk) -> None:
    action = {"kind": "skill", "skill": "code.execute", "input": {"code": "print(1)"}}
    refused = desk.call(Caller("run", run_id="r"), allowed=frozenset({"math.evaluate"}), everyMinutes=60, action=action)

    assert refused.code == "invalid_input" and "not offered" in str(refused.error)


GENERATOR = {
    "id": "g",
    "name": "Report",
    "name_key": "report",
    "description": "",
    "inputs": [{"key": "topic", "label": "Topic", "type": "text", "required": True}],
    "steps": [{"key": "write", "title": "Write", "role": "writer", "instruction": "Write of {{topic}}."}],
    "version": 1,
    "created_at": 1,
}


def test_a_generator_has_to_be_ones_own_and_its_inputs_to_fit(desk: Desk) -> None:
    desk.database.write(lambda c: c.execute(insert(generators).values(GENERATOR | {"owner_id": "local"})))
    action = {"kind": "generator", "generatorId": "g", "inputs": {"topic": "rain"}}

    assert desk.call(everyMinutes=60, action=action).ok
    unfit = desk.call(everyMinutes=60, action=action | {"inputs": {}})
    foreign = desk.call(Caller("person", owner_id="else"), everyMinutes=60, action=action)
    assert (unfit.code, foreign.code) == ("invalid_input", "invalid_input")
    assert "topic" in str(unfit.error)


def test_an_owner_has_fifty_active_ones_at_most(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "MAX_ACTIVE", 2)
    desk.made(everyMinutes=60)
    desk.made(everyMinutes=60)

    assert desk.call(everyMinutes=60).code == "quota"
    assert desk.call(Caller("person", owner_id="else"), everyMinutes=60).ok
    desk.database.write(lambda c: c.execute(update(schedules).values(status="done")))
    assert desk.call(everyMinutes=60).ok


def test_a_call_that_runs_again_after_a_crash_finds_its_first_row(desk: Desk) -> None:
    caller = Caller("run", run_id="r", call_id="c", agent_id="writer")
    first, again = desk.call(caller, everyMinutes=60), desk.call(caller, everyMinutes=60)

    assert first.ok and first.output == again.output
    assert [(row.agent_id, row.owner_id) for row in desk.rows] == [("writer", "local")]


def test_without_schedules_nothing_is_claimed() -> None:
    result = SKILLS.invoke(
        "schedule.create", {"title": "x", "everyMinutes": 5, "action": PROMPT}, SkillContext(Caller("person"))
    )

    assert result.ok
    assert (result.output["wired"], result.output["scheduleId"], result.output["nextRuns"]) == (False, None, [])


def test_a_zone_of_the_settings_has_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        Settings(home=tmp_path, timezone="Nowhere", _env_file=None)  # type: ignore[call-arg]
