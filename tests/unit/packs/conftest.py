"""What packs keep, on all three databases: an SQLite file, PostgreSQL, and memory as `graph run` uses it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from tests.notebooks import Shelf


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def database_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    return Settings(home=tmp_path / "home", database_url=database_url, _env_file=None)  # type: ignore[call-arg]


@pytest.fixture
def shelf(settings: Settings) -> Iterator[Shelf]:
    database = get_database(settings)
    yield Shelf(database)
    database.dispose()
