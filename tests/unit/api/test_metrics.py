"""What Prometheus is told, and that it says nothing of anybody's work."""

from prometheus_client.parser import text_string_to_metric_families

from orchestrator.settings import Settings
from tests.rows import Project
from tests.studio import asked, bearer, key_of


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


def test_what_waits_runs_fails_and_costs_is_told_and_no_name_is(settings: Settings) -> None:
    project = Project(settings, "A secret plan")
    project.task("a", "queued", run={"wakes": 1})
    project.task("b", "running", run={"steps": 4, "running_ms": 2_000, "cost_micro": 1_500_000, "tokens": 70})
    project.task("c", "needs_input", run={"waiting_on": "signals"})
    project.task("d", "waiting", run={"waiting_on": "backoff", "backoffs": 3})
    far = 4_000_000_000_000
    project.task("e", "failed", run={"error": {"code": "timed_out", "message": "m"}, "ended_at": far})
    project.signal("c")

    found, text = scraped(settings)

    assert found["officina_runs_open", "queued"] == 1
    assert found["officina_queue_oldest_seconds", ""] >= 0
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
