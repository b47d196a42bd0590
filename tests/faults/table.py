"""What a fault test tells about itself, and the table of all of them at the end of the run."""

import io
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

#: The name of the property that carries a row from a test to the end of the run, across processes too.
PROPERTY = "fault"


@dataclass
class Story:
    """The row of one test; `tells` names it, `recovery` measures how long things took to go on."""

    record: Callable[[str, Any], None]
    #: Which table it stands in.
    table: str = PROPERTY
    row: dict[str, Any] | None = None

    def tells(self, scenario: str, injected: str, promise: str) -> None:
        """Says what the test does.

        Args:
            scenario: the number of the row in the fault matrix, or a word.
            injected: what is broken.
            promise: what holds all the same.
        """
        self.row = {"scenario": scenario, "injected": injected, "promise": promise, "seconds": None}
        self.record(self.table, self.row)

    @contextmanager
    def recovery(self) -> Iterator[None]:
        """From the fault to the moment from which everything goes on; the longest of a test counts."""
        begun = time.monotonic()
        yield
        assert self.row is not None, "tells() comes first"
        self.row["seconds"] = max(self.row["seconds"] or 0.0, time.monotonic() - begun)


def rows(reports: Iterable[Any], table: str = PROPERTY) -> list[tuple[str, str, str, str, str]]:
    """Scenario, injected, promise, recovery time and outcome of every story that a test told, by scenario."""
    found = []
    stories = (
        (report, told)
        for report in reports
        if report.when == "call"
        for name, told in report.user_properties
        if name == table
    )
    for report, told in stories:
        seconds = "" if told["seconds"] is None else f"{told['seconds']:.1f} s"
        kept = "kept" if report.outcome == "passed" else "BROKEN"
        where = report.nodeid.rpartition("[")[2].rstrip("]") if "[" in report.nodeid else ""
        found.append((told["scenario"], _with(told["injected"], where), told["promise"], seconds, kept))
    return sorted(found, key=lambda row: (_number(row[0]), row))


def drawn(found: list[tuple[str, str, str, str, str]], *, width: int, colour: bool) -> str:
    """The table as text."""
    table = Table("scenario", "injected", "promise", "recovery", "", box=None if not colour else _box(), expand=False)
    for row in found:
        style = "red" if row[-1] == "BROKEN" else None
        table.add_row(*row, style=style)
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=colour, color_system="auto" if colour else None).print(table)
    return out.getvalue()


def print_table(reports: Iterable[Any], table: str = PROPERTY, title: str = "What was broken, and what held") -> None:
    """Prints the table; as plain text where nobody looks at a terminal."""
    if found := rows(reports, table):
        colour = sys.stdout.isatty()
        width = Console().width if colour else 160
        sys.stdout.write(f"\n{title} ({len(found)})\n\n")
        sys.stdout.write(drawn(found, width=max(width, 100), colour=colour))
        sys.stdout.flush()


def _with(injected: str, where: str) -> str:
    return f"{injected} [{where}]" if where else injected


def _number(scenario: str) -> tuple[int, str]:
    digits = "".join(c for c in scenario if c.isdigit())
    return (int(digits) if digits else 10_000, scenario)


def _box() -> Any:
    from rich import box

    return box.SIMPLE_HEAD
