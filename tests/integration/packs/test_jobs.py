"""`shell` in the background, `process_poll` and `process_kill`, behind each wall of this machine (spec: engine 15)."""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from registry.base import Json
from registry.skills.context import Caller, SkillContext
from tests.integration.packs.conftest import REGISTRY, Desk
from tests.integration.sandbox.boxes import VARIANTS, box_of, processes_with
from tests.support import eventually
from workers.sandbox import jobrecords
from workers.sandbox.jobs import MAX_JOBS, Allowed, JobKeeper


def started(desk: Desk, command: str, **arguments: Json) -> str:
    made = desk.shell(command, run_in_background=True, **arguments)
    assert set(made) == {"jobId", "status"} and made["status"] in ("running", "exited")
    return str(made["jobId"])


def sleeper(mark: str) -> str:
    """A command that sleeps, in a process that is found by its mark."""
    return f"sh -c 'sleep 300; true' {mark}"


def test_a_job_goes_on_by_itself_and_is_polled(desk: Desk) -> None:
    job = started(desk, "echo one; echo two >&2; while [ ! -e go ]; do sleep 0.05; done; echo three; exit 4")
    eventually(lambda: desk.poll(job)["nextSince"] == 8)
    seen = desk.poll(job)
    assert sorted(seen.pop("output").split()) == ["one", "two"]
    assert seen == {
        "jobId": job,
        "status": "running",
        "exitCode": None,
        "since": 0,
        "nextSince": 8,
        "truncated": False,
    }
    desk.ok("write_file", path="go", content="")
    later = desk.poll(job, since=8, wait_ms=10_000)
    assert (later["output"], later["since"], later["nextSince"]) == ("three\n", 8, 14)
    ended = desk.until_ended(job)
    assert (ended["status"], ended["exitCode"], ended["since"]) == ("exited", 4, 0)
    assert desk.poll(job, since=14)["output"] == ""


@pytest.mark.parametrize("how", [{"run_in_background": True}, {"open_in_terminal": True}])
def test_two_words_for_the_background(desk: Desk, how: dict[str, Json]) -> None:
    made = desk.shell("sleep 60", **how)
    assert set(made) == {"jobId", "status"}
    assert desk.ok("process_kill", job_id=made["jobId"])["ok"]


def test_what_it_says_at_first_can_be_waited_for(desk: Desk) -> None:
    made = desk.shell("echo ready; sleep 60", block_until_ms=1500)
    assert (made["status"], made["output"], made["nextSince"]) == ("running", "ready\n", 6)
    ended = desk.shell("echo done; exit 2", block_until_ms=20_000)
    assert (ended["status"], ended["exitCode"], ended["output"]) == ("exited", 2, "done\n")
    at_once = desk.shell("sleep 60", block_until_ms=0)
    assert at_once["status"] == "running"


def test_a_wait_ends_with_more_output_with_the_job_and_with_its_time(desk: Desk) -> None:
    job = started(desk, "sleep 0.5; echo more; sleep 1")
    began = time.monotonic()
    assert desk.poll(job, wait_ms=30_000)["output"] == "more\n"
    assert desk.poll(job, since=5, wait_ms=30_000)["status"] == "exited"
    assert time.monotonic() - began < 15
    other = started(desk, "sleep 60")
    began = time.monotonic()
    assert desk.poll(other, wait_ms=300)["status"] == "running"
    assert 0.3 <= time.monotonic() - began < 5


def test_a_wait_ends_with_its_run(desk: Desk) -> None:
    job = started(desk, "sleep 60")
    began = time.monotonic()
    desk.context.cancelled = lambda: time.monotonic() - began > 0.3
    assert desk.call("process_poll", job_id=job, wait_ms=30_000).code == "cancelled"
    assert time.monotonic() - began < 5


