"""`make bench-peers`, or `python -m benchmarks.peers [W1 W2 W3 W5] [--rounds N] [--quick]`: Officina beside its peers.

Every round runs the bare Celery floor, Officina and each peer once, one after the other, on one PostgreSQL server. A
peer that does not run here is a line that says so.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import w1_steps, w2_fanout, w3_dag, w5_submit
from benchmarks.measure import Figure, brief, tell
from benchmarks.stack import Stack, stack

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "peers.json"
WORKLOADS = {"W1": w1_steps, "W2": w2_fanout, "W3": w3_dag, "W5": w5_submit}
#: Name -> module, kind of database.
PEERS = {
    "LangGraph, PostgreSQL": ("langgraph_peer", "postgres"),
    "LangGraph, SQLite": ("langgraph_peer", "sqlite"),
    "DBOS, PostgreSQL": ("dbos_peer", "postgres"),
}
#: Seconds one peer may take for its workloads of one round.
PATIENCE_S = 300
OURS, FLOOR = "Officina", "bare Celery (floor)"
ROWS = {
    "W1": "W1: ms a step, 100 runs x 20 steps",
    "W2/32": "W2: ms, map over 32 items",
    "W2/1000": "W2: ms, map over 1,000 items",
    "W3": "W3: ms, plan of no-op tasks",
    "W5": "W5: ms, submit to the first step",
}

#: System -> workload -> a value a round.
Taken = dict[str, dict[str, list[float]]]


def main() -> int:
    options = _options()
    for name in [name for name in os.environ if name.startswith("OFFICINA_")]:
        del os.environ[name]
    taken: Taken = {}
    with stack() as running:
        for number in range(options.rounds):
            tell(f"peers, round {number + 1} of {options.rounds}")
            _ours(running, options, taken)
            for name, (module, kind) in PEERS.items():
                _peer(running, options, taken, name, module, kind)
    _show(taken)
    RESULTS.write_text(json.dumps({"quick": options.quick, "taken": taken}, indent=2) + "\n", encoding="utf-8")
    return 0


def _ours(running: Stack, options: argparse.Namespace, taken: Taken) -> None:
    for workload in options.workloads:
        figures: Sequence[Figure] = WORKLOADS[workload].measure(running, 1, quick=options.quick)
        for figure in figures:
            row = _row_of(figure)
            if row is not None and figure.floor is not None:
                _note(taken, OURS, row, median(figure.values))
                _note(taken, FLOOR, row, median(figure.floor))


def _row_of(figure: Figure) -> str | None:
    """The row a figure of ours stands in: of W2, items of two steps beside jobs that do these."""
    if figure.bar is None or (figure.workload == "W2" and "doing the steps" not in (figure.against or "")):
        return None
    if figure.workload == "W2":
        return "W2/1000" if "1000" in figure.what else "W2/32"
    return figure.workload


def _peer(running: Stack, options: argparse.Namespace, taken: Taken, name: str, module: str, kind: str) -> None:
    where = running.database_for(module) if kind == "postgres" else str(running.folder / f"{module}.sqlite")
    words = [str(options.python), "-m", f"benchmarks.peers.{module}", kind, where, *options.workloads]
    try:
        done = subprocess.run(
            [*words, *(["--quick"] if options.quick else [])],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        tell(f"{name}: {error}")
        return
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            found: dict[str, Any] = json.loads(line)
            _note(taken, name, found["workload"], found["value"])
    if done.returncode != 0:
        tell(f"{name} ended with {done.returncode}: {done.stderr.strip()[-400:]}")


def _note(taken: Taken, name: str, workload: str, value: float) -> None:
    taken.setdefault(name, {}).setdefault(workload, []).append(value)


def _show(taken: Taken) -> None:
    """A column for each system; in brackets its share of the floor."""
    names = [FLOOR, OURS, *PEERS]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", *names):
        table.add_column(name, justify="right" if name else "left")
    for row, words in ROWS.items():
        floor = taken.get(FLOOR, {}).get(row)
        if floor is None:
            continue
        cells = []
        for name in names:
            values = taken.get(name, {}).get(row)
            share = "" if not values or name == FLOOR else f" ({brief(median(values) / median(floor))}x)"
            cells.append(f"{brief(median(values))}{share}" if values else "-")
        table.add_row(words, *cells)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="Officina beside its peers.")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(WORKLOADS)}; none: all")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; default 3")
    parser.add_argument("--quick", action="store_true", help="less work")
    default = ROOT / ".peers" / "bin" / "python"
    parser.add_argument("--python", type=Path, default=default, help="of the environment that has the peers")
    options = parser.parse_args()
    if unknown := [name for name in options.workloads if name not in WORKLOADS]:
        parser.error(f"no workload {unknown[0]!r}; use {', '.join(WORKLOADS)}")
    options.workloads = options.workloads or list(WORKLOADS)
    return options


if __name__ == "__main__":
    sys.exit(main())
