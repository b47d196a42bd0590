"""The jobs: wake-ups that say "look at this row". Labels are for people; nothing is read from them.

A job never raises into Celery for what a run does: a failure is a row. A run that fans out replaces its job by a chord:
a job for each child, and itself again as the body. The chord only makes things sooner: rows decide, a body that finds
children open simply ends, and a chord that cannot be sent is made up for by plain wake-ups.
"""

import logging
from typing import Any

from celery import Task, chord, shared_task
from celery.exceptions import Ignore

from orchestrator import crashpoints, queue
from orchestrator.records import Wake
from orchestrator.store import wakes
from workers import actions, requests
from workers.logs import bound
from workers.runtime import runtime

log = logging.getLogger(__name__)


@shared_task(name=queue.RUN, bind=True)
def run(self: Task[..., str], run_id: str, **labels: Any) -> str:
    """Claims the run and carries it until it parks or ends."""
    with bound(run=run_id, **labels):
        try:
            done = runtime().carry(run_id)
        except Exception as error:  # a job that raises would break a chord; the row stands, and the clock looks again
            log.exception("run %s was not carried", run_id)
            return f"not carried: {type(error).__name__}"
        if done.children and done.parent_id is not None:
            _fan_out(self, done.parent_id, labels, done.children)
        return done.word


@shared_task(name=queue.ADVANCE, ignore_result=True)
def advance(project_id: str, **labels: Any) -> int:
    """Sends what the project's rows have ready, and runs answered actions that no run waits for."""
    with bound(project_id=project_id, **labels):
        mine = runtime()
        try:
            sent = queue.send(mine.settings, mine.database.write(lambda c: wakes.advance(c, project_id)))
            return sent + actions.perform(mine, project_id)
        except Exception:  # of no project, or with the database gone: the rows stand, and the clock looks again
            log.exception("project %s was not advanced", project_id)
            return 0


@shared_task(name=queue.CALL, ignore_result=True)
def call(request_id: str, **labels: Any) -> str:
    """Makes a call that was asked for over HTTP."""
    with bound(request_id=request_id, **labels):
        try:
            return requests.perform(runtime(), request_id)
        except Exception as error:  # the row stands, and the clock looks again
            log.exception("the call %s was not made", request_id)
            return f"not made: {type(error).__name__}"


def _fan_out(job: Task[..., str], run_id: str, labels: dict[str, Any], children: tuple[Wake, ...]) -> None:
    """Replaces the job by a chord over its children.

    Raises:
        Ignore: Celery's way of saying that the job lives on in the chord.
    """
    settings = runtime().settings
    crashpoints.reached("fanning")
    if settings.redis is None:  # no place for a chord's results: the last child's wake-up is the join
        queue.send(settings, children)
        return
    keep: dict[str, Any] = {"ignore_result": False}  # a chord counts results
    header = [job.si(w.run_id, **queue.labels(w)).set(**keep, **queue.options(settings, w)) for w in children]
    # The parent goes on in the queue it came from.
    came: Any = job.request.delivery_info or {}
    back: dict[str, Any] = {"queue": came.get("routing_key") or queue.QUEUE, "priority": came.get("priority") or 0}
    body = job.si(run_id, **labels).set(**keep, **back)
    try:
        job.replace(chord(header, body))
    except Ignore:
        crashpoints.reached("replaced")
        raise
    except Exception as error:
        log.warning("a fan-out of %d goes without a chord: %s", len(children), error)
        queue.send(settings, children)
