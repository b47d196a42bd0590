"""The cases, as read from `cases/`."""

import json
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "cases"


@cache
def cases(kind: str) -> dict[str, dict[str, Any]]:
    """The cases of a kind (`expressions`, `validation`, `runtime`) by id."""
    found: list[dict[str, Any]] = json.loads((FOLDER / f"{kind}.json").read_text(encoding="utf-8"))
    return {case["id"]: case for case in found}


def runtime_ids() -> list[str]:
    return list(cases("runtime"))
