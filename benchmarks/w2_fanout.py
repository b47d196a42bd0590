"""W2: a map over items of two steps each and its join, beside Celery chords."""

import time

from celery import chord

from benchmarks import projects
from benchmarks.measure import Bar, Figure, interleaved
from benchmarks.stack import Stack

ITEMS = 32
TURN = {"say": projects.ANSWER, "calls": [projects.CALL]}


def measure(stack: Stack, rounds: int, *, quick: bool) -> list[Figure]:
    """Milliseconds from the wake-up of the parent to its end."""
    agent = projects.mapper(ITEMS)

    def officina() -> float:
        return stack.wake([projects.write(stack.folder_of("w2"), agent, turns=[TURN], section="items")]) * 1000

    def chord_of(task: str) -> float:
        floors = stack.floor
        jobs = [getattr(floors, task).s(f"item {n}") for n in range(ITEMS)]
        begun = time.perf_counter()
        chord(jobs, app=floors.app)(floors.nothing.s()).get(timeout=60)
        return (time.perf_counter() - begun) * 1000

    works = {"no-ops": lambda: chord_of("nothing"), "steps": lambda: chord_of("two_steps"), "officina": officina}
    for work in works.values():
        work()
    taken = interleaved("W2", "ms", rounds, works)
    what = f"map over {ITEMS} items of 2 steps, and join"
    return [
        Figure("W2", what, "ms", taken["officina"], f"chord of {ITEMS} no-op jobs", taken["no-ops"], Bar(3)),
        Figure("W2", what, "ms", taken["officina"], "chord of jobs doing the steps", taken["steps"], Bar(1.5)),
    ]
