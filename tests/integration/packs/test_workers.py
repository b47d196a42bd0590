"""The packs on real workers: what is left of a command, an edit and a job when the worker that began them dies."""

import json
import secrets
from pathlib import Path
from typing import Any

import pytest

from orchestrator import control
from orchestrator.settings import Settings
from tests.integration.sandbox.boxes import processes_with
from tests.projects import Watched, start, task
from tests.support import eventually

pytestmark = pytest.mark.slow

#: Recovery within a lease and a tick, both short here.
QUICK = {"LIMITS__LEASE_S": "2", "LIMITS__RENEW_S": "0.5", "LIMITS__CLOCK_TICK_S": "0.2"}
#: Seconds a busy machine may take for anything that is not measured here.
PATIENCE = 60

BUILDER: dict[str, Any] = {
    "name": "Builder",
    "instructions": "Build.",
    "packs": {"core": True, "files": True, "shell": True, "process_poll": True, "process_kill": True},
    "permissions": {"fs.write": "allow", "process": "allow"},
}
WRITE = {"name": "write_file", "args": {"path": "a.txt", "content": "one\n"}}
EDIT = {"name": "edit_file", "args": {"path": "a.txt", "old_string": "one", "new_string": "one one"}}


def begun(folder: Path, settings: Settings, *turns: list[dict[str, Any]]) -> Watched:
    script = {"tasks": {"build": [*({"calls": calls} for calls in turns), {"say": "done"}]}}
    plan = [task("build", agent="builder")]
    return Watched(settings, start(folder, settings, plan, script, agents={"builder": BUILDER}).project_id)


def results(project: Watched) -> list[tuple[str, str]]:
    return [(r["name"], r["outcome"]) for r in project.kinds("tool.result")]


def shell(command: str, **arguments: Any) -> dict[str, Any]:
    return {"name": "shell", "args": {"command": command, **arguments}}


def file_of(project: Watched, path: str) -> Path:
    return project.settings.workspaces / str(project.shown["workspace"]) / path


def test_files_commands_and_jobs_work_on_a_worker(tmp_path: Path, live_settings, worker_process) -> None:
    worker_process(live_settings, **QUICK).ready()
    project = begun(
        tmp_path / "p",
        live_settings,
        [WRITE],
        [EDIT],
        [shell("cat a.txt; echo two >> a.txt")],
        [shell("echo in the background; sleep 300", block_until_ms=2000)],
        [{"name": "grep", "args": {"pattern": "two"}}],
    )
    assert project.ended(PATIENCE) == "completed"
    assert [outcome for _, outcome in results(project)] == ["ok"] * 5
    said = [r["output"] for r in project.kinds("tool.result")]
    assert said[2]["stdout"] == "one one\n"
    assert (said[3]["status"], said[3]["output"]) == ("running", "in the background\n")
    assert said[4]["matches"] == [{"file": "a.txt", "line": 2, "text": "two"}]


@pytest.mark.parametrize(("point", "ran"), [pytest.param("begun", 0, marks=pytest.mark.long), ("acted", 1)])
@pytest.mark.parametrize(
    "call",
    [pytest.param(EDIT, marks=pytest.mark.long, id="edit_file"), pytest.param(shell("echo x >> ran"), id="shell")],
)
def test_a_call_that_had_begun_when_its_worker_died_is_unknown_and_never_repeated(
    tmp_path: Path, live_settings, worker_process, call: dict[str, Any], point: str, ran: int
) -> None:
    count = 1 if point == "begun" else 2  # the write has acted before
    worker_process(live_settings, CRASHPOINTS=f"{point}={count}", **QUICK).ready()
    project = begun(tmp_path / "p", live_settings, [WRITE], [call])
    eventually(lambda: [r for r in results(project) if r[0] == "write_file"], PATIENCE)
    worker_process(live_settings, **QUICK).ready()
    assert project.ended(PATIENCE) == "completed"
    assert results(project) == [("write_file", "ok"), (call["name"], "unknown")]
    if call is EDIT:
        assert file_of(project, "a.txt").read_text() == ("one one\n" if ran else "one\n")
    else:
        assert (file_of(project, "ran").read_text() if file_of(project, "ran").exists() else "") == "x\n" * ran


def sleeper(mark: str) -> str:
    return f"echo so far; sh -c 'sleep 300; true' {mark}"


def job_of(project: Watched) -> str:
    found = eventually(lambda: [r for r in project.kinds("tool.result") if r["name"] == "shell"], PATIENCE)
    return str(found[0]["output"]["jobId"])


def test_a_job_dies_with_its_worker_and_the_run_that_goes_on_is_told(
    tmp_path: Path, live_settings, worker_process
) -> None:
    job_mark, call_mark = secrets.token_hex(8), secrets.token_hex(8)
    first = worker_process(live_settings, **QUICK).ready()
    project = begun(
        tmp_path / "p",
        live_settings,
        [shell(sleeper(job_mark), run_in_background=True)],
        [shell(sleeper(call_mark), timeout_ms=600_000)],
        [{"name": "process_poll", "args": {"job_id": "{{ results[0].output.jobId }}"}}],
    )
    job = job_of(project)
    eventually(lambda: processes_with(job_mark) and processes_with(call_mark), PATIENCE)
    first.kill()
    eventually(lambda: not processes_with(job_mark) and not processes_with(call_mark))
    state = json.loads((file_of(project, ".officina") / "jobs" / job / "job.json").read_text())
    assert state["status"] == "running", "nobody was left to write its end"

    worker_process(live_settings, **QUICK).ready()
    assert project.ended(PATIENCE) == "completed"
    assert results(project) == [("shell", "ok"), ("shell", "unknown"), ("process_poll", "ok")]
    assert project.kinds("tool.result")[2]["output"]["status"] == "lost"


def test_a_job_ends_when_its_project_is_cancelled(tmp_path: Path, live_settings, worker_process) -> None:
    mark = secrets.token_hex(8)
    worker_process(live_settings, **QUICK).ready()
    project = begun(
        tmp_path / "p",
        live_settings,
        [shell(sleeper(mark), run_in_background=True)],
        [shell("sleep 300", timeout_ms=600_000)],
    )
    job = job_of(project)
    eventually(lambda: processes_with(mark), PATIENCE)
    control.cancel(live_settings, project.id, by="the test")
    eventually(lambda: not processes_with(mark))
    state = file_of(project, ".officina") / "jobs" / job / "job.json"
    eventually(lambda: json.loads(state.read_text())["status"] == "killed")


def test_a_job_ends_with_its_task(tmp_path: Path, live_settings, worker_process) -> None:
    mark = secrets.token_hex(8)
    worker_process(live_settings, **QUICK).ready()
    project = begun(tmp_path / "p", live_settings, [shell(sleeper(mark), run_in_background=True)])
    assert project.ended(PATIENCE) == "completed"
    eventually(lambda: not processes_with(mark))
