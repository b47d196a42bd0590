"""Rows 35 and 36: the database drops sessions, is restarted, is killed, is busy, is full."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from orchestrator.settings import Settings
from orchestrator.signals import answer
from tests import services
from tests.faults.company import Company
from tests.faults.skills import deed
from tests.faults.table import Story
from tests.projects import task

SKILLS = ["proof.once", "proof.asked", "proof.again", "proof.look"]


@pytest.fixture
def server() -> Iterator[services.PostgresServer]:
    made = services.needed(services.PostgresServer)
    made.start()
    yield made
    made.remove()


@pytest.fixture
def on_fragile(
    server: services.PostgresServer, redis_url: str, redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Company]:
    """A company whose PostgreSQL may be broken."""
    url = services.make_database(server.url, "fragile", migrate_from=tmp_path)
    settings = Settings(home=tmp_path / "home", database_url=url, broker_url=redis_url, _env_file=None)  # type: ignore[call-arg]
    made = Company(settings, tmp_path, monkeypatch)
    yield made
    made.dismiss()
    services.close_connections(url)


def busy(company: Company, tasks: int = 6, steps: int = 8):
    """A project of tasks that each make a few counted steps."""
    keys = [f"t{n}" for n in range(tasks)]
    turns = {key: [*(deed("proof.once", f"{key}-{n}", ms=50) for n in range(steps)), {"say": "done"}] for key in keys}
    plan = [task(key, skills=SKILLS, retries=0) for key in keys]
    return company.submit(plan, {"delayMs": 100, "tasks": turns})


@pytest.mark.parametrize("how", ["restarted", pytest.param("killed", marks=pytest.mark.long)])
def test_a_database_that_goes_away_and_comes_back(
    on_fragile: Company, server: services.PostgresServer, story: Story, how: str
) -> None:
    story.tells("36", f"PostgreSQL {how} in the middle of 6 tasks", "no task fails, no effect twice, workers stay")
    company = on_fragile
    workers = [company.hire().ready() for _ in range(2)]
    project = busy(company)
    company.waits_for(lambda: len(project.kinds("tool.result")) >= 6)

    server.stop() if how == "restarted" else server.kill()
    time.sleep(2)  # how long it is away
    server.start()

    with story.recovery():
        last = len(project.trace)
        company.waits_for(lambda: len(project.trace) > last, 90)
    company.waits_for(lambda: project.status == "completed", 120)
    assert all(worker.process.running for worker in workers)
    assert {row.error for row in project.tasks.values()} == {None}
    company.keeps_its_promises()


def test_sessions_that_are_cut_again_and_again(company: Company, story: Story, database_url: str) -> None:
    story.tells("36", "all database sessions cut eight times", "no task fails, no step runs twice")
    if not database_url.startswith("postgresql"):
        pytest.skip("SQLite has no sessions")
    company.hire().ready()
    project = busy(company, tasks=4)
    for _ in range(8):
        with psycopg.connect(database_url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        time.sleep(0.25)  # the pace of the attack

    with story.recovery():
        company.waits_for(lambda: project.status == "completed", 90)
    assert {row.error for row in project.tasks.values()} == {None}
    company.keeps_its_promises()


@pytest.fixture
def on_sqlite(
    sqlite_url: str, redis_url: str, redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Company]:
    settings = Settings(home=tmp_path / "home", database_url=sqlite_url, broker_url=redis_url, _env_file=None)  # type: ignore[call-arg]
    made = Company(settings, tmp_path, monkeypatch)
    yield made
    made.dismiss()


@pytest.mark.long
def test_an_sqlite_file_that_everybody_wants(on_sqlite: Company, sqlite_url: str, story: Story) -> None:
    story.tells("35", "an SQLite file held for 3 s by a reader and a writer, 3 workers", "everybody waits")
    company = on_sqlite
    workers = [company.hire() for _ in range(3)]
    project = busy(company)
    company.waits_for(lambda: len(project.kinds("tool.result")) >= 3)

    def hold(statement: str) -> None:
        with sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None, timeout=20) as connection:
            connection.execute(statement)
            connection.execute("SELECT count(*) FROM events").fetchone()
            time.sleep(3)  # how long it is held
            connection.execute("ROLLBACK")

    holders = [threading.Thread(target=hold, args=(words,)) for words in ("BEGIN", "BEGIN IMMEDIATE")]
    for one in holders:
        one.start()
    for one in holders:
        one.join()
    with story.recovery():
        last = len(project.trace)
        company.waits_for(lambda: len(project.trace) > last)

    company.waits_for(lambda: project.status == "completed", 90)
    assert all(worker.process.running for worker in workers)
    assert "database is locked" not in company.output
    company.keeps_its_promises()


def test_a_submit_to_a_locked_sqlite_waits_or_says_so(on_sqlite: Company, sqlite_url: str, story: Story) -> None:
    story.tells("35", "an answer while another process writes for 2 s", "the answer counts, once")
    company = on_sqlite
    company.hire()
    project = company.submit([task("a", skills=SKILLS)], {"tasks": {"a": [deed("proof.asked", "x"), {"say": "yes"}]}})
    asked = project.open_signal(60)
    with sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None, timeout=20) as writer:
        writer.execute("BEGIN IMMEDIATE")
        release = threading.Timer(2, lambda: None)
        release.start()
        said = threading.Thread(
            target=answer, args=(company.settings, asked.id), kwargs={"option": "Do it", "by": "the test"}
        )
        said.start()
        release.join()
        writer.execute("ROLLBACK")
        said.join(20)

    with story.recovery():
        company.waits_for(lambda: project.status == "completed")
    company.keeps_its_promises()
