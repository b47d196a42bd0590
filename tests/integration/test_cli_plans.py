"""A sentence on the command line: planned, looked at, changed, started, delivered."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from orchestrator.producer import submit
from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from orchestrator.terminal import rendering, scene
from orchestrator.terminal.activity import Activity
from tests.commands import Ended, Run

BRIEF = "Write a one-page guide to keeping sourdough alive"
FILE: dict[str, Any] = {
    "title": "Two steps",
    "agents": {"mine": {"name": "Own One", "instructions": "Mine.", "tier": "deep"}},
    "tasks": [
        {"key": "a", "role": "analyst", "instruction": "Begin.\n\nThen: \"go\" on, 'yes' # no comment"},
        {"key": "b", "role": "writer", "instruction": "End.", "dependsOn": ["a"], "agent": "mine", "retries": 0},
    ],
}


@pytest.fixture
def live(officina: Run, live_settings: Settings) -> Run:
    """The command in the home, and on the database and broker, of the live settings."""
    ways = {
        "OFFICINA_HOME": str(live_settings.home),
        "OFFICINA_DATABASE_URL": str(live_settings.database_url),
        "OFFICINA_BROKER_URL": str(live_settings.broker_url),
    }

    def run(*words: str, **more: str) -> Ended:
        return officina(*words, **(ways | more))

    return run


@pytest.fixture
def waiting(officina: Run, tmp_path: Path) -> str:
    """The id of a project whose plan waits."""
    (tmp_path / "project.json").write_text(json.dumps(FILE))
    ended = officina("submit", "project.json", "--plan-only", "--rehearse", "--json")
    assert ended.returncode == 0, ended.stderr
    return str(json.loads(ended.stdout)["id"])


def test_a_sentence_is_planned_assembled_run_and_delivered(live: Run, live_settings: Settings, worker_process) -> None:
    worker_process(live_settings).ready()

    ended = live("submit", BRIEF, "--rehearse", "--watch")

    assert ended.returncode == 0, ended.stderr
    assert "completed: 3 of 3 tasks" in ended.stdout
    (line,) = [line for line in ended.stdout.splitlines() if "docs/final.md  " in line]
    assert BRIEF in Path(line.split("  ")[0]).read_text()
    events = [json.loads(line) for line in live("trace", ended.stdout.split()[0], "--json").stdout.splitlines()]
    (team,) = [event["data"]["members"] for event in events if event["kind"] == "team.assembled"]
    assert [one["role"] for one in team] == ["lead", "researcher", "writer", "editor"]


def test_a_sentence_can_be_looked_at_first(live: Run, live_settings: Settings, worker_process) -> None:
    worker_process(live_settings).ready()

    made = live("submit", BRIEF, "--rehearse", "--plan-only", "--json")

    assert made.returncode == 0, made.stderr
    found = json.loads(made.stdout)
    assert (found["status"], found["tasks"], found["plan"]["goal"]) == ("planning", {}, BRIEF)
    assert [task["key"] for task in found["plan"]["tasks"]] == ["research", "write", "edit"]
    started = live("start", found["id"], "--watch")
    assert started.returncode == 0, started.stderr
    assert "completed: 3 of 3 tasks" in started.stdout


def test_show_and_list_say_that_a_plan_waits_and_what_to_do(officina: Run, waiting: str) -> None:
    shown = officina("show", waiting).stdout

    assert f"officina start {waiting}" in shown
    assert "Own One" not in shown
    assert [word in shown for word in ("analyst", "mine", "as its agent")] == [True] * 3
    assert "0 of 0" not in shown
    assert "plan ready" in officina("list").stdout


def test_a_plan_goes_out_and_comes_back_as_it_was(officina: Run, waiting: str, tmp_path: Path) -> None:
    before = json.loads(officina("show", waiting, "--json").stdout)["plan"]["tasks"]
    (tmp_path / "plan.yaml").write_text(officina("show", waiting, "--plan").stdout)
    written = yaml.safe_load((tmp_path / "plan.yaml").read_text())["tasks"]
    assert [one["instruction"] for one in written] == [one["instruction"] for one in FILE["tasks"]]

    begun = officina("start", waiting, "--plan", "plan.yaml", "--json")

    assert begun.returncode == 0, begun.stderr
    assert list(json.loads(begun.stdout)["tasks"]) == ["a", "b"]
    after = json.loads(officina("show", waiting, "--json").stdout)
    assert [(task["key"], task["title"], task["dependsOn"]) for task in after["tasks"]] == [
        (task["key"], task["title"], task["dependsOn"]) for task in before
    ]
    assert "plan" not in after


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("tasks: []", "tasks: too_short"),
        ("- a", "wrong_type: a plan is an object"),
        ("tasks:\n- {key: a, role: writer, instruction: x, dependson: []}", 'did you mean "dependsOn"?'),
        ("tasks: {", "invalid_yaml"),
    ],
)
def test_a_plan_that_cannot_be_used_is_wrong_use_and_starts_nothing(
    officina: Run, waiting: str, tmp_path: Path, plan: str, said: str
) -> None:
    (tmp_path / "plan.yaml").write_text(plan)

    ended = officina("start", waiting, "--plan", "plan.yaml")

    assert (ended.returncode, said in ended.stderr) == (2, True), ended.stderr
    assert json.loads(officina("show", waiting, "--json").stdout)["status"] == "planning"


def test_a_second_start_is_refused(officina: Run, waiting: str) -> None:
    assert officina("start", waiting).returncode == 0

    again: list[Any] = [officina("start", waiting), officina("show", waiting, "--plan")]

    assert [one.returncode for one in again] == [1, 1]
    assert again[0].stderr.startswith("already_started: ")
    assert again[1].stderr.startswith("not_planned: ")


@pytest.mark.parametrize("tasks", [None, FILE["tasks"]], ids=["at work", "ready"])
def test_watching_a_project_that_is_planned_says_what_it_waits_for(
    settings: Settings, tmp_path: Path, tasks: Any
) -> None:
    file = {name: value for name, value in FILE.items() if name != "tasks"} | {"brief": BRIEF}
    (tmp_path / "p.json").write_text(json.dumps(file if tasks is None else file | {"tasks": tasks}))
    made = submit(tmp_path / "p.json", settings=settings, rehearse=True, plan_only=True)
    console = Console(width=100, file=io.StringIO())

    with get_database(settings).read() as connection:
        seen = scene.read(connection, made.project_id, settings)
    console.print(rendering.page(seen, Activity(), rendering.Frame(100)))

    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert ("the planner makes tasks of the brief" in shown) is (tasks is None)
    assert (f"officina start {made.project_id}" in shown) is (tasks is not None)
