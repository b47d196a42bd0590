"""`make bench`, or `python -m benchmarks [W1 ... W9 fair graph start api] [--rounds N] [--quick]`.

Leaves with 0 when every bar holds, 1 when one is missed or nothing could be measured, 2 for wrong use.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import measure, picture
from benchmarks.measure import Figure

RESULTS = Path(__file__).with_name("results.json")
#: Workload -> its module.
ROOMS = {
    "W1": "benchmarks.w1_steps",
    "W2": "benchmarks.w2_fanout",
    "W3": "benchmarks.w3_dag",
    "W4": "benchmarks.w4_park",
    "W5": "benchmarks.w5_submit",
    "W6": "benchmarks.w6_kill",
    "W7": "benchmarks.w7_history",
    "W8": "benchmarks.w8_many",
    "W9": "benchmarks.w9_api",
    "fair": "benchmarks.fairness",
}
ON_STACK = tuple(ROOMS)
ALONE = ("graph", "start", "api")


def main() -> int:
    options = _options()
    for name in [name for name in os.environ if name.startswith("OFFICINA_")]:
        del os.environ[name]  # the settings of whoever measures are not what is measured
    begun = time.monotonic()
    try:
        figures = _measure(options.workloads or [*ALONE, *ON_STACK], options.rounds, quick=options.quick)
    except RuntimeError as error:
        sys.stderr.write(f"not measured: {error}\n")
        return 1
    options.out.write_text(json.dumps(_document(figures, options), indent=2) + "\n", encoding="utf-8")
    options.out.with_suffix(".svg").write_text(picture.draw(figures), encoding="utf-8")
    measure.show(figures)
    measure.verdicts(figures)
    sys.stdout.write(f"\n{options.rounds} rounds, median [lowest-highest]; {time.monotonic() - begun:.0f} s\n")
    return 1 if any(figure.met is False for figure in figures) else 0


def _measure(chosen: Sequence[str], rounds: int, *, quick: bool) -> list[Figure]:
    figures: list[Figure] = []
    if "graph" in chosen:
        from benchmarks import language

        figures += language.measure(rounds)
    if "start" in chosen:
        from benchmarks import startup

        figures += startup.measure(rounds)
    if "api" in chosen:
        from benchmarks import api

        figures += api.measure(rounds, quick=quick)
    on_stack = [name for name in ON_STACK if name in chosen]
    if on_stack:
        from benchmarks.stack import stack

        with stack() as running:
            for name in on_stack:
                figures += import_module(ROOMS[name]).measure(running, rounds, quick=quick)
    return figures


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Officina beside its floors.")
    names = [*ON_STACK, *ALONE]
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(names)}; none: all")
    parser.add_argument("--rounds", type=int, help="rounds of each comparison; default 5, at least 3")
    parser.add_argument("--quick", action="store_true", help="less work and 3 rounds: about a minute")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the file of results; a picture lies beside it")
    options = parser.parse_args()
    if unknown := [name for name in options.workloads if name not in names]:
        parser.error(f"no workload {unknown[0]!r}; use {', '.join(names)}")
    options.rounds = max(3, options.rounds or (3 if options.quick else 5))
    return options


def _document(figures: Sequence[Figure], options: argparse.Namespace) -> dict[str, Any]:
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"python": platform.python_version(), "system": platform.platform(), "cpus": os.cpu_count()},
        "rounds": options.rounds,
        "quick": options.quick,
        "figures": [figure.to_json() for figure in figures],
    }


if __name__ == "__main__":
    sys.exit(main())
