"""What every peer does: the steps of W1 and W2 and the plan of W3, and how it says what it took."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.projects import ANSWER, FOUND, STEPS, layers

__all__ = ["STEPS", "message", "plan", "report", "timed"]


def message(step: int) -> dict[str, Any]:
    """The message of a step: the model's and the tool's in turn."""
    if step % 2 == 0:
        return {"role": "assistant", "content": ANSWER, "calls": [{"id": f"call_{step}", "name": "math.evaluate"}]}
    return {"role": "tool", "id": f"call_{step - 1}", "content": FOUND}


def plan(quick: bool) -> dict[str, list[str]]:
    return layers(10, 20 if quick else 100)


def timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def report(workload: str, value: float) -> None:
    """One line for the runner: milliseconds, of W1 a step."""
    sys.stdout.write(json.dumps({"workload": workload, "value": value}) + "\n")
    sys.stdout.flush()
