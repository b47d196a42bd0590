"""Whether a database fits this release is told by its tables and columns, on both databases."""

from typing import Any

import pytest
from sqlalchemy import text

from orchestrator.settings import Settings
from orchestrator.store import schema
from orchestrator.store.database import Database, get_database
from registry.errors import Refused
from workers import probes


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A database in memory is made with its process and always fits."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def database(store_settings: Settings) -> Any:
    made = get_database(store_settings)
    yield made
    made.dispose()


def change(database: Database, *statements: str) -> None:
    database.write(lambda c: [c.execute(text(one)) for one in statements])


def test_what_the_migrations_make_fits(database: Database, store_settings: Settings) -> None:
    assert schema.faults(database) == []
    assert probes.database(store_settings)[0].verdict == "ok"


def test_a_column_that_is_missing_is_named_though_the_number_is_right(
    database: Database, store_settings: Settings
) -> None:
    change(database, "ALTER TABLE runs DROP COLUMN queue", "ALTER TABLE workers DROP COLUMN queues")
    assert schema.faults(database) == ["the column workers.queues is missing", "the column runs.queue is missing"]
    found = probes.database(store_settings)[0]
    assert found.verdict == "broken"
    assert "runs.queue" in found.words
    with pytest.raises(Refused, match="make a new one"):
        schema.require(database)


def test_a_table_that_is_missing_is_named(database: Database) -> None:
    change(database, "DROP TABLE audit")
    assert schema.faults(database) == ["the table audit is missing"]


def test_what_a_newer_release_adds_is_no_fault_while_nobody_has_to_fill_it(
    database: Database, store_settings: Settings
) -> None:
    change(
        database,
        "ALTER TABLE runs ADD COLUMN mood TEXT",
        "ALTER TABLE runs ADD COLUMN weight BIGINT NOT NULL DEFAULT 0",
        "CREATE TABLE moods (id TEXT PRIMARY KEY)",
        "UPDATE alembic_version SET version_num = '9999'",
    )
    assert schema.faults(database) == []
    found = probes.database(store_settings)[0]
    assert (found.verdict, "9999" in found.words) == ("ok", True)


def test_a_database_of_a_release_that_is_too_new_is_refused(database: Database) -> None:
    change(
        database,
        "ALTER TABLE runs RENAME COLUMN steps TO paces",
        "UPDATE alembic_version SET version_num = '9999'",
    )
    with pytest.raises(Refused, match=r"runs\.steps is missing.* of a newer release: start that one"):
        schema.require(database)


def test_a_database_that_nobody_has_upgraded_says_so(tmp_path: Any) -> None:
    empty = Database(f"sqlite:///{tmp_path / 'empty.db'}")
    with pytest.raises(Refused, match="no tables yet; run `officina db upgrade`"):
        schema.require(empty)
