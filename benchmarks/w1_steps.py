"""W1: agent runs of 20 steps, durable after each, beside a Celery job that writes 20 steps."""

import time
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks import projects
from benchmarks.measure import Bar, Figure, interleaved
from benchmarks.stack import Stack
from orchestrator.settings import Settings
from registry.ids import new_id

RUNS_PER_PROJECT = 10
SAID = {"say": projects.ANSWER, "calls": [projects.CALL]}
#: The same turn, as the model server reads it.
SERVED = {"text": projects.ANSWER, "calls": [projects.CALL]}


def measure(stack: Stack, rounds: int, *, quick: bool) -> list[Figure]:
    """Milliseconds a step, all runs at once, with two worker processes."""
    many = 2 if quick else 10
    runs = many * RUNS_PER_PROJECT
    steps = runs * projects.STEPS

    def officina(settings: Settings, turns: Sequence[projects.Json] | None) -> float:
        folders = [stack.folder_of("w1") for _ in range(many)]
        made = [projects.write(f, projects.stepper(), tasks=RUNS_PER_PROJECT, turns=turns) for f in folders]
        return stack.wake(made, settings) / steps * 1000

    def floor() -> float:
        job, first = stack.floor.twenty_steps, new_id()
        begun = time.perf_counter()
        for sent in [job.delay(f"{first}:{number}") for number in range(runs)]:
            sent.get(timeout=60)
        return (time.perf_counter() - begun) / steps * 1000

    works: dict[str, Callable[[], float]] = {
        "floor": floor,
        "officina": partial(officina, stack.settings, [SAID] * (projects.STEPS // 2)),
    }
    if not quick:
        works["over HTTP"] = partial(officina, stack.modelled("http", stack.model([SERVED])), None)
    for work in works.values():
        work()
    taken = interleaved("W1", "ms a step", rounds, works)
    what, against = f"{runs} runs x {projects.STEPS} steps, durable after each", "Celery job, update + insert a step"
    figures = [Figure("W1", what, "ms a step", taken["officina"], against, taken["floor"], Bar(1.5))]
    if not quick:
        what = "the same, its model a local server"
        figures.append(Figure("W1", what, "ms a step", taken["over HTTP"], against, taken["floor"]))
    return figures
