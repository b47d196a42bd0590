"""Schedules on real workers: made by an agent, fired by the clock in the worker, asked about when due."""

from pathlib import Path
from typing import Any

from sqlalchemy import select, update

from orchestrator import saved
from orchestrator.signals import answer
from orchestrator.store.database import get_database, now_ms
from orchestrator.store.kept import firings, schedules
from registry.generators import Generator
from registry.skills import catalogue
from tests.projects import Watched, start, task
from tests.support import eventually


def test_what_an_agent_schedules_runs_when_due_and_still_asks(tmp_path: Path, live_settings, worker_process) -> None:
    worker_process(live_settings, STAND_IN="true").ready()
    world: dict[str, Any] = {"kind": "skill", "skill": "code.execute", "input": {"code": "print('$input.text')"}}
    args = {"title": "Later", "everyMinutes": 60, "maxRuns": 1, "action": world}
    turns = [{"calls": [{"name": "schedule.create", "args": args}]}, {"say": "planned"}]
    plan = [task("a", skills=["schedule.create", "code.execute"])]
    made = Watched(live_settings, start(tmp_path / "p", live_settings, plan, {"tasks": {"a": turns}}).project_id)
    assert made.ended() == "completed"
    (told,) = made.kinds("tool.result")
    assert told["isError"] is False, told
    assert told["output"]["wired"] is True

    database = get_database(live_settings)
    database.write(lambda c: c.execute(update(schedules).values(next_run_at=now_ms())))

    def fired() -> Any:
        with database.read() as connection:
            return connection.execute(select(firings.c.project_id).where(firings.c.result == "fired")).scalar()

    project = Watched(live_settings, eventually(fired, 20))
    asked = project.open_signal(30)
    assert (asked.kind, asked.action["skill"], asked.action["input"]["code"]) == (
        "decision",
        "code.execute",
        "print('$input.text')",
    )
    answer(live_settings, asked.id, option="No", by="test")
    assert project.ended() == "completed"
    assert project.kinds("schedule.fired")[0]["title"] == "Later"
    with database.read() as connection:
        assert connection.execute(select(schedules.c.status)).scalar() == "done"


def test_a_generator_that_is_due_runs_to_its_end_and_each_step_reads_those_before(
    tmp_path: Path, live_settings, worker_process
) -> None:
    worker_process(live_settings, STAND_IN="true").ready()
    inputs = [{"key": "topic", "label": "Topic", "type": "text", "required": True}]
    first = {"key": "look", "title": "Look", "role": "researcher", "instruction": "Look up {{topic}}."}
    second = {"key": "write", "title": "Write", "role": "writer", "instruction": "Write.", "dependsOn": ["look"]}
    kept = Generator.model_validate({"name": "Weekly", "inputs": inputs, "steps": [first, second]})
    generator = saved.create_generator(live_settings, catalogue.build(), kept)
    action = {"kind": "generator", "generatorId": generator["id"], "inputs": {"topic": "bees"}}
    args = {"title": "Weekly", "everyMinutes": 60, "maxRuns": 1, "action": action}
    turns = [{"calls": [{"name": "schedule.create", "args": args}]}, {"say": "planned"}]
    plan = [task("a", skills=["schedule.create"])]
    made = Watched(live_settings, start(tmp_path / "p", live_settings, plan, {"tasks": {"a": turns}}).project_id)
    assert made.ended() == "completed", made.kinds("tool.result")
    database = get_database(live_settings)
    database.write(lambda c: c.execute(update(schedules).values(next_run_at=now_ms())))

    def fired() -> Any:
        with database.read() as connection:
            return connection.execute(select(firings.c.project_id).where(firings.c.result == "fired")).scalar()

    project = Watched(live_settings, eventually(fired, 20))
    assert project.ended() == "completed", [(one["key"], one["status"], one["error"]) for one in project.shown["tasks"]]
    assert [one["key"] for one in project.shown["tasks"]] == ["look", "write"]
