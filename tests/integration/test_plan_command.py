"""`officina plan`: what a project would do, told before anything is written."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import Run

PRICED = {
    "OFFICINA_MODEL_BASE_URL": "http://127.0.0.1:9/v1",
    "OFFICINA_MODELS__STANDARD__NAME": "ours",
    "OFFICINA_MODELS__STANDARD__INPUT_PRICE": "1",
    "OFFICINA_MODELS__STANDARD__OUTPUT_PRICE": "10",
}
LONE: dict[str, Any] = {
    "nodes": {
        "start": {"type": "core:start"},
        "ask": {"type": "control:interrupt", "reason": "Go on?"},
        "answer": {"type": "llm:generate", "tools": []},
        "end": {"type": "core:end"},
    },
    "edges": [{"from": "start", "to": "ask"}, {"from": "ask", "to": "answer"}, {"from": "answer", "to": "end"}],
}
AGENT = {"name": "Lone", "role": "lead", "instructions": "x" * 400, "packs": {"core": False}, "graph": LONE}
PROJECT: dict[str, Any] = {
    "title": "Two steps",
    "budget": {"maxCostUsd": 1, "maxParallel": 3},
    "agents": {
        "lone": {"name": "Lone", "role": "lead", "instructions": "x" * 400, "packs": {"core": False}, "graph": LONE}
    },
    "tasks": [
        {"key": "compute", "role": "engineer", "instruction": "Compute it.", "skills": ["code.execute"]},
        {"key": "tell", "role": "lead", "instruction": "y" * 400, "agent": "lone", "dependsOn": ["compute"]},
    ],
}


@pytest.fixture
def plan(officina: Run, tmp_path: Path) -> Any:
    """Runs `plan --json` on a project and gives its forecast."""

    def run(project: dict[str, Any], *words: str, **environment: str) -> dict[str, Any]:
        file = tmp_path / "project.json"
        file.write_text(json.dumps(project))
        ended = officina("plan", str(file), "--json", *words, **environment)
        assert ended.returncode == 0, ended.stderr
        return dict(json.loads(ended.stdout))

    return run


def test_tasks_team_limits_and_who_is_asked_are_told_and_nothing_is_written(plan: Any, tmp_path: Path) -> None:
    found = plan(PROJECT, **PRICED)
    compute, tell = found["tasks"]
    assert [asked["skill"] for asked in compute["asks"]] == ["code.execute"]
    assert (compute["dependsOn"], tell["dependsOn"]) == ([], ["compute"])
    assert tell["stops"] == [{"node": "ask", "reason": "Go on?"}]
    assert compute["limits"] == {
        "turns": 10, "maxSteps": 50, "maxTokens": None, "deadlineMs": 600_000, "policy": "ask", "retries": 1
    }  # fmt: skip
    assert tell["limits"]["turns"] is None
    assert found["limits"] == {"maxCostUsd": 1.0, "maxParallel": 3}
    assert {member["id"]: member["tasks"] for member in found["team"]} == {
        "lone": ["tell"], "lead": [], "engineer": ["compute"]
    }  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project.json"]


def test_costs_are_what_prices_and_limits_say(plan: Any) -> None:
    found = plan(PROJECT, **PRICED)
    compute, tell = (task["costUsd"] for task in found["tasks"])
    # One answer: 100 tokens of prompt, 100 of task, 400 for what it depends on; 60 or 300 tokens of answer.
    assert tell["low"] == pytest.approx((600 * 1 + 60 * 10) / 1e6)
    assert tell["likely"] == pytest.approx((600 * 1 + 300 * 10) / 1e6)
    assert 0 < compute["low"] < compute["likely"] < compute["worst"] == 0.75
    assert compute["bound"] == "OFFICINA_TASK_COST_USD"
    assert found["costUsd"]["likely"] == pytest.approx(compute["likely"] + tell["likely"])
    assert (found["costUsd"]["worst"], found["costUsd"]["bound"]) == (1.0, "the project's maxCostUsd")


def test_a_limit_of_tokens_bounds_the_worst_case(plan: Any) -> None:
    lone = AGENT | {"budget": {"maxTokens": 2_000}}
    found = plan(PROJECT | {"agents": {"lone": lone}}, **PRICED)
    assert found["tasks"][1]["costUsd"]["worst"] == pytest.approx(2_000 * 10 / 1e6, abs=2e-6)


def test_a_price_nobody_knows_is_unknown_and_not_nothing(plan: Any) -> None:
    bare = {name: value for name, value in PRICED.items() if "PRICE" not in name}
    found = plan(PROJECT, **bare)
    assert found["costUsd"] == {"low": None, "likely": None, "worst": None, "bound": None}
    assert "no model with a known price" in found["tasks"][0]["unknown"][0]


def test_a_rehearsal_costs_nothing(plan: Any) -> None:
    found = plan(PROJECT, "--rehearse", **PRICED)
    assert (found["player"], found["costUsd"]["worst"]) == ("stand-in", 0.0)


def test_the_mode_decides_who_is_asked(plan: Any) -> None:
    found = plan(PROJECT, "--mode", "dont_ask", OFFICINA_STAND_IN="true")
    assert [asked["skill"] for asked in found["tasks"][0]["denied"]] == ["code.execute"]
    assert not found["tasks"][0]["asks"]


def test_of_a_brief_only_the_planning_can_be_told(plan: Any) -> None:
    found = plan({"title": "Later", "brief": "Find out what bees do in winter."}, **PRICED)
    assert (found["planned"], found["tasks"]) == (False, [])
    assert found["costUsd"]["low"] > 0
    assert found["costUsd"]["likely"] is None
    assert found["costUsd"]["worst"] == 2.0


def test_a_bad_file_is_refused_as_submit_refuses_it(officina: Run, tmp_path: Path) -> None:
    file = tmp_path / "project.json"
    file.write_text(json.dumps(PROJECT | {"colour": "red", "tasks": [PROJECT["tasks"][1]]}))
    planned, submitted = officina("plan", str(file)), officina("submit", str(file), "--rehearse")
    assert planned.returncode == submitted.returncode == 2
    assert planned.stderr == submitted.stderr
    assert "unknown_dependency" in planned.stderr


def test_a_preset_whose_packs_are_not_here_is_named_with_them(officina: Run, tmp_path: Path) -> None:
    mine = tmp_path / "presets"
    mine.mkdir()
    preset = {"name": "Diver", "role": "diver", "instructions": "Dive.", "packs": {"submarine": True}}
    (mine / "diver.json").write_text(json.dumps(preset))
    file = tmp_path / "project.json"
    file.write_text(json.dumps({"title": "Deep", "tasks": [PROJECT["tasks"][0] | {"agent": "diver"}]}))
    ended = officina("plan", str(file), OFFICINA_PRESETS_ROOT=str(mine))
    assert ended.returncode == 2
    assert "tasks[0].agent: pack_unknown" in ended.stderr
    assert "submarine" in ended.stderr


def test_the_page_shows_the_outline_the_money_and_the_questions(officina: Run, tmp_path: Path) -> None:
    file = tmp_path / "project.json"
    file.write_text(json.dumps(PROJECT))
    shown = officina("plan", str(file), **PRICED).stdout
    for words in ("compute", "tell", "0.7500 USD", "Asks you", "code.execute", "at ask: Go on?", "Team", "worst"):
        assert words in shown
    assert "unknown" in officina("plan", str(file)).stdout
