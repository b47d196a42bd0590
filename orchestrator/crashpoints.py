"""Named points where a process can be made to fail, so that tests can look at what is left (spec: reliability G).

Armed by `OFFICINA_CRASHPOINTS="checkpoint=3,ended=1"`: the process kills itself without a word when it comes to a
point for the nth time. A mode after the number does something else there: `stop` freezes the process until it is
continued, `raise` raises `Tripped`, `delay` waits for a second (`delay/200`: milliseconds). Not armed, a point is one
look at an empty table.

| point | where |
|---|---|
| `submitted` | a project is committed, nobody was woken yet |
| `registered` | the row of a worker is committed, it has claimed nothing |
| `claimed` | a run is claimed, nothing is done yet |
| `asking` | the model is about to be asked, its money is set aside |
| `heard` | the model has answered, nothing of it is written |
| `begun` | the mark of a once call is committed, the call has not begun |
| `acted` | a call has returned, its outcome is not written |
| `noted` | an outcome, or another small write in the middle of a step, is committed |
| `checkpoint` | a checkpoint between two steps is committed |
| `parked`, `ended` | a park, an end is committed, nobody was woken yet |
| `published` | a wake-up was sent |
| `told` | wake-ups, followers and desk were told |
| `fanning` | children are committed, their chord is not sent |
| `replaced` | the chord is sent, the job it replaces has not ended |
| `answered` | an answer is committed, nobody was woken yet |
| `settling` | an action outside its run has returned, its outcome is not written |
| `cancelled` | a cancel is committed, nobody was told yet |
| `elected` | a clock holds its lease, it has repaired nothing |
| `taken_back` | the clock has queued runs whose lease ran out, nobody was woken yet |
| `due` | the clock has queued runs whose time came, nobody was woken yet |
| `expired` | the clock has closed signals past their time, nobody was woken yet |
| `fired` | a due time is committed with what it starts, nobody was woken yet |
| `rewoken` | the clock has counted wake-ups once more, they are not sent |
| `stepped` | a suspect got past its step, its worker does not know yet |
| `leaving` | a stopping worker has given its runs back, its row says that it lives |
"""

import os
import signal
import threading
import time
from dataclasses import dataclass

POINTS = (
    *("submitted", "registered", "claimed", "asking", "heard", "begun", "acted", "noted", "checkpoint"),
    *("parked", "ended", "published", "told", "fanning", "replaced", "answered", "settling", "cancelled"),
    *("elected", "taken_back", "due", "expired", "fired", "rewoken", "stepped", "leaving"),
)
MODES = ("kill", "stop", "raise", "delay")


class Tripped(Exception):
    """What a point armed with `raise` raises: a fault nobody foresaw."""


@dataclass(frozen=True)
class Armed:
    """What happens at a point, and at which hit; at 0 the hits are only counted."""

    count: int
    mode: str = "kill"
    milliseconds: int = 1_000


_armed: dict[str, Armed] = {}
_hits: dict[str, int] = {}
_lock = threading.Lock()


def arm(**points: int | Armed) -> None:
    """Arms points anew; a bare number kills at that hit.

    Raises:
        ValueError: there is no such point or mode.
    """
    if unknown := set(points) - set(POINTS):
        raise ValueError(f"no crash point is called {sorted(unknown)[0]!r}; there are {', '.join(POINTS)}")
    made = {name: how if isinstance(how, Armed) else Armed(how) for name, how in points.items()}
    if unknown := {how.mode for how in made.values()} - set(MODES):
        raise ValueError(f"a crash point cannot {sorted(unknown)[0]!r}; it can {', '.join(MODES)}")
    _armed.clear()
    _hits.clear()
    _armed.update(made)


def reached(point: str) -> None:
    """Says that a point was reached; does not return when it is armed to kill at this hit.

    Raises:
        Tripped: it is armed to raise.
    """
    if not _armed or point not in _armed:
        return
    with _lock:
        _hits[point] = _hits.get(point, 0) + 1
        how = _armed[point] if _hits[point] == _armed[point].count else None
    if how is not None:
        _fail(point, how)


def hits() -> dict[str, int]:
    """How often each armed point was reached."""
    with _lock:
        return dict(_hits)


def _fail(point: str, how: Armed) -> None:
    if how.mode == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how.mode == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif how.mode == "delay":
        time.sleep(how.milliseconds / 1000)
    else:
        raise Tripped(f"the crash point {point!r} is armed to raise")


def _from_environment(words: str) -> dict[str, int | Armed]:
    pairs = (pair.partition("=") for pair in words.split(",") if pair)
    return {name.strip(): _how(text) for name, _, text in pairs}


def _how(text: str) -> Armed:
    """`3`, `3:stop`, `3:delay/200`; nothing is 1."""
    count, _, rest = text.partition(":")
    mode, _, milliseconds = rest.partition("/")
    return Armed(int(count or 1), mode or "kill", int(milliseconds or 1_000))


arm(**_from_environment(os.environ.get("OFFICINA_CRASHPOINTS", "")))
