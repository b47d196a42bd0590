"""`officina schedules`: what agents and people let begin later is seen, paused, let go on, and deleted."""

import json

import pytest

from orchestrator import timetable
from orchestrator.settings import Settings
from registry.skills import catalogue
from tests.commands import Run

LATER = {"title": "Weekly", "cron": "0 7 * * 1", "timezone": "UTC", "action": {"kind": "prompt", "text": "Report."}}


@pytest.fixture
def schedule_id(settings: Settings) -> str:
    new = timetable.NewSchedule.model_validate(LATER)
    return str(timetable.create(settings, catalogue.build(), new)["id"])


def test_looking_makes_no_database(officina: Run) -> None:
    assert officina("schedules", "list").returncode == 1


def test_a_schedule_is_shown_paused_let_go_on_and_deleted(officina: Run, schedule_id: str) -> None:
    (listed,) = json.loads(officina("schedules", "list", "--json").stdout)
    assert (listed["id"], listed["status"]) == (schedule_id, "active")
    assert "Weekly" in officina("schedules", "list").stdout
    short = schedule_id[-6:]
    shown = json.loads(officina("schedules", "show", short, "--json").stdout)
    assert (shown["action"]["text"], shown["firings"]) == ("Report.", [])
    assert "prompt: Report." in officina("schedules", "show", short).stdout
    assert officina("schedules", "pause", short).stdout == f"{schedule_id} paused\n"
    assert officina("schedules", "resume", short).stdout.startswith(f"{schedule_id} active, next ")
    assert officina("schedules", "delete", short).stdout == f"{schedule_id} deleted\n"
    for word in ("show", "pause", "resume", "delete"):
        gone = officina("schedules", word, short)
        assert gone.returncode == 1 and "unknown_schedule" in gone.stderr
    assert "no schedules" in officina("schedules", "list").stdout
