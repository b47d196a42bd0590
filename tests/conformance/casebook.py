"""The cases, as read from `cases/`."""

import json
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "cases"


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


def runtime_ids() -> list[str]:
    return list(cases("runtime"))