def test_the_last_256000_characters_are_kept(desk: Desk) -> None:
    job = started(desk, "yes '\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4' | head -n 100000; printf end")
    seen = desk.until_ended(job)
    end = 8 * 100_000 + 3
    assert (seen["nextSince"], seen["truncated"]) == (end, True)
    assert (seen["since"], len(seen["output"])) == (end - 256_000, 256_000)
    assert seen["output"].endswith("\u00e4\nend") and "\ufffd" not in seen["output"]
    last = desk.poll(job, since=end - 3)
    assert (last["output"], last["truncated"]) == ("end", False)
    folder = desk.root / ".officina" / "jobs" / job
    assert sum(p.stat().st_size for p in folder.glob("out-*")) < 4 * 256_000
    beyond = desk.poll(job, since=10**9)
    assert (beyond["output"], beyond["since"], beyond["nextSince"]) == ("", end, end)


def test_a_kill_ends_all_that_a_job_started(desk: Desk) -> None:
    mark = secrets.token_hex(8)
    job = started(desk, f"{sleeper(mark)} & setsid {sleeper(mark)} & trap '' TERM INT; sleep 300")
    eventually(lambda: len(processes_with(mark)) >= 2)
    assert desk.ok("process_kill", job_id=job) == {"jobId": job, "status": "killed", "ok": True}
    assert processes_with(mark) == []
    assert desk.ok("process_kill", job_id=job) == {"jobId": job, "status": "killed", "ok": True}
    assert desk.poll(job)["status"] == "killed"


def test_a_job_that_ended_by_itself_is_not_killed(desk: Desk) -> None:
    job = started(desk, "exit 5")
    desk.until_ended(job)
    assert desk.ok("process_kill", job_id=job) == {"jobId": job, "status": "exited", "ok": True}
    assert desk.poll(job)["exitCode"] == 5


@pytest.mark.parametrize(
    "job_id", ["job-000000000000", "../../jobs", "job-..", ".", "job-000000000000/../x", "x" * 100, "\u00fc", "job-\n"]
)
def test_a_job_there_is_not_is_unknown(desk: Desk, job_id: str) -> None:
    assert desk.poll(job_id) == {
        "jobId": job_id,
        "status": "unknown",
        "exitCode": None,
        "output": "",
        "since": 0,
        "nextSince": 0,
        "truncated": False,
    }
    assert desk.ok("process_kill", job_id=job_id) == {"jobId": job_id, "status": "unknown", "ok": False}


def test_another_task_s_job_is_out_of_reach(desk: Desk) -> None:
    job = started(desk, "echo a secret; sleep 60")
    eventually(lambda: desk.poll(job)["output"])
    other = desk.of_task("t2")
    assert (other.poll(job)["status"], other.poll(job)["output"]) == ("unknown", "")
    assert not other.ok("process_kill", job_id=job)["ok"]
    assert desk.poll(job)["status"] == "running"


def test_without_a_workspace_there_are_no_jobs() -> None:
    context = SkillContext(caller=Caller(kind="run"))
    assert REGISTRY.invoke("process_poll", {"job_id": "job-1"}, context).output["status"] == "unknown"
    assert REGISTRY.invoke("process_kill", {"job_id": "job-1"}, context).output["ok"] is False


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("process_poll", {}),
        ("process_poll", {"job_id": ""}),
        ("process_poll", {"jobId": "job-1"}),
        ("process_poll", {"job_id": "job-1", "since": -1}),
        ("process_poll", {"job_id": "job-1", "wait_ms": 30_001}),
        ("process_kill", {}),
        ("process_kill", {"job_id": 1}),
        ("process_kill", {"job_id": "job-1", "signal": "TERM"}),
    ],
)
def test_an_input_that_does_not_fit_is_refused(tool: str, arguments: dict[str, Json]) -> None:
    assert REGISTRY.invoke(tool, arguments, SkillContext(caller=Caller(kind="run"))).code == "invalid_input"


def test_looking_and_ending_ask_nobody() -> None:
    found = {name: REGISTRY.find(name) for name in ("process_poll", "process_kill")}
    assert {name: (one.operations_of(None), one.effect) for name, one in found.items() if one} == {
        "process_poll": ([], "pure"),
        "process_kill": ([], "idempotent"),
    }


