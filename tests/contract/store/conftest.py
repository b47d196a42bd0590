"""The store on all three databases: an SQLite file, PostgreSQL, and memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from tests.contract.store.world import World


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The test runs three times: on an SQLite file, on PostgreSQL, and in memory, as `graph run` uses it."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def store_settings(tmp_path: Path, database_url: str) -> Settings:
    """Settings with a database (each in turn) and nothing else: no broker, no Redis."""
    return Settings(home=tmp_path / "home", database_url=database_url, _env_file=None)  # type: ignore[call-arg]


@pytest.fixture
def world(store_settings: Settings) -> Iterator[World]:
    database = get_database(store_settings)
    yield World(database)
    database.dispose()
