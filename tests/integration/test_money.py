"""Money: worst cases are reserved before a call, caps hold across runs, unknown prices are flagged and never free."""

from pathlib import Path

import pytest

from orchestrator.records import Limit
from orchestrator.signals import answer
from orchestrator.store import money
from orchestrator.store.database import get_database
from orchestrator.store.money import NoRoom
from tests.projects import Watched, start, task
from tests.stub_model import StubModel
from tests.support import eventually


def test_two_calls_cannot_reserve_the_same_money(settings) -> None:
    database = get_database(settings)
    project = start(settings.home / "p", settings, [task("a"), task("b")], {"tasks": {"a": [], "b": []}})
    one, two = (run.id for run in Watched(settings, project.project_id).runs)
    limits = [Limit("project:x", 100)]

    database.write(lambda c: money.reserve(c, one, "1:0", limits, 60))
    with pytest.raises(NoRoom) as refused:
        database.write(lambda c: money.reserve(c, two, "1:0", limits, 60))

    assert refused.value.refusal.busy, "only the other's reservation is in the way"
    database.write(lambda c: money.settle(c, one, {"1:0": 10}))
    database.write(lambda c: money.reserve(c, two, "1:0", limits, 60))
    database.write(lambda c: money.reserve(c, two, "1:0", limits, 60))  # the same call after a crash
    database.write(lambda c: money.settle(c, two, {"1:0": 60}))
    with database.read() as connection:
        assert money.usage(connection, "project:x").spent_micro == 70


def test_a_full_window_refuses_for_good_and_a_refusal_reserves_nothing(settings) -> None:
    database = get_database(settings)
    project = start(settings.home / "p", settings, [task("a")], {"tasks": {"a": []}})
    (run,) = Watched(settings, project.project_id).runs
    limits = [Limit("a-wide", 1000), Limit("b-narrow", 50)]

    with pytest.raises(NoRoom) as refused:
        database.write(lambda c: money.reserve(c, run.id, "1:0", limits, 60))

    assert (refused.value.refusal.window_id, refused.value.refusal.busy) == ("b-narrow", False)
    database.write(lambda c: money.reserve(c, run.id, "1:0", [Limit("a-wide", 1000)], 1000))


def test_a_project_over_its_cap_asks_and_goes_on_when_told(tmp_path: Path, live_settings, worker_process) -> None:
    look = {"calls": [{"name": "files.list", "args": {}}]}
    with StubModel([look, look, {"text": "done"}]) as stub:
        model = {
            "NAME": "stub",
            "BASE_URL": stub.url,
            "MAX_TOKENS": "500",
            "INPUT_PRICE": "1000",
            "OUTPUT_PRICE": "2000",
        }
        env = {f"MODELS__STANDARD__{name}": value for name, value in model.items()} | {"TASK_COST_USD": "1000"}
        worker_process(live_settings, **env).ready()
        made = start(
            tmp_path / "p", live_settings, [task("a")], {"tasks": {"a": [{"say": "x"}]}}, budget={"maxCostUsd": 5}
        )
        project = Watched(live_settings, made.project_id)

        signal = project.open_signal()
        assert (signal.kind, signal.status) == ("budget", "open")
        assert "USD" in signal.title
        while project.status == "running":
            answer(live_settings, project.open_signal().id, option="Continue", by="the test")
            eventually(lambda: project.status != "running" or any(s.status == "open" for s in project.signals), 20)

    assert project.status == "completed"
    used = [think["usage"] for think in project.kinds("think")]
    spent = sum(u["inputTokens"] * 1000 + u["outputTokens"] * 2000 for u in used)
    assert project.tasks["a"].cost_micro == spent
    assert len(project.kinds("budget.renewed")) == len(project.signals) >= 1
