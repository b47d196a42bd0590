"""W5: from the submit of a one-task project to its first step on an idle system, beside publish to start of a job."""

import time
from statistics import median

from sqlalchemy import func, select

from benchmarks import projects
from benchmarks.measure import Bar, Figure, interleaved
from benchmarks.stack import Stack
from orchestrator.producer import submit
from orchestrator.store.database import get_database
from orchestrator.store.tables import events


def measure(stack: Stack, rounds: int, *, quick: bool) -> list[Figure]:
    """Median milliseconds of some submits a round, one after the other."""
    times = 5 if quick else 20
    file = projects.write(stack.folder_of("w5"), projects.speaker(), turns=[{"say": projects.ANSWER}])
    submits: list[float] = []

    def once() -> float:
        begun, clock = time.perf_counter(), time.time() * 1000
        made = submit(file, settings=stack.settings)
        submits.append((time.perf_counter() - begun) * 1000)
        stack.ended([made.project_id])
        with get_database(stack.settings).read() as connection:
            # The first line a node writes: `core:start` takes the input.
            first = select(func.min(events.c.at)).where(
                events.c.trace_id == made.project_id, events.c.node_id.is_not(None)
            )
            return float(connection.execute(first).scalar_one()) - clock

    def officina() -> float:
        return median(once() for _ in range(times))

    def floor() -> float:
        job = stack.floor.started
        return median(float(job.delay(time.time()).get(timeout=30)) * 1000 for _ in range(times))

    officina(), floor()
    submits.clear()
    taken = interleaved("W5", "ms", rounds, {"floor": floor, "officina": officina})
    each = [median(submits[n * times : (n + 1) * times]) for n in range(rounds)]
    return [
        Figure(
            "W5",
            "submit to the first step, idle",
            "ms",
            taken["officina"],
            "publish to start of a job",
            taken["floor"],
            Bar(2),
        ),
        Figure("W5", "of that, the call of submit", "ms", each),
    ]
