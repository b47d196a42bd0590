"""What Prometheus is told, and that it says nothing of anybody's work."""

import json
import re
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import text as sql

from orchestrator import metrics, tallies
from orchestrator.settings import Settings
from orchestrator.store import workers
from orchestrator.store.database import Database, get_database
from registry.ids import new_id
from registry.queues import QueueRule
from tests.rows import Project
from tests.studio import asked, bearer, key_of
from tests.support import eventually

DASHBOARD = Path(__file__).parents[3] / "deploy" / "grafana" / "officina.json"


def scraped(settings: Settings) -> tuple[dict[tuple[str, str], float], str]:
    """Value of each sample by its name and its one label, and the whole text."""
    with asked(settings, bearer(key_of(settings, scopes=["read"]))) as client:
        reply = client.get("/metrics")
    assert reply.status_code == 200
    found = {}
    for family in text_string_to_metric_families(reply.text):
        for sample in family.samples:
            found[sample.name, next(iter(sample.labels.values()), "")] = sample.value
    return found, reply.text


def test_an_empty_installation_has_zeros(settings: Settings) -> None:
    found, _ = scraped(settings)

    assert found["officina_runs_open", "queued"] == 0
    assert found["officina_steps_total", ""] == 0
    assert found["officina_slots", ""] == 0
    assert found["officina_queue_slots", "default"] == 0


@pytest.fixture
def ruled(settings: Settings) -> Settings:
    """An installation with a queue of its own for code."""
    return settings.model_copy(update={"queues": (QueueRule(queue="code", needs=("code.execute",)),)})


def test_each_queue_has_its_work_and_its_slots_and_one_that_nobody_knows_has_no_name(ruled: Settings) -> None:
    project = Project(ruled, "Queues")
    project.task("a", "running", run={})
    for key in ("b", "c"):
        project.task(key, "running", run={"queue": "code"})
    for number in range(3):
        project.task(f"d{number}", "queued", run={"wakes": 1, "queue": f"once-{number}"})
    for pid, queues in enumerate((None, ["code"], ["code", "default"])):
        about = {"id": new_id(), "host": "h", "pid": pid, "slots": 8, "queues": queues}
        get_database(ruled).write(lambda c, about=about: workers.register(c, about))

    found, text = scraped(ruled)

    assert (found["officina_queue_active", "default"], found["officina_queue_active", "code"]) == (1, 2)
    assert (found["officina_queue_slots", "default"], found["officina_queue_slots", "code"]) == (16, 16)
    assert (found["officina_queue_workers", "default"], found["officina_queue_workers", "code"]) == (2, 2)
    assert (found["officina_queue_depth", "other"], found["officina_queue_workers", "other"]) == (3, 0)
    assert "once-" not in text, "labels are as many as queues are set"


def test_what_waits_runs_fails_and_costs_is_told_and_no_name_is(ruled: Settings) -> None:
    settings = ruled
    project = Project(settings, "A secret plan")
    project.task("a", "queued", run={"wakes": 1})
    for key in ("a1", "a2"):
        project.task(key, "queued", run={"wakes": 1, "queue": "code"})
    project.task("b", "running", run={"steps": 4, "running_ms": 2_000, "cost_micro": 1_500_000, "tokens": 70})
    project.task("c", "needs_input", run={"waiting_on": "signals"})
    project.task("d", "waiting", run={"waiting_on": "backoff", "backoffs": 3})
    far = 4_000_000_000_000
    project.task("e", "failed", run={"error": {"code": "timed_out", "message": "m"}, "ended_at": far})
    project.signal("c")

    found, text = scraped(settings)

    assert found["officina_runs_open", "queued"] == 3
    assert found["officina_queue_oldest_seconds", "default"] >= 0
    assert (found["officina_queue_depth", "default"], found["officina_queue_depth", "code"]) == (1, 2)
    assert (found["officina_runs_parked", "signals"], found["officina_runs_parked", "backoff"]) == (1, 1)
    assert (found["officina_steps_total", ""], found["officina_running_seconds_total", ""]) == (4, 2)
    assert (found["officina_cost_usd_total", ""], found["officina_tokens_total", ""]) == (1.5, 70)
    assert (found["officina_model_backoffs", ""], found["officina_model_errors_open", ""]) == (1, 3)
    assert found["officina_runs_failed_last_hour", "timed_out"] == 1
    assert found["officina_runs_ended_total", "failed"] == 1
    assert found["officina_signals_open", "decision"] == 1
    assert found["officina_projects", "running"] == 1
    assert "secret" not in text and "Nadia" not in text


def test_without_a_key_nothing_is_told(settings: Settings) -> None:
    with asked(settings) as client:
        assert client.get("/metrics").status_code == 401


def test_the_dashboard_asks_for_metrics_that_exist_and_shows_each_of_them(settings: Settings) -> None:
    Project(settings, "One").task("a", "running", run={})
    _, text = scraped(settings)
    there = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    shown = {
        name
        for panel in panels
        for target in panel.get("targets", [])
        for name in re.findall(r"officina_\w+", target["expr"])
    }

    assert shown - there == set()
    assert there - shown == set()


def test_open_runs_are_found_without_a_look_at_those_that_ended(settings: Settings) -> None:
    database = get_database(settings)
    with database.read() as connection:
        asked = metrics.open_runs().compile(connection, compile_kwargs={"literal_binds": True})
        plan = [row.detail for row in connection.execute(sql(f"EXPLAIN QUERY PLAN {asked}"))]

    assert [line for line in plan if line.startswith("SCAN runs")] == []
    assert any("ix_runs_project_id_status_wakes (project_id=? AND status=?)" in line for line in plan), plan


def test_sums_that_take_long_are_counted_behind_the_scrapes(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, database = Project(settings, "Many"), get_database(settings)
    project.task("a", "running", run={"steps": 4})
    first = tallies.of(database)
    counted, may_end = [], threading.Event()
    count = tallies.count

    def slowly(given: Database) -> tallies.Tally:
        counted.append(given)
        may_end.wait(10)
        return count(given)

    monkeypatch.setattr(tallies, "count", slowly)
    tallies._kept[database].tally = replace(first, took_s=3, at=time.monotonic() - 149)
    assert tallies.of(database).sums["steps"] == 4
    assert counted == [], "a fiftieth of the time at most"
    tallies._kept[database].tally = replace(first, took_s=3, at=time.monotonic() - 151)
    project.task("b", "running", run={"steps": 5})
    assert [tallies.of(database).sums["steps"] for _ in range(3)] == [4, 4, 4], "nobody waits for it"

    may_end.set()

    eventually(lambda: tallies.of(database).sums["steps"] == 9)
    assert counted == [database], "one at a time"