@pytest.mark.slow
def test_sixteen_jobs_run_in_a_workspace_and_no_more(desk: Desk) -> None:
    jobs = [started(desk, "sleep 60") for _ in range(MAX_JOBS)]
    for one in (desk, desk.of_task("t2")):
        result = one.call("shell", command="touch ran", run_in_background=True)
        assert (result.code, str(MAX_JOBS) in str(result.error)) == ("quota", True)
    assert desk.ok("process_kill", job_id=jobs[0])["ok"]
    started(desk, "true")
    assert not (desk.root / "ran").exists()
    assert desk.shell("echo still")["stdout"] == "still\n"


def test_of_ended_jobs_the_last_ones_are_kept(desk: Desk) -> None:
    for n in range(MAX_JOBS + 2):
        records = jobrecords.Records(desk.root.resolve())
        old = jobrecords.new_job("t1")
        old.started_at = n
        jobrecords.Kept(records, old).end("exited", 0)
    started(desk, "true")
    assert len(list((desk.root / ".officina" / "jobs").iterdir())) == MAX_JOBS


def test_a_job_that_cannot_start_is_an_error_and_leaves_nothing(desk: Desk) -> None:
    (desk.root / "many").mkdir()
    for n in range(257):
        (desk.root / "many" / f"{n}.pem").touch()
    assert desk.call("shell", command="true", run_in_background=True).code == "quota"
    assert list((desk.root / ".officina" / "jobs").iterdir()) == []


# when a job ends though nobody asked for it


def test_a_job_ends_at_its_time(desk: Desk) -> None:
    named = started(desk, "echo x; sleep 60", timeout_ms=500)
    ended = desk.until_ended(named)
    assert (ended["status"], ended["exitCode"]) == ("timed_out", None)
    assert ended["output"].startswith("x\n") and "its time was over" in ended["output"]
    short = Desk(desk.root, JobKeeper(lambda: desk.box, Allowed(job_s=0.5)), desk.box)
    assert short.until_ended(started(short, "sleep 60"))["status"] == "timed_out"


def test_a_job_ends_with_its_task(desk: Desk) -> None:
    over: set[str] = set()
    keeper = JobKeeper(lambda: desk.box, Allowed(), over=over.__contains__)
    mine, other = Desk(desk.root, keeper, desk.box), Desk(desk.root, keeper, desk.box, task="t2")
    job, theirs = started(mine, "sleep 60"), started(other, "sleep 60")
    over.add("t1")
    began = time.monotonic()
    assert mine.until_ended(job)["status"] == "killed"
    assert time.monotonic() - began < 5
    assert other.poll(theirs)["status"] == "running"
    keeper.close()


def test_a_database_that_cannot_be_asked_ends_no_job(desk: Desk) -> None:
    asked: list[str] = []

    def broken(owner: str) -> bool:
        asked.append(owner)
        raise RuntimeError("no connection")

    keeper = JobKeeper(lambda: desk.box, Allowed(), over=broken)
    mine = Desk(desk.root, keeper, desk.box)
    job = started(mine, "sleep 60")
    eventually(lambda: len(asked) >= 2)
    assert mine.poll(job)["status"] == "running"
    keeper.close()


def test_a_worker_that_leaves_in_order_ends_its_jobs_and_says_so(desk: Desk) -> None:
    mark = secrets.token_hex(8)
    job = started(desk, sleeper(mark))
    eventually(lambda: processes_with(mark))
    desk.keeper.close()
    assert desk.poll(job)["status"] == "killed"
    assert processes_with(mark) == []


KEEPER = """
import sys, time
sys.path[:0] = sys.argv[1].split(":")
from pathlib import Path
from registry.skills.context import Caller
from registry.skills.jobs import Command
from tests.integration.sandbox.boxes import box_of
from workers.sandbox.jobs import JobKeeper
jobs = JobKeeper(lambda: box_of(sys.argv[2])).of(Path(sys.argv[3]))
print(jobs.start(Caller(kind="run", task_id="t1"), Command(sys.argv[4], timeout_s=600)), flush=True)
time.sleep(600)
"""


