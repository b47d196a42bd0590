"""Rounds, medians, spreads and bars: how a figure is taken and shown.

Works that are compared run in turn, round after round, in an order that turns round each time: a machine that is busy
with something else is busy for both. The ratio of a figure is the median of the ratios of its rounds.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Bar:
    """What a figure should stay under: its ratio to the floor, or the value itself."""

    most: float
    of: Literal["ratio", "value"] = "ratio"

    def __str__(self) -> str:
        return f"< {self.most:g}{'x' if self.of == 'ratio' else ''}"


@dataclass(frozen=True)
class Figure:
    """One line of the table. Every value is a cost: less is better."""

    #: The workload's short name, as on the command line.
    workload: str
    what: str
    #: Unit of `values` and `floor`.
    unit: str
    #: One value a round.
    values: Sequence[float]
    #: What it is compared with, in words, and its value in each round.
    against: str | None = None
    floor: Sequence[float] | None = None
    bar: Bar | None = None
    note: str | None = None

    @property
    def ratios(self) -> list[float]:
        return [value / floor for value, floor in zip(self.values, self.floor or (), strict=bool(self.floor))]

    @property
    def met(self) -> bool | None:
        """Whether the bar holds in the median; None without a bar."""
        if self.bar is None:
            return None
        return median(self.ratios if self.bar.of == "ratio" else self.values) < self.bar.most

    def to_json(self) -> dict[str, Any]:
        return {
            "workload": self.workload,
            "what": self.what,
            "unit": self.unit,
            "value": _summary(self.values),
            "against": self.against,
            "floor": _summary(self.floor) if self.floor else None,
            "ratio": _summary(self.ratios) if self.floor else None,
            "bar": {"most": self.bar.most, "of": self.bar.of} if self.bar else None,
            "met": self.met,
            "note": self.note,
        }


def interleaved(label: str, unit: str, rounds: int, works: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Runs every work once a round; returns the values of each, one a round.

    Args:
        label: names the workload in the lines that tell how far it is.
        works: each gives one value in `unit`.
    """
    taken: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds):
        for name in list(works)[:: 1 if number % 2 == 0 else -1]:
            taken[name].append(works[name]())
        said = ", ".join(f"{name} {brief(values[-1])}" for name, values in taken.items())
        tell(f"{label}, round {number + 1} of {rounds}: {said} {unit}")
    return taken


def tell(line: str) -> None:
    """How far the run is, for whoever waits."""
    sys.stderr.write(f"  {line}\n")
    sys.stderr.flush()


def show(figures: Sequence[Figure]) -> None:
    """Prints the table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", "what", "Officina", "against", "floor", "ratio", "bar", ""):
        table.add_column(name, justify="right" if name in ("Officina", "floor", "ratio", "bar") else "left")
    for figure in figures:
        table.add_row(
            figure.workload,
            figure.what + (f" ({figure.note})" if figure.note else ""),
            f"{_spread(figure.values)} {figure.unit}",
            figure.against or "",
            _spread(figure.floor) if figure.floor else "",
            f"{_spread(figure.ratios)}x" if figure.floor else "",
            str(figure.bar or ""),
            {True: "holds", False: "MISSED", None: ""}[figure.met],
        )
    Console(width=None if sys.stdout.isatty() else 170).print(table)


def verdicts(figures: Sequence[Figure]) -> None:
    """Says of each figure with a bar whether it holds, a line each."""
    sys.stdout.write("\n")
    for figure in figures:
        if figure.bar is not None:
            ratio = figure.bar.of == "ratio"
            value = brief(median(figure.ratios if ratio else figure.values)) + ("x" if ratio else f" {figure.unit}")
            against = f" against {figure.against}" if ratio else ""
            word = "holds" if figure.met else "MISSED"
            sys.stdout.write(f"{word:6} {figure.workload}: {value}, bar {figure.bar}; {figure.what}{against}\n")


def _summary(values: Sequence[float]) -> dict[str, float | list[float]]:
    return {"median": median(values), "low": min(values), "high": max(values), "rounds": list(values)}


def _spread(values: Sequence[float]) -> str:
    """The median, with the lowest and the highest."""
    return f"{brief(median(values))} [{brief(min(values))}-{brief(max(values))}]"


def brief(value: float) -> str:
    """Three digits that mean something."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
