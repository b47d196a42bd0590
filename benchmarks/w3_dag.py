"""W3: a plan of 1,000 tasks that do nothing, beside Celery jobs that count their dependents down in Redis."""

import json
import time

from celery.app.base import Celery

from benchmarks import projects
from benchmarks.measure import Bar, Figure, interleaved
from benchmarks.stack import PATIENCE_S, Stack
from registry.ids import new_id

DEEP, WIDE = 10, 100


def measure(stack: Stack, rounds: int, *, quick: bool) -> list[Figure]:
    """Milliseconds from the first wake-up to the end of the project."""
    wide = WIDE // 5 if quick else WIDE
    plan = projects.layers(DEEP, wide)

    def officina() -> float:
        file = projects.write(stack.folder_of("w3"), projects.nothing(), tasks=plan, turns=[])
        return stack.wake([file]) * 1000

    def floor() -> float:
        return _floor(stack, plan) * 1000

    officina(), floor()
    taken = interleaved("W3", "ms", rounds, {"floor": floor, "officina": officina})
    what = f"plan of {len(plan)} no-op tasks, {DEEP} layers, 3 dependencies each"
    against = "Celery jobs, counters in Redis"
    return [Figure("W3", what, "ms", taken["officina"], against, taken["floor"], Bar(0.5))]


def _floor(stack: Stack, plan: dict[str, list[str]]) -> float:
    """The counters are in place before the clock starts, as Officina's rows are."""
    floors, run = stack.floor, new_id()
    app: Celery = floors.app
    client = floors.redis_at(app.conf.broker_url)
    after: dict[str, list[str]] = {}
    for name, needs in plan.items():
        for one in needs:
            after.setdefault(one, []).append(name)
    client.hset(f"{run}:open", mapping={name: len(needs) for name, needs in plan.items()})
    client.hset(f"{run}:after", mapping={name: json.dumps(names) for name, names in after.items()})
    client.set(f"{run}:left", len(plan))
    begun = time.perf_counter()
    with app.producer_pool.acquire(block=True) as producer:
        for name, needs in plan.items():
            if not needs:
                floors.dag_node.apply_async((run, name), producer=producer)
    if client.blpop(f"{run}:done", PATIENCE_S) is None:
        raise RuntimeError("the floor's plan did not end")
    return time.perf_counter() - begun
