"""A worker dies in the middle of a project; another carries on. Nothing that finished runs twice."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.signals import answer
from tests.projects import Watched, start, task
from tests.support import alive, eventually

#: Recovery within a lease and a tick, both short here.
QUICK = {"LIMITS__LEASE_S": "2", "LIMITS__RENEW_S": "0.5", "LIMITS__CLOCK_TICK_S": "0.2"}


def slow_script(turns: int) -> dict[str, object]:
    """A task of many small steps: each writes a file of its own and says nothing twice."""
    steps = [
        {"calls": [{"name": "files.write", "args": {"path": f"step-{n}.txt", "content": str(n), "mode": "create"}}]}
        for n in range(turns)
    ]
    return {"delayMs": 150, "tasks": {"long": [*steps, {"say": "{{ results | length }} steps"}]}}


@pytest.mark.long
def test_a_killed_worker_costs_time_and_nothing_else(tmp_path: Path, live_settings, worker_process) -> None:
    first = worker_process(live_settings, **QUICK).ready()
    made = start(tmp_path / "p", live_settings, [task("long")], slow_script(8))
    project = Watched(live_settings, made.project_id)
    eventually(lambda: len(project.kinds("tool.result")) >= 3, 20)

    first.kill()
    assert not alive(first.pid)
    worker_process(live_settings, **QUICK).ready()

    assert project.ended(30) == "completed"
    assert project.tasks["long"].output == "8 steps"
    results = project.kinds("tool.result")
    assert [r["outcome"] for r in results] == ["ok"] * 8, "every step once, none of them a conflict"
    assert [c["by"] for c in project.kinds("run.resumed")] == ["lease"]
    assert Counter(c["attempt"] for c in project.kinds("run.started")) == {1: 2}, "the same run was taken over"
    steps = [c["step"] for c in project.kinds("node.completed")]
    assert steps == sorted(set(steps)), "no completed step is repeated"
    assert [event.seq for event in project.trace] == list(range(1, len(project.trace) + 1))


@pytest.mark.long
def test_a_stopped_worker_that_wakes_up_again_changes_nothing(tmp_path: Path, live_settings, worker_process) -> None:
    zombie = worker_process(live_settings, **QUICK).ready()
    made = start(tmp_path / "p", live_settings, [task("long")], slow_script(6))
    project = Watched(live_settings, made.project_id)
    eventually(lambda: len(project.kinds("tool.result")) >= 2, 20)

    os.killpg(zombie.pid, signal.SIGSTOP)
    worker_process(live_settings, **QUICK).ready()
    assert project.ended(30) == "completed"
    before = len(project.trace)
    os.killpg(zombie.pid, signal.SIGCONT)
    eventually(lambda: "lost" in zombie.output, 10)

    assert len(project.trace) == before
    assert [r["outcome"] for r in project.kinds("tool.result")] == ["ok"] * 6


def test_a_parked_run_survives_its_worker_and_a_flushed_redis(
    tmp_path: Path, live_settings, worker_process, redis
) -> None:
    first = worker_process(live_settings, **QUICK).ready()
    turns = {"a": [{"calls": [{"name": "code.execute", "args": {"code": "print(5)"}}]}, {"say": "{{ results[0].ok }}"}]}
    plan = [task("a", role="engineer", skills=["code.execute"])]
    project = Watched(live_settings, start(tmp_path / "p", live_settings, plan, {"tasks": turns}).project_id)
    asked = project.open_signal()

    first.kill()
    redis.flushall()
    answer(live_settings, asked.id, option="Do it", by="the test")
    redis.flushall()  # the wake-up of the answer is lost as well
    worker_process(live_settings, **QUICK).ready()

    assert project.ended(30) == "completed"
    assert project.tasks["a"].output is not None
    assert [s.execution for s in project.signals] == ["succeeded"]


@pytest.mark.long
def test_sigterm_gives_the_run_back_at_once(tmp_path: Path, live_settings, worker_process) -> None:
    leaver = worker_process(live_settings, LIMITS__LEASE_S="60", LIMITS__CLOCK_TICK_S="0.2").ready()
    made = start(tmp_path / "p", live_settings, [task("long")], slow_script(8))
    project = Watched(live_settings, made.project_id)
    eventually(lambda: len(project.kinds("tool.result")) >= 2, 20)
    worker_process(live_settings, LIMITS__LEASE_S="60", LIMITS__CLOCK_TICK_S="0.2").ready()

    leaver.stop()

    assert project.ended(25) == "completed", "nobody waited for the lease of 60 s"
    assert [r["outcome"] for r in project.kinds("tool.result")] == ["ok"] * 8
    assert {run.claims for run in project.runs} <= {0, 1}
