"""The cases, as read from `cases/`."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

FOLDER = Path(__file__).parent / "cases"

#: What a death may change: who took over is in the trace; and a call that another run of the process had begun is
#: unknown afterwards, where without the death it would have been stopped at the end of its map's time. That time goes
#: on while nobody works.
CHANGED: Final = {
    "": ("events[kind=run.started].#",),
    "R20": (
        "output.results[0].output",
        "output.results[1].output",
        "output.results[1].error.code",
        "events[kind=map.completed].data.timedOut",
    ),
}


@cache
def cases(kind: str) -> dict[str, dict[str, Any]]:
    """The cases of a kind (`expressions`, `validation`, `runtime`) by id.

    Those of `deaths.json` are runtime cases too: runs in which a death at the wrong moment does the most harm.
    """
    files = ("runtime", "deaths") if kind == "runtime" else (kind,)
    found: list[dict[str, Any]] = [one for name in files for one in _read(name)]
    return {case["id"]: case for case in found}


def _read(name: str) -> list[dict[str, Any]]:
    return list(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))


def slots_of(case_id: str) -> int:
    """One slot, so that all comes in order; more where children run against a time."""
    return 4 if "timeoutMs" in str(cases("runtime")[case_id]["definition"].get("graph", {})) else 1


def runtime_ids() -> list[str]:
    return list(cases("runtime"))


def long_unless(chosen: tuple[str, ...]) -> list[Any]:
    """Every case; those that are not chosen belong to the long form."""
    return [
        case_id if case_id in chosen else pytest.param(case_id, marks=pytest.mark.long) for case_id in runtime_ids()
    ]


def after_deaths(case: dict[str, Any]) -> dict[str, Any]:
    """What still has to be so when a worker died in the middle."""
    changed = (*CHANGED[""], *CHANGED.get(case["id"], ()))
    return {path: want for path, want in case["expect"].items() if path not in changed}
