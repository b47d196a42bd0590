"""Rows 1, 2, 6, 10, 12: a worker is killed, frozen, asked to leave, or told nonsense, in the middle of its work."""

import os
import signal
import sqlite3
import time
from contextlib import closing
from typing import Any

import psutil
import pytest

from orchestrator.store.database import Database, get_database
from tests.faults import skills
from tests.faults.company import Company
from tests.faults.skills import deed
from tests.faults.table import Story
from tests.projects import Watched, task
from tests.workers import WorkerProcess


def ten_steps(name: str = "proof.once", **more: Any) -> dict[str, Any]:
    """A task of ten calls, each with an effect of its own."""
    turns = [deed(name, f"{name}-{n}", **{"ms": 100} | more) for n in range(10)]
    return {"tasks": {"long": [*turns, {"say": "{{ results | selectattr('ok') | list | length }} done"}]}}


PLAN = [task("long", skills=["proof.once", "proof.again", "proof.look"], retries=0)]


def results(project: Watched) -> list[str]:
    return [result["outcome"] for result in project.kinds("tool.result")]


def test_a_killed_worker_costs_time_and_nothing_else(company: Company, story: Story) -> None:
    story.tells("1", "kill -9 of a worker and all it started, in step 5 of 10", "no completed step runs again")
    first, second = company.hire(), company.understudy()
    project = company.submit(PLAN, ten_steps())
    company.waits_for(lambda: len(project.kinds("tool.result")) >= 4)

    first.kill()
    second.enter()
    with story.recovery():
        company.waits_for(lambda: project.kinds("run.resumed"))

    assert company.waits_for(lambda: project.status == "completed" or None)
    assert sorted(results(project)).count("ok") >= 9, "the one call that was under way may be unknown"
    assert set(results(project)) <= {"ok", "unknown"}
    assert [resumed["by"] for resumed in project.kinds("run.resumed")] == ["lease"]
    company.keeps_its_promises()


def stands(worker: WorkerProcess) -> bool:
    return bool(psutil.Process(worker.pid).status() == psutil.STATUS_STOPPED)


def locked(company: Company) -> bool:
    """Whether nobody can write: an SQLite whose lock a frozen process holds."""
    if not get_database(company.settings).sqlite:
        return False
    path = str(company.settings.database).partition("///")[2]
    with closing(sqlite3.connect(path, timeout=1, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
    return False


def test_a_frozen_worker_that_wakes_up_changes_nothing(company: Company, story: Story) -> None:
    story.tells("6", "SIGSTOP of a worker, SIGCONT after another has finished", "the woken one writes nothing")
    zombie, second = company.hire(points="acted=4:stop"), company.understudy()
    project = company.submit(PLAN, ten_steps("proof.again"))
    company.waits_for(lambda: stands(zombie))
    while locked(company):  # another thread of it was writing; a supervisor would end that
        os.killpg(zombie.pid, signal.SIGCONT)
        time.sleep(0.05)  # how long it may go on
        os.killpg(zombie.pid, signal.SIGSTOP)
        company.waits_for(lambda: stands(zombie))
    second.enter()
    with story.recovery():
        company.waits_for(lambda: project.kinds("run.resumed"))
    company.waits_for(lambda: project.status == "completed")
    before, done = len(project.trace), len(company.effects)
    os.killpg(zombie.pid, signal.SIGCONT)
    company.waits_for(lambda: "lost" in zombie.output)

    assert len(project.trace) == before
    assert len(company.effects) <= done + 1, "at most the call it stood in"
    assert results(project) == ["ok"] * 10
    company.keeps_its_promises()


def test_a_worker_frozen_in_a_transaction_keeps_nobody_waiting(company: Company, story: Story) -> None:
    """Wherever it stands: the database ends what is idle in the middle of a transaction."""
    story.tells("6b", "SIGSTOP of a worker, wherever it stands", "others wait for its locks no longer than a lease")
    if get_database(company.settings).sqlite:
        pytest.skip("SQLite's lock belongs to the frozen process; its supervisor ends that")
    zombie, second = company.hire(), company.understudy()
    project = company.submit(PLAN, ten_steps("proof.again", ms=0) | {"delayMs": 1})
    company.waits_for(lambda: len(project.kinds("tool.result")) >= 1)
    os.killpg(zombie.pid, signal.SIGSTOP)
    another = Database(company.settings.database, idle_s=2)
    held = another.engine.raw_connection()  # one that surely holds the project's row
    held.cursor().execute("SELECT id FROM projects FOR UPDATE")

    second.enter()
    with story.recovery():
        company.waits_for(lambda: project.status == "completed")

    held.invalidate()
    another.dispose()
    company.keeps_its_promises()


def test_sigterm_gives_runs_back_so_that_others_go_on_at_once(company: Company, story: Story) -> None:
    story.tells("12", "SIGTERM to a worker in mid-step, its lease 60 s", "others go on at once, nothing is unknown")
    patient = {"LIMITS__LEASE_S": "60", "LIMITS__RENEW_S": "10"}
    first, second = company.hire(**patient), company.understudy(**patient)
    project = company.submit(PLAN, ten_steps(ms=400))
    company.waits_for(lambda: len(project.kinds("tool.result")) >= 2)

    first.process.ask()
    second.enter()
    with story.recovery():
        company.waits_for(lambda: project.kinds("run.resumed"), 30)

    company.waits_for(lambda: not first.process.running, 10)
    assert first.process.outcome == "exit 0"
    company.waits_for(lambda: project.status == "completed")
    assert results(project) == ["ok"] * 10
    assert skills.counted(company.place) == {f"proof.once-{n}": 1 for n in range(10)}
    assert {run.claims for run in project.runs} <= {0}
    company.keeps_its_promises()
