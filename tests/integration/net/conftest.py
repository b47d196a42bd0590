"""A trap site, and a guard that may reach it and nothing else on this machine."""

from collections.abc import Iterator

import pytest

from tests.certificates import Certificates, issue
from tests.traps import TrapSite, serving
from workers.net.guard import Guard


@pytest.fixture
def site() -> Iterator[TrapSite]:
    with serving() as found:
        yield found


@pytest.fixture
def other() -> Iterator[TrapSite]:
    """Another site of the same machine: another origin."""
    with serving() as found:
        yield found


@pytest.fixture
def guard(site: TrapSite) -> Guard:
    return Guard(allow=[("127.0.0.1", site.port)])


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return issue(tmp_path_factory.mktemp("certificates"), "shop.example.com", "127.0.0.2")
