"""A worker under its supervisor: what died, is frozen, or hears nothing is started again, and its runs go on."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from orchestrator import queue
from orchestrator.stack.environment import child_environment
from orchestrator.stack.processes import Process
from tests.commands import OFFICINA
from tests.faults.company import QUICK, Company
from tests.faults.table import Story
from tests.projects import task
from tests.support import alive, eventually

#: Leases that nobody wants to wait for: only the supervisor can be as fast as these tests ask.
PATIENT = {"LIMITS__LEASE_S": "60", "LIMITS__RENEW_S": "1", "LIMITS__SILENT_S": "3", "LIMITS__DEAF_S": "6"}
#: With the last one, fewer than the turns an agent has.
TURNS = [{"calls": [{"name": "math.evaluate", "args": {"expression": f"{n}+1"}}]} for n in range(8)]
SCRIPT = {"delayMs": 300, "tasks": {"long": [*TURNS, {"say": "done"}]}}


@pytest.fixture
def supervisor(company: Company, tmp_path: Path) -> Iterator[Process]:
    """`officina worker`, as it is installed."""
    environment = child_environment(company.settings)
    environment |= {f"OFFICINA_{name}": value for name, value in (QUICK | PATIENT).items()}
    made = Process([OFFICINA, "worker", "--slots", "4"], log=tmp_path / "supervisor.log", env=environment)
    yield made
    made.end(15)


def worker_of(supervisor: Process) -> int:
    """The process that does the work."""

    def found() -> int | None:
        children = psutil.Process(supervisor.pid).children()
        return next((c.pid for c in children if alive(c.pid)), None)

    pid = eventually(found, 30)
    assert pid is not None
    return pid


def test_the_runs_of_a_dead_worker_go_on_at_once(company: Company, supervisor: Process, story: Story) -> None:
    story.tells("1b", "kill -9 of a worker under its supervisor, its lease 60 s", "its runs go on soon")
    project = company.submit([task("long", retries=0)], SCRIPT)
    company.waits_for(lambda: len(project.kinds("tool.result")) >= 3)

    os.killpg(worker_of(supervisor), signal.SIGKILL)

    with story.recovery():
        company.waits_for(lambda: project.kinds("run.resumed"), 30)
    company.waits_for(lambda: project.status == "completed")
    company.keeps_its_promises()


@pytest.mark.long
def test_a_frozen_worker_is_ended_and_started_again(company: Company, supervisor: Process, story: Story) -> None:
    story.tells("6c", "SIGSTOP of a worker under its supervisor, its lease 60 s", "it is killed, a fresh one goes on")
    project = company.submit([task("long", retries=0)], SCRIPT)
    company.waits_for(lambda: len(project.kinds("tool.result")) >= 3)
    frozen = worker_of(supervisor)

    os.killpg(frozen, signal.SIGSTOP)

    with story.recovery():
        company.waits_for(lambda: project.kinds("run.resumed"), 45)
    assert not alive(frozen)
    company.waits_for(lambda: project.status == "completed")
    company.keeps_its_promises()


@pytest.mark.long
def test_a_worker_that_hears_nothing_is_replaced(company: Company, supervisor: Process, story: Story) -> None:
    """Its consumer is cancelled, as when a broker forgets it: the connection stands, and nothing comes."""
    story.tells("deaf", "a worker whose broker has forgotten its consumer", "it leaves, and a fresh one works")
    first = company.submit([task("a")], {"tasks": {"a": [{"say": "a"}]}})
    company.waits_for(lambda: first.status == "completed")
    deaf = worker_of(supervisor)
    queue.sender(company.settings).control.cancel_consumer(queue.QUEUE)
    log = company.folder / "supervisor.log"
    company.waits_for(lambda: "Canceling queue" in log.read_text(errors="replace"), 10)

    second = company.submit([task("long", retries=0)], SCRIPT)
    with story.recovery():
        company.waits_for(lambda: second.status == "completed", 90)
    assert worker_of(supervisor) != deaf
    company.keeps_its_promises()
