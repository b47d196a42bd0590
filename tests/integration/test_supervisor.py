"""Processes that belong to another: kept alive, ended in order, never left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from orchestrator.stack import supervisor as module
from orchestrator.stack.processes import TETHER, Process
from orchestrator.stack.supervisor import Part, Supervisor
from tests.support import alive, eventually

IGNORES_SIGTERM = "trap '' TERM; echo ready; while :; do sleep 0.05; done"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(said: list[str]) -> Iterator[Supervisor]:
    kept = Supervisor(said.append)
    kept.start()
    yield kept
    kept.hurry()
    kept.stop()


@pytest.fixture
def shell(tmp_path: Path) -> Callable[[str], Process]:
    return lambda script: Process(["/bin/sh", "-c", script], log=tmp_path / "shell.log")


def test_a_part_that_ends_is_started_again_and_one_line_says_why(supervisor, said, shell) -> None:
    supervisor.add(Part("sleeper", partial(shell, "sleep 1000")))
    first = supervisor.pids["sleeper"]

    os.kill(first, signal.SIGKILL)

    eventually(lambda: supervisor.pids.get("sleeper", first) != first)
    assert said == ["sleeper ended (killed by SIGKILL); starting it again in 0.5 s"]


def test_each_failure_doubles_the_wait_up_to_a_bound(supervisor, said, shell, monkeypatch) -> None:
    monkeypatch.setattr(module, "FIRST_DELAY_S", 0.01)
    monkeypatch.setattr(module, "LONGEST_DELAY_S", 0.04)
    monkeypatch.setattr(module, "LOOK_S", 0.01)

    supervisor.add(Part("broken", partial(shell, "exit 3")))

    eventually(lambda: len(said) >= 5)
    waits = [line.rpartition("again in ")[2] for line in said[:5]]
    assert waits == ["0.01 s", "0.02 s", "0.04 s", "0.04 s", "0.04 s"]
    assert all("ended (exit 3)" in line for line in said)


def test_a_healthy_while_resets_the_wait(supervisor, said, shell, monkeypatch) -> None:
    monkeypatch.setattr(module, "HEALTHY_S", 0.3)
    supervisor.add(Part("sleeper", partial(shell, "sleep 1000")))
    for _ in range(2):
        pid = supervisor.pids["sleeper"]
        time.sleep(0.6)  # healthy for longer than it takes to be forgiven
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: supervisor.pids.get("sleeper", pid) != pid)  # noqa: B023

    assert [line.rpartition("again in ")[2] for line in said] == ["0.5 s", "0.5 s"]


def test_the_error_of_a_first_start_reaches_who_asked_and_nothing_is_kept(supervisor) -> None:
    def fails() -> Process:
        raise OSError("no such program")

    with pytest.raises(OSError, match="no such program"):
        supervisor.add(Part("missing", fails))
    assert supervisor.pids == {}


def test_higher_stages_end_before_lower_ones_begin_to(supervisor, shell, tmp_path) -> None:
    def leaves_a_mark(name: str) -> str:
        return f"trap 'echo {name} >> {tmp_path}/order; exit' TERM; echo {name} up; while :; do sleep 0.02; done"

    for stage, name in enumerate(["redis", "flower", "worker"]):
        supervisor.add(Part(name, partial(shell, leaves_a_mark(name)), stage))
    eventually(lambda: (tmp_path / "shell.log").read_text().count("up") == 3)

    supervisor.stop()

    assert (tmp_path / "order").read_text().split() == ["worker", "flower", "redis"]


def test_a_part_that_does_not_listen_is_killed_after_its_grace(supervisor, said, shell, tmp_path) -> None:
    supervisor.add(Part("deaf", partial(shell, IGNORES_SIGTERM), grace_s=0.3))
    eventually(lambda: "ready" in (tmp_path / "shell.log").read_text())
    pid = supervisor.pids["deaf"]

    supervisor.stop()

    assert not alive(pid)
    assert said == ["deaf did not end within 0.3 s; killing it"]


def test_hurry_cuts_the_grace_short(supervisor, shell, tmp_path) -> None:
    supervisor.add(Part("deaf", partial(shell, IGNORES_SIGTERM), grace_s=60))
    eventually(lambda: "ready" in (tmp_path / "shell.log").read_text())
    began = time.monotonic()

    supervisor.hurry()
    supervisor.stop()

    assert time.monotonic() - began < 5


def test_what_a_process_started_ends_with_it(shell, tmp_path) -> None:
    process = shell("sleep 1000 & echo $!; wait")
    child = int(eventually(lambda: (tmp_path / "shell.log").read_text().strip()))

    process.end(grace_s=5)

    eventually(lambda: not alive(child))


@pytest.mark.parametrize("leash", ["kernel", "pipe"])
def test_a_process_does_not_outlive_an_owner_that_is_killed(leash: str, tmp_path: Path) -> None:
    # The owner runs in a process of its own, so that it can be killed; `pipe` is the way of systems other than Linux.
    if leash == "kernel" and sys.platform != "linux":
        pytest.skip("the kernel promises this on Linux only")
    platform = "linux" if leash == "kernel" else "darwin"
    script = f"""
import sys, time
sys.platform = {platform!r}
from pathlib import Path
from orchestrator.stack.processes import Process
process = Process(["/bin/sh", "-c", "echo $$; sleep 1000"], log=Path({str(tmp_path / "log")!r}))
time.sleep(1000)
"""
    owner = subprocess.Popen([sys.executable, "-c", script])
    pid = int(eventually(lambda: (tmp_path / "log").exists() and (tmp_path / "log").read_text().strip()))
    assert alive(pid)

    owner.kill()
    owner.wait()

    eventually(lambda: not alive(pid))


def test_the_pipe_hands_signals_and_the_exit_status_on(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    command = [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), str(reader), "-1"]
    script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done"
    with subprocess.Popen(
        [*command, "/bin/sh", "-c", script], pass_fds=[reader], stdout=subprocess.PIPE, start_new_session=True
    ) as tethered:
        assert tethered.stdout is not None
        assert tethered.stdout.readline() == b"ready\n"

        tethered.terminate()

        assert tethered.wait(10) == 7
    os.close(reader)
    os.close(writer)


def test_a_tethered_command_that_is_not_there_says_so(tmp_path: Path) -> None:
    process = Process(["/no/such/program"], log=tmp_path / "log")

    assert process.popen.wait(10) != 0
    assert "/no/such/program" in (tmp_path / "log").read_text()
