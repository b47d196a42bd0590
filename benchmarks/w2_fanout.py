"""W2: a map over items and its join, beside Celery chords."""

import time
from collections.abc import Callable

from celery import chord

from benchmarks import projects
from benchmarks.measure import Bar, Figure, interleaved
from benchmarks.stack import Stack

ITEMS, MANY = 32, 1_000
TURN = {"say": projects.ANSWER, "calls": [projects.CALL]}
#: What a map over 32 items may add, as a multiple of a bare chord of as many jobs that do nothing.
ADDS = Bar(3)


def measure(stack: Stack, rounds: int, *, quick: bool) -> list[Figure]:
    """Milliseconds from the fan-out to the join, and of the whole project around it."""
    wholes: dict[str, list[float]] = {"bare": [], "steps": []}

    def officina(kind: str, agent: projects.Json) -> float:
        file = projects.write(stack.folder_of("w2"), agent, turns=[TURN], section="items")
        span, whole = stack.fan_out(file)
        wholes[kind].append(whole * 1000)
        return span * 1000

    def chord_of(task: str, items: int = ITEMS) -> float:
        floors = stack.floor
        jobs = [getattr(floors, task).s(f"item {n}") for n in range(items)]
        begun = time.perf_counter()
        chord(jobs, app=floors.app)(floors.nothing.s()).get(timeout=60)
        return (time.perf_counter() - begun) * 1000

    works = {
        "no-ops": lambda: chord_of("nothing"),
        "steps": lambda: chord_of("two_steps"),
        "map": lambda: officina("bare", projects.bare_mapper(ITEMS)),
        "map of steps": lambda: officina("steps", projects.mapper(ITEMS)),
    }
    for _ in range(2):  # the second time, what was met once is in place: prepared statements, threads, connections
        for work in works.values():
            work()
    for values in wholes.values():
        values.clear()
    taken = interleaved("W2", "ms", rounds, works)
    many = [] if quick else _many(stack, rounds, chord_of)
    bare, steps = f"map over {ITEMS} items", f"map over {ITEMS} items of 2 steps"
    nothing = (f"chord of {ITEMS} no-op jobs", taken["no-ops"])
    return [
        Figure("W2", f"{bare} that take no step, fan-out to join", "ms", taken["map"], *nothing, ADDS),
        Figure("W2", f"{steps}, fan-out to join", "ms", taken["map of steps"], *nothing, ADDS),
        Figure("W2", f"{steps}, the whole project", "ms", wholes["steps"], *nothing, ADDS),
        Figure(
            "W2",
            f"{steps}, fan-out to join",
            "ms",
            taken["map of steps"],
            "chord of jobs doing the steps",
            taken["steps"],
            Bar(1.5),
        ),
        *many,
    ]


def _many(stack: Stack, rounds: int, chord_of: Callable[[str, int], float]) -> list[Figure]:
    settings = stack.office("wide", limits={"map_items": MANY})

    def officina() -> float:
        file = projects.write(stack.folder_of("w2"), projects.mapper(MANY), turns=[TURN], section="items")
        return stack.fan_out(file, settings)[0] * 1000

    works = {"chord": lambda: chord_of("two_steps", MANY), "map": officina}
    for work in works.values():
        work()
    taken = interleaved("W2", "ms", rounds, works)
    what, against = f"map over {MANY} items of 2 steps, fan-out to join", f"chord of {MANY} jobs doing the steps"
    return [Figure("W2", what, "ms", taken["map"], against, taken["chord"], Bar(1))]
