"""The fleet, and the table that is printed at the end of the run."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests import services
from tests.faults import table
from tests.faults.table import Story
from tests.hosts import network
from tests.hosts.fleet import Desk, Fleet

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

TABLE = "hosts"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Hosts A to D, without workers."""
    try:
        network.needed()
    except network.NoNamespaces as why:
        pytest.skip(str(why))
    with pytest.MonkeyPatch.context() as patch:
        made = services.needed(lambda: Fleet(tmp_path_factory.mktemp("fleet"), patch))
        yield made
        made.close()


@pytest.fixture(scope="module")
def desk(fleet: Fleet) -> Iterator[Desk]:
    """D's API, its producer, and its person."""
    made = fleet.serve()
    yield made
    made.close()


@pytest.fixture
def tell(record_property: Callable[[str, Any], None]) -> Callable[..., Story]:
    """A new row of the table: `tell(number, what was done, what holds)`."""

    def row(scenario: str, done: str, promise: str) -> Story:
        story = Story(record_property, TABLE)
        story.tells(scenario, done, promise)
        return story

    return row


def pytest_terminal_summary(terminalreporter: "TerminalReporter") -> None:
    reports = (report for name in ("passed", "failed") for report in terminalreporter.getreports(name))
    table.print_table(reports, TABLE, "What was done to the hosts, and what held")
