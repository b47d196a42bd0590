"""Pooled connections that the server has closed meanwhile: nobody above the database notices."""

from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import text

from orchestrator.store import database as module
from orchestrator.store.database import Database
from registry.errors import Unavailable
from tests.support import eventually


@pytest.fixture
def pool(postgres_url: str) -> Iterator[Database]:
    """A database of its own, so that its pool is."""
    database = Database(postgres_url)
    yield database
    database.dispose()


def ask(database: Database) -> int:
    with database.read() as connection:
        return int(connection.execute(text("SELECT 1")).scalar_one())


def close_all(database: Database) -> None:
    """What a restart of the server does to whoever is connected."""
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    url = database.url.render_as_string(hide_password=False).replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"SELECT pg_terminate_backend(pid) {others}")
        eventually(lambda: server.execute(f"SELECT count(*) {others}").fetchone() == (0,))


def test_a_connection_that_lay_idle_is_tried_out_before_its_use(
    pool: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_S", -1)  # everything in the pool lay idle
    assert ask(pool) == 1

    close_all(pool)

    assert ask(pool) == 1


def test_a_write_on_a_connection_that_was_just_lost_runs_again(pool: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_S", 3600)  # nothing did
    assert ask(pool) == 1

    close_all(pool)

    assert pool.write(lambda c: c.execute(text("SELECT 2")).scalar_one()) == 2


def test_a_read_on_a_connection_that_was_just_lost_says_so_and_the_next_one_works(
    pool: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_S", 3600)
    assert ask(pool) == 1

    close_all(pool)

    with pytest.raises(Unavailable):
        ask(pool)
    assert ask(pool) == 1
