"""The stage of the fault tests, and the table they print at the end of the run."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.settings import Settings
from tests.faults import table
from tests.faults.company import Company
from tests.faults.table import Story

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


@pytest.fixture
def story(record_property: Callable[[str, Any], None]) -> Story:
    """What this test breaks, and what holds all the same."""
    return Story(record_property)


@pytest.fixture(params=["postgres", pytest.param("sqlite", marks=pytest.mark.long)])
def database_url(request: pytest.FixtureRequest) -> str:
    """Both databases in the long form, PostgreSQL in the short one."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def company(live_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Company]:
    """Workers, projects and their promises; whatever a test does, they hold at its end."""
    made = Company(live_settings, tmp_path, monkeypatch)
    yield made
    made.dismiss()


def pytest_terminal_summary(terminalreporter: "TerminalReporter") -> None:
    table.print_table(report for name in ("passed", "failed") for report in terminalreporter.getreports(name))
