"""The database drops every session again and again: runs wait for it, and none of them fails for its sake."""

import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from orchestrator.store.database import Database, together
from tests.crash.test_worker_killed import QUICK
from tests.projects import Watched, start, task


@pytest.fixture
def live_settings(tmp_path: Path, postgres_url: str, redis, redis_url: str):
    from orchestrator.settings import Settings

    return Settings(home=tmp_path / "home", database_url=postgres_url, broker_url=redis_url, _env_file=None)  # type: ignore[call-arg]


def test_killed_sessions_cost_time_and_nothing_else(
    tmp_path: Path, live_settings, postgres_url: str, worker_process
) -> None:
    worker_process(live_settings, **QUICK).ready()
    turns = [{"calls": [{"name": "math.evaluate", "args": {"expression": f"{n}+1"}}]} for n in range(6)]
    keys = [f"t{n}" for n in range(12)]
    script = {"delayMs": 100, "tasks": {key: [*turns, {"say": "done"}] for key in keys}}
    made = start(tmp_path / "p", live_settings, [task(key, retries=0) for key in keys], script)

    for _ in range(8):
        with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        time.sleep(0.25)  # the pace of the attack, not a wait for anything

    project = Watched(live_settings, made.project_id)
    assert project.ended(60) == "completed"
    assert {row.error for row in project.tasks.values() if row.error} == set()
    steps = [(e.run_id, e.data["step"]) for e in project.trace if e.kind == "node.completed"]
    assert len(steps) == len(set(steps)), "no completed step is repeated"


LOCK = text(
    "INSERT INTO leases (name, holder, until) VALUES ('x', :who, 0) ON CONFLICT (name) DO UPDATE SET holder = :who"
)


def takes_it_over(url: str) -> float:
    """Seconds until another process has the row."""
    began = time.monotonic()
    Database(url).write(lambda connection: connection.execute(LOCK, {"who": "other"}))
    return time.monotonic() - began


def test_a_process_that_stands_still_in_a_transaction_keeps_its_locks_no_longer_than_allowed(postgres_url: str) -> None:
    with Database(postgres_url, idle_s=1).engine.connect() as frozen:
        frozen.execute(LOCK, {"who": "frozen"})
        assert takes_it_over(postgres_url) < 10
        frozen.invalidate()


def test_nor_when_it_stands_still_between_the_statements_of_one_round_trip(postgres_url: str) -> None:
    """Such a transaction is not idle for the server, which waits for the rest of the round trip."""
    with Database(postgres_url, idle_s=1).engine.connect() as frozen:
        if (frozen.dialect.server_version_info or ()) < (17,):
            pytest.skip("this PostgreSQL knows no limit on a transaction's age")
        frozen.execute(text("SELECT 1"))
        with pytest.raises(OperationalError), together(frozen):
            frozen.execute(LOCK, {"who": "frozen"})
            driver: Any = frozen.connection.driver_connection
            driver.pgconn.send_flush_request()
            driver.pgconn.flush()
            assert takes_it_over(postgres_url) < 10
        frozen.invalidate()