def keeper_elsewhere(desk: Desk, command: str) -> tuple["subprocess.Popen[str]", str]:
    """Another process of this machine that starts a job and keeps it."""
    variant = next(v for v in VARIANTS if box_of(v) == desk.box)
    path = ":".join(p for p in sys.path if p)
    process = subprocess.Popen(
        [sys.executable, "-c", KEEPER, path, variant, str(desk.root), command],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_another_process_of_the_host_polls_and_ends_a_job(desk: Desk) -> None:
    mark = secrets.token_hex(8)
    process, job = keeper_elsewhere(desk, f"echo hello; {sleeper(mark)}")
    try:
        eventually(lambda: desk.poll(job)["output"] == "hello\n")
        eventually(lambda: processes_with(mark))
        assert desk.poll(job)["status"] == "running"
        assert desk.ok("process_kill", job_id=job) == {"jobId": job, "status": "killed", "ok": True}
        eventually(lambda: not processes_with(mark))
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_worker_takes_its_jobs_along_and_they_are_known_to_be_lost(desk: Desk, how: signal.Signals) -> None:
    mark = secrets.token_hex(8)
    deep = f"echo so far; (setsid {sleeper(mark)} &) ; {sleeper(mark)}"
    process, job = keeper_elsewhere(desk, deep)
    try:
        eventually(lambda: desk.poll(job)["output"] == "so far\n")
        eventually(lambda: len(processes_with(mark)) >= 2)
        process.send_signal(how)
        process.wait()
    finally:
        process.kill()
    eventually(lambda: not processes_with(mark))
    seen = desk.poll(job, wait_ms=30_000)
    assert (seen["status"], seen["exitCode"], seen["output"]) == ("lost", None, "so far\n")
    assert desk.ok("process_kill", job_id=job) == {"jobId": job, "status": "lost", "ok": True}
    assert [started(desk, "true") for _ in range(2)], "a lost job holds no place"


# a job of another host, or of this one before it started again


def rewritten(desk: Desk, job: str, **facts: Any) -> None:
    state = desk.root / ".officina" / "jobs" / job / "job.json"
    state.write_text(json.dumps(json.loads(state.read_text()) | facts))


def test_a_job_of_another_host_counts_as_running_while_it_shows_signs_of_life(desk: Desk) -> None:
    job = started(desk, "echo x; sleep 60")
    eventually(lambda: desk.poll(job)["output"])
    rewritten(desk, job, host="elsewhere", boot="another")
    assert desk.poll(job)["status"] == "running"
    alive = desk.root / ".officina" / "jobs" / job / "alive"
    eventually(lambda: time.time() - alive.stat().st_mtime < 1.0, 10)  # its keeper goes on saying so
    desk.keeper.close()
    rewritten(desk, job, host="elsewhere", boot="another", status="running")
    os.utime(alive, (time.time() - 31, time.time() - 31))
    assert (desk.poll(job)["status"], desk.poll(job)["output"]) == ("lost", "x\n")


def test_a_job_from_before_a_restart_of_the_machine_is_lost(desk: Desk) -> None:
    job = started(desk, "sleep 60")
    rewritten(desk, job, boot="another")
    assert desk.poll(job)["status"] == "lost"


@pytest.mark.parametrize("state", ["", "[]", "{}", '{"id": 1}', "\0", "x" * 100_000])
def test_a_record_that_cannot_be_read_is_no_job(desk: Desk, state: str) -> None:
    job = started(desk, "true")
    desk.until_ended(job)
    (desk.root / ".officina" / "jobs" / job / "job.json").write_text(state)
    assert desk.poll(job)["status"] == "unknown"
    started(desk, "true")


def test_a_record_that_is_a_link_or_a_pipe_is_no_job(desk: Desk) -> None:
    job = started(desk, "true")
    desk.until_ended(job)
    folder = desk.root / ".officina" / "jobs" / job
    secret = desk.root.parent / "secret"
    secret.write_text((folder / "job.json").read_text())
    (folder / "job.json").unlink()
    (folder / "job.json").symlink_to(secret)
    assert desk.poll(job)["status"] == "unknown"
    (folder / "job.json").unlink()
    os.mkfifo(folder / "job.json")
    assert desk.poll(job)["status"] == "unknown"
