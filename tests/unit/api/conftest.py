"""The API in this process, over an SQLite file."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from orchestrator.settings import Settings
from tests.studio import asked, bearer, key_of


@pytest.fixture
def studio(settings: Settings) -> Iterator[TestClient]:
    """The API for a program of the owner `local` that may do everything a key may."""
    with asked(settings, bearer(key_of(settings))) as client:
        yield client
