"""W6: one of two workers is killed in the middle of W1; how long it takes until all is done, and what is done twice."""

import time
from collections.abc import Sequence

from sqlalchemy import func, select

from benchmarks import projects
from benchmarks.measure import Bar, Figure, tell
from benchmarks.stack import Stack, wait
from benchmarks.w1_steps import SERVED
from orchestrator import queue
from orchestrator.producer import submit
from orchestrator.store.tables import events, runs

LEASE_S, ALLOWED_S = 2.0, 1.5
MODEL_MS = 20
#: A tool that gave a result a second time would be in the trace a second time.
DONE = "tool.result"


def measure(stack: Stack, rounds: int, *, quick: bool) -> list[Figure]:
    """Seconds from the kill to the end of all runs; completed steps that were taken again."""
    many = 20 if quick else 100
    model = stack.model([SERVED], MODEL_MS)
    limits = {"lease_s": LEASE_S, "renew_s": LEASE_S / 4}
    settings = stack.modelled("killed", model, limits=limits, worker_slots=many)
    crew = stack.crew(settings)
    steps = many * projects.STEPS
    took: list[float] = []
    again: list[float] = []
    cut: list[float] = []
    for number in range(-1, rounds):  # one to warm up, without a death
        file = projects.write(stack.folder_of("w6"), projects.stepper(), tasks=many)
        silent = settings.model_copy(update={"broker_url": ""})
        project_id = submit(file, settings=silent).project_id
        before = len(_asked(model.asked.read_text(encoding="utf-8")))
        queue.advance(settings, project_id, "bench")
        mine = select(func.coalesce(func.sum(runs.c.steps), 0)).where(runs.c.project_id == project_id)
        if number >= 0:
            wait(lambda mine=mine: stack.rows(mine, settings)[0][0] >= steps / 3, 0.02)  # type: ignore[misc]
            crew.kill()
            killed = time.time()
            took.append(stack.ended([project_id], settings) - killed)
            crew.replace()
        else:
            stack.ended([project_id], settings)
        if number >= 0:
            asked = _asked(model.asked.read_text(encoding="utf-8"))[before:]
            twice = select(func.count()).where(events.c.trace_id == project_id, events.c.kind == DONE)
            results = int(stack.rows(twice, settings)[0][0])
            again.append(went_back(asked) + max(0, results - many * projects.STEPS // 2))
            cut.append(len(asked) - many * projects.STEPS / 2)
            tell(f"W6, round {number + 1} of {rounds}: {took[-1]:.2f} s, {again[-1]:.0f} steps again")
    what = f"a worker of two killed in {many} runs x {projects.STEPS} steps, lease {LEASE_S:g} s"
    return [
        Figure("W6", f"{what}: kill to all done", "s", took, bar=Bar(LEASE_S + ALLOWED_S, "value")),
        Figure("W6", "completed steps taken again", "", again, bar=Bar(0.5, "value")),
        Figure("W6", "calls cut off by the kill, and asked again", "", cut),
    ]


def went_back(asked: Sequence[tuple[str, int]]) -> int:
    """Requests of a conversation that hold fewer answers than an earlier one of it did: what was lost in between was a
    completed step."""
    most: dict[str, int] = {}
    back = 0
    for task, said in asked:
        back += said < most.get(task, 0)
        most[task] = max(said, most.get(task, 0))
    return back


def _asked(text: str) -> list[tuple[str, int]]:
    return [(task, int(said)) for task, said in (line.split() for line in text.splitlines())]
