"""Forks and early wake-ups on real workers, through the command line and the moves beneath it."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator import control
from registry.errors import Refused
from tests.projects import Watched, start, task
from tests.support import eventually


def sleeper(ms: int) -> dict[str, Any]:
    """An agent that sleeps, then speaks."""
    nodes = {
        "s": {"type": "core:start"},
        "w": {"type": "control:wait", "delayMs": ms},
        "t": {"type": "llm:generate", "tools": []},
        "e": {"type": "core:end"},
    }
    edges = [{"from": a, "to": b} for a, b in ("sw", "wt", "te")]
    return {"id": "sleeper", "instructions": "Sleep.", "graph": {"nodes": nodes, "edges": edges}}


def test_a_fork_goes_on_after_the_calls_that_were_made_and_makes_none_again(
    tmp_path: Path, live_settings, worker_process
) -> None:
    worker_process(live_settings).ready()
    write = {"calls": [{"name": "files.write", "args": {"path": "once.txt", "content": "x"}}]}
    read = {"calls": [{"name": "files.read", "args": {"path": "once.txt"}}]}
    turns = {"a": [write, read, {"say": "{{ results | map(attribute='name') | join(' ') }}"}]}
    made = start(tmp_path / "p", live_settings, [task("a"), task("b", after=["a"])], {"tasks": turns})
    project = Watched(live_settings, made.project_id)
    assert project.ended() == "completed"
    (first,) = [run for run in project.runs if run.task_id == project.tasks["a"].id]
    wrote = next(e for e in project.trace if e.kind == "tool.result" and e.data["name"] == "files.write")
    done = next(e for e in project.trace if e.seq > wrote.seq and e.kind == "node.completed")

    new_id = control.fork(live_settings, first.id, done.seq, by="the test")

    assert project.ended() == "completed"
    mine = [event for event in project.trace if event.run_id == new_id]
    assert [e.data["name"] for e in mine if e.kind == "tool.call"] == ["files.read"]
    assert project.tasks["a"].output == "files.write files.read", "what was done before the cut is in its history"
    assert project.tasks["b"].status == "completed"
    assert [event.seq for event in project.trace] == list(range(1, len(project.trace) + 1))


def test_a_fork_from_a_question_asks_anew_and_another_answer_makes_another_story(
    tmp_path: Path, live_settings, worker_process
) -> None:
    from orchestrator.signals import answer

    worker_process(live_settings).ready()
    look = {"name": "files.list", "args": {}}
    turns = {
        "a": [
            {"calls": [look, {"name": "code.execute", "args": {"code": "print(6*7)"}}]},
            {"say": "{{ results[1].text }}"},
        ]
    }
    plan = [task("a", role="engineer", skills=["code.execute"])]
    project = Watched(live_settings, start(tmp_path / "p", live_settings, plan, {"tasks": turns}).project_id)
    asked = project.open_signal()
    answer(live_settings, asked.id, option="Do it", by="the test")
    assert project.ended() == "completed"
    assert "42" in project.tasks["a"].output
    parked = next(e for e in project.trace if e.kind == "task.status" and e.data["status"] == "needs_input")

    new_id = control.fork(live_settings, project.runs[0].id, parked.seq, by="the test")
    again = project.open_signal()
    assert (again.run_id, again.digest) == (new_id, asked.digest)
    answer(live_settings, again.id, option="No", by="the test")

    assert project.ended() == "completed"
    assert project.tasks["a"].output.startswith("denied: a person said no")
    listed = [e for e in project.trace if e.kind == "tool.call" and e.data["name"] == "files.list"]
    assert [e.run_id for e in listed] == [project.runs[0].id], "what had its result by then is not done again"


def test_a_person_ends_a_sleep(tmp_path: Path, live_settings, worker_process) -> None:
    worker_process(live_settings).ready()
    script = {"tasks": {"a": [{"say": "awake"}]}}
    agents = {"sleeper": sleeper(3_600_000)}
    made = start(tmp_path / "p", live_settings, [task("a", agent="sleeper")], script, agents=agents)
    project = Watched(live_settings, made.project_id)
    run = eventually(lambda: next((r for r in project.runs if r.waiting_on == "timer"), None), 20)

    control.wake(live_settings, run.id, by="the test")

    assert project.ended() == "completed"
    assert project.tasks["a"].output == "awake"
    assert [d["by"] for d in project.kinds("wait.ended")] == ["answer"]
    with pytest.raises(Refused, match="has ended"):
        control.wake(live_settings, run.id, by="the test")


def test_the_commands_fork_and_answer_name_what_is_wrong(officina, project) -> None:
    """On the example in the middle of its work, with no worker."""
    shown = json.loads(officina("show", project.id, "--json").stdout)
    runs = {t["key"]: t["runs"][0]["id"] for t in shown["tasks"] if t["runs"]}

    busy = officina("fork", runs["monthly"], "--at", "1")
    assert (busy.returncode, busy.stderr.split(":")[0]) == (1, "task_running")
    empty = officina("fork", runs["profile"], "--at", "1")
    assert (empty.returncode, empty.stderr.split(":")[0]) == (1, "unknown_checkpoint")
    assert "retry begins it anew" in empty.stderr
    assert officina("fork", "no-run!", "--at", "1").returncode == 1
    assert officina("fork", runs["profile"]).returncode == 2

    awake = officina("answer", runs["monthly"])
    assert (awake.returncode, awake.stderr.split(":")[0]) == (1, "not_sleeping")
    signal = officina("answer", project.signal("yearly"))
    assert (signal.returncode, "give an option" in signal.stderr) == (2, True)
