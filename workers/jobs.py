"""The jobs: wake-ups that say "look at this row". Labels are for people; nothing is read from them.

A job never raises into Celery for what a run does: a failure is a row.
"""

from typing import Any

from celery import shared_task

from orchestrator import queue
from orchestrator.store import wakes
from workers.logs import bound
from workers.runtime import runtime


@shared_task(name=queue.RUN, ignore_result=True)
def run(run_id: str, **labels: Any) -> str:
    """Claims the run and carries it until it parks or ends."""
    with bound(run=run_id, **labels):
        return runtime().carry(run_id)


@shared_task(name=queue.ADVANCE, ignore_result=True)
def advance(project_id: str, **labels: Any) -> int:
    """Sends what the project's rows have ready."""
    with bound(project_id=project_id, **labels):
        mine = runtime()
        return queue.send(mine.settings, mine.database.write(lambda c: wakes.take(c, project_id)))
