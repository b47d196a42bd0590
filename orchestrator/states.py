"""States, their named sets, and the moves that are allowed. Everything else asks these sets."""

from typing import Final, Literal, get_args

RunStatus = Literal["queued", "running", "needs_input", "waiting", "completed", "failed", "cancelled"]
TaskStatus = Literal[
    "pending", "queued", "running", "needs_input", "waiting", "completed", "failed", "skipped", "cancelled"
]
ProjectStatus = Literal["planning", "running", "completed", "partial", "failed", "cancelled"]
#: `turn`: a child of a sequential fan-out that is not its turn yet.
WaitingOn = Literal["signals", "timer", "gate", "children", "backoff", "turn"]

RUN_ENDED: Final = frozenset({"completed", "failed", "cancelled"})
RUN_OPEN: Final = frozenset(get_args(RunStatus)) - RUN_ENDED
RUN_PARKED: Final = frozenset({"needs_input", "waiting"})
TASK_ENDED: Final = frozenset({"completed", "failed", "skipped", "cancelled"})
PROJECT_ENDED: Final = frozenset({"completed", "partial", "failed", "cancelled"})

SIGNAL_OF_PARK: Final = frozenset({"decision", "question", "interrupt", "gate", "budget"})
"""Kinds a run waits for; the others only tell a person something."""
