"""What an agent carries, on real workers: the example of the garden party, and a task for every shipped preset."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestrator.producer import submit
from orchestrator.signals import answer
from orchestrator.states import PROJECT_ENDED
from registry import presets
from tests.projects import Watched, start, task
from tests.support import eventually
from tests.weather import EXAMPLES

SHIPPED = sorted(path.stem for path in presets.SHIPPED.glob("*.json"))


@pytest.mark.slow
def test_the_assistant_plans_delegates_maps_waits_remembers_and_gets_the_conversation_back(
    tmp_path: Path, live_settings: Any, worker_process: Any
) -> None:
    workers = [worker_process(live_settings, WORKER_SLOTS="1") for _ in range(2)]
    for worker in workers:
        worker.ready()
    folder = shutil.copytree(EXAMPLES / "garden-party", tmp_path / "example")
    script = folder / "script.yaml"
    script.write_text(script.read_text(encoding="utf-8") + "delayMs: 100\n", encoding="utf-8")
    project = Watched(live_settings, submit(str(folder / "project.yaml"), settings=live_settings).project_id)

    asked = project.open_signal(30)
    assert (asked.kind, asked.action["skill"]) == ("decision", "agents_create_subagent")
    answer(live_settings, asked.id, option="Do it", by="test")

    carried: set[str] = set()

    def ended() -> bool:
        carried.update(run.worker_id for run in project.runs if run.worker_id is not None)
        return project.status in PROJECT_ENDED

    eventually(ended, 60, 0.02)
    assert project.ended() == "completed"
    assert len(carried) == 2, "both workers had a part in it"
    assert [signal.id for signal in project.signals] == [asked.id], "nothing else asked"
    told = project.kinds("tool.result")
    assert [one["name"] for one in told if one["isError"]] == []
    by_name = {one["name"]: one["output"] for one in told}
    assert set(by_name) >= {"plan_save", "agents_spawn", "map", "wait", "memory_write", "recall_search", "write_file"}

    (delegate,) = {one["agentId"] for one in project.kinds("agent.spawned")}
    kinds = [run.kind for run in project.runs]
    assert (kinds.count("spawn"), kinds.count("item")) == (3, 5)
    assert {run.agent_id for run in project.runs if run.kind == "spawn"} == {delegate}
    (waited,) = [e for e in project.trace if e.kind == "wait.started"]
    (woken,) = [e for e in project.trace if e.kind == "wait.ended"]
    assert waited.data["mode"] == "sleep" and woken.data["by"] == "timer"
    assert waited.data["fireAt"] == by_name["wait"]["waitUntilMs"] <= woken.at
    assert [kept["key"] for kept in by_name["memory_list"]] == ["party-dish"]
    turns = [(one["from"], one["agentId"]) for one in project.kinds("agent.handoff")]
    assert turns == [("assistant", "coder"), ("coder", "assistant")]
    assert [item["status"] for item in by_name["plan_get"]["plan"]["items"]] == ["completed"] * 3
    written = (Path(project.shown["workspace"]) / "shopping.csv").read_text(encoding="utf-8")
    assert written.splitlines()[0] == "what,how much"


@pytest.mark.slow
def test_every_preset_that_ships_completes_a_task_as_its_agent(
    tmp_path: Path, live_settings: Any, worker_process: Any
) -> None:
    worker_process(live_settings, STAND_IN="true").ready()
    plan = [task(name, agent=name, role=name) for name in SHIPPED]
    made = start(tmp_path / "p", live_settings.model_copy(update={"stand_in": True}), plan, {})
    project = Watched(live_settings, made.project_id)

    assert project.ended(60) == "completed"
    assert len(SHIPPED) == 6
    assert {run.agent_id for run in project.runs} == set(SHIPPED)
