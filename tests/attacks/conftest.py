"""The store on both databases, for those who attack it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from tests.contract.store.world import World


@pytest.fixture
def store_settings(tmp_path: Path, database_url: str) -> Settings:
    """Settings with a database (each in turn) and nothing else: no broker, no Redis."""
    return Settings(home=tmp_path / "home", database_url=database_url, _env_file=None)  # type: ignore[call-arg]


@pytest.fixture
def world(store_settings: Settings) -> Iterator[World]:
    database = get_database(store_settings)
    yield World(database)
    database.dispose()
