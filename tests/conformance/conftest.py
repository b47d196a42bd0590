"""The stages on which cases are performed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.settings import Settings
from tests.conformance.performance import Nursery


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    made = Nursery(tmp_path_factory.mktemp("lives") / "log")
    yield made
    made.close()


@pytest.fixture
def stage_settings(tmp_path: Path, database_url: str) -> Settings:
    """Settings with a database, each in turn; lives find their work in the rows, so there is no broker."""
    return Settings(home=tmp_path / "home", database_url=database_url, _env_file=None)  # type: ignore[call-arg]
