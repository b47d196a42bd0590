"""Named points where a process can be made to die, so that tests can look at what is left (spec: reliability G).

Armed by `OFFICINA_CRASHPOINTS="checkpoint=3,ended=1"`: the process kills itself without a word when it comes to a
point for the nth time. Not armed, a point is one look at an empty table.

| point | where |
|---|---|
| `claimed` | a run is claimed, nothing is done yet |
| `begun` | the mark of a once call is committed, the call has not begun |
| `acted` | a once call has returned, its outcome is not written |
| `noted` | an outcome, or another small write in the middle of a step, is committed |
| `checkpoint` | a checkpoint between two steps is committed |
| `parked`, `ended` | a park, an end is committed, nobody was woken yet |
| `told` | wake-ups, followers and desk were told |
| `answered` | an answer is committed, nobody was woken yet |
"""

import os
import signal
import threading

POINTS = ("claimed", "begun", "acted", "noted", "checkpoint", "parked", "ended", "told", "answered")

_armed: dict[str, int] = {}
_hits: dict[str, int] = {}
_lock = threading.Lock()


def arm(**points: int) -> None:
    """Arms points anew: at which hit of each the process dies; 0 only counts.

    Raises:
        ValueError: there is no such point.
    """
    if unknown := set(points) - set(POINTS):
        raise ValueError(f"no crash point is called {sorted(unknown)[0]!r}; there are {', '.join(POINTS)}")
    _armed.clear()
    _hits.clear()
    _armed.update(points)


def reached(point: str) -> None:
    """Says that a point was reached; does not return when it is armed for this time."""
    if not _armed or point not in _armed:
        return
    with _lock:
        _hits[point] = _hits.get(point, 0) + 1
        due = _hits[point] == _armed[point]
    if due:
        os.kill(os.getpid(), signal.SIGKILL)


def hits() -> dict[str, int]:
    """How often each armed point was reached."""
    with _lock:
        return dict(_hits)


def _from_environment(words: str) -> dict[str, int]:
    pairs = (pair.partition("=") for pair in words.split(",") if pair)
    return {name.strip(): int(count or 1) for name, _, count in pairs}


arm(**_from_environment(os.environ.get("OFFICINA_CRASHPOINTS", "")))
