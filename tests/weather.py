"""The example's weather, altered and counted again by other means than the example's own program."""

import csv
from collections import defaultdict
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
EXAMPLE = EXAMPLES / "seattle-weather"
DATA = EXAMPLE / "data" / "seattle-weather.csv"

Row = dict[str, str]


def read(path: Path = DATA) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["date", "precipitation", "temp_max", "temp_min", "wind", "weather"])
        writer.writeheader()
        writer.writerows(rows)


def alter(path: Path, change: Callable[[Row], Row | None]) -> None:
    """Writes each row as `change` gives it back; None leaves it out."""
    write(path, [changed for row in read(path) if (changed := change(dict(row))) is not None])


def yearly_means(path: Path = DATA) -> dict[str, str]:
    """Year -> mean of the days' half sums of highest and lowest temperature, two decimals; incomplete rows aside."""
    days: dict[str, list[Decimal]] = defaultdict(list)
    for row in read(path):
        if all(row[name] for name in ("precipitation", "temp_max", "temp_min", "wind")):
            days[row["date"][:4]].append((Decimal(row["temp_max"]) + Decimal(row["temp_min"])) / 2)
    return {year: _two(sum(halves, Decimal(0)) / len(halves)) for year, halves in sorted(days.items())}


def _two(value: Decimal) -> str:
    return str(value.quantize(Decimal("0.01"), ROUND_HALF_UP))
