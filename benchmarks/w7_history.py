"""W7: one run of 400 turns: its last 20 turns beside its own first 20."""

from sqlalchemy import select

from benchmarks import projects
from benchmarks.measure import Bar, Figure, interleaved
from benchmarks.stack import Stack
from benchmarks.w1_steps import SAID
from orchestrator.store.tables import events

TURNS, FEW = 400, 20
#: The line at the end of each turn.
DONE = "tool.result"


def measure(stack: Stack, rounds: int, *, quick: bool) -> list[Figure]:
    """Milliseconds a turn (a model call and a tool call, both durable), as the trace says."""
    turns = TURNS // 4 if quick else TURNS
    firsts: list[float] = []

    def lasts() -> float:
        agent = projects.stepper(2 * turns)
        file = projects.write(stack.folder_of("w7"), agent, turns=[SAID] * turns)
        stack.wake([file])
        at = _ends(stack, turns)
        firsts.append((at[FEW] - at[0]) / FEW)
        return (at[-1] - at[-1 - FEW]) / FEW

    lasts()
    firsts.clear()
    taken = interleaved("W7", "ms a turn", rounds, {"last": lasts})
    what = f"turns {turns - FEW} to {turns} of one run"
    return [Figure("W7", what, "ms a turn", taken["last"], f"its first {FEW} turns", firsts, Bar(1.2))]


def _ends(stack: Stack, turns: int) -> list[int]:
    """When each turn of the latest run ended, epoch milliseconds."""
    latest = select(events.c.trace_id).order_by(events.c.at.desc()).limit(1).scalar_subquery()
    query = select(events.c.at).where(events.c.trace_id == latest, events.c.kind == DONE).order_by(events.c.seq)
    found = [row.at for row in stack.rows(query)]
    if len(found) != turns:
        raise RuntimeError(f"the trace tells of {len(found)} turns, not of {turns}")
    return found
