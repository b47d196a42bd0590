"""Fairness: how many tasks of a large project begin between the submit of a one-task project and its own beginning."""

import json
import time

from sqlalchemy import func, select

from benchmarks import projects
from benchmarks.measure import Bar, Figure, interleaved, tell
from benchmarks.stack import WORKERS, Stack, wait
from orchestrator import control
from orchestrator.producer import submit
from orchestrator.settings import Settings
from orchestrator.store import wakes
from orchestrator.store.database import get_database
from orchestrator.store.tables import runs

TASKS, SLOTS = 10_000, 4
#: Milliseconds of each model call: long enough that all slots are taken.
CALL_MS = 20
#: What is in the queue already, what every slot takes first, and a few for the claims that come together.
FEW = wakes.SHARE + 5 + WORKERS * SLOTS + 8


def measure(stack: Stack, rounds: int, *, quick: bool) -> list[Figure]:
    """Tasks of a project of 10,000 that begin before the one of its neighbour, with eight slots."""
    tasks = TASKS // 10 if quick else TASKS
    settings = stack.office("fair", worker_slots=SLOTS, limits={"project_tasks": TASKS})
    turns = [{"say": projects.ANSWER}]
    large_file = projects.write(stack.folder_of("fair"), projects.speaker(), tasks=tasks, turns=turns)
    script = json.loads(large_file.with_name("script.json").read_text(encoding="utf-8"))
    large_file.with_name("script.json").write_text(json.dumps(script | {"delayMs": CALL_MS}), encoding="utf-8")
    small_file = projects.write(stack.folder_of("fair"), projects.speaker(), turns=turns)
    tell(f"fair: submitting {tasks} tasks")
    large = submit(large_file, settings=settings).project_id
    _begun(settings, large, 50)

    def one() -> float:
        before = time.time_ns() // 1_000_000
        small = submit(small_file, settings=settings).project_id
        stack.ended([small], settings)
        with get_database(settings).read() as connection:
            mine = select(func.min(runs.c.started_at)).where(runs.c.project_id == small).scalar_subquery()
            between = (runs.c.started_at >= before) & (runs.c.started_at <= mine)
            count = select(func.count()).where(runs.c.project_id == large, between)
            return float(connection.execute(count).scalar_one())

    taken = interleaved("fair", "tasks", rounds, {"officina": one})
    control.cancel(settings, large, by=settings.owner)
    note = f"{tasks} tasks, {WORKERS * SLOTS} slots"
    bar = Bar(FEW, "value")
    return [
        Figure(
            "fair",
            "tasks of a large project that go before one of a small",
            "tasks",
            taken["officina"],
            bar=bar,
            note=note,
        )
    ]


def _begun(settings: Settings, project_id: str, least: int) -> None:
    def enough() -> bool:
        with get_database(settings).read() as connection:
            begun = select(func.count()).where(runs.c.project_id == project_id, runs.c.started_at.is_not(None))
            return int(connection.execute(begun).scalar_one()) >= least

    wait(enough, 0.05)
