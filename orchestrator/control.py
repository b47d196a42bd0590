"""What a person may do to work under way: cancel, try again, fork, wake. Rows first, wake-ups after."""

from sqlalchemy import Connection, select

from orchestrator import crashpoints, desk, events, queue
from orchestrator.records import Wake
from orchestrator.settings import Settings
from orchestrator.store import audit, forks, projects, repairs, runs, tasks
from orchestrator.store.database import get_database
from orchestrator.store.repairs import How, Repaired
from orchestrator.store.tables import runs as runs_table
from orchestrator.store.tables import tasks as tasks_table
from registry.base import Json
from registry.errors import Refused


def cancel(settings: Settings, project_id: str, *, by: str) -> None:
    """Ends a project and everything in it; what runs sees it at its next write or check.

    Raises:
        Refused: `unknown_project`, `project_ended`.
    """

    def write(connection: Connection) -> bool:
        done = projects.cancel(connection, project_id, f"cancelled by {by}")
        if done:
            audit.of_project(connection, project_id, by, "project.cancelled")
        return done

    if not get_database(settings).write(write):
        raise Refused(f"project {project_id} has ended already", code="project_ended")
    crashpoints.reached("cancelled")
    events.publish(settings, project_id, 0)
    desk.refresh(settings, settings.owner)


def retry(settings: Settings, task_id: str, *, by: str) -> None:
    """Runs a failed task again; dependents that were skipped open again.

    Raises:
        Refused: `unknown_task`, `not_failed`.
    """

    def write(connection: Connection) -> list[Wake]:
        ready = tasks.retry(connection, task_id)
        project_id = connection.execute(
            select(tasks_table.c.project_id).where(tasks_table.c.id == task_id)
        ).scalar_one()
        audit.of_project(connection, project_id, by, "task.retried", task_id)
        return ready

    queue.send(settings, get_database(settings).write(write))


def fork(settings: Settings, run_id: str, seq: int, *, by: str) -> str:
    """Runs the task of an ended run again from the run's last checkpoint up to an event; returns the new run's id.

    Raises:
        Refused: `unknown_run`, `not_root`, `task_running`, `unknown_checkpoint`.
    """

    def write(connection: Connection) -> tuple[str, str, list[Wake]]:
        made = forks.fork(connection, run_id, seq)
        audit.of_project(connection, made[1], by, "run.forked", run_id, at=seq, into=made[0])
        return made

    new_id, project_id, ready = get_database(settings).write(write)
    queue.send(settings, ready)
    events.publish(settings, project_id, 0)
    return new_id


def wake(settings: Settings, run_id: str, *, by: str) -> None:
    """Ends the sleep of a run before its time.

    Raises:
        Refused: `unknown_run`, `run_ended`, `not_sleeping`.
    """

    def write(connection: Connection) -> list[Wake]:
        ready = runs.wake(connection, run_id)
        project_id = connection.execute(select(runs_table.c.project_id).where(runs_table.c.id == run_id)).scalar_one()
        audit.of_project(connection, project_id, by, "run.woken", run_id)
        return ready

    queue.send(settings, get_database(settings).write(write))


def repair(
    settings: Settings,
    run_id: str,
    how: How,
    *,
    by: str,
    call_id: str | None = None,
    result: Json = None,
    reason: str | None = None,
) -> Repaired:
    """Says what became of a call that may have happened; it counts once, and only while nobody knows.

    Args:
        how: `result`: it happened, and `result` is what came of it; `retry`: run it again; `skip`: leave it.
        call_id: which call; None when the run has only one that is unknown.
        reason: why, for the record.

    Raises:
        Refused: `unknown_run`, `not_unknown`, `ambiguous_call`, `already_answered`, `run_ended`.
    """
    done = get_database(settings).write(lambda c: repairs.repair(c, run_id, call_id, how, result, by=by, reason=reason))
    queue.send(settings, done.wakes)
    if done.act:
        queue.advance(settings, done.project_id, done.call.name)
    events.publish(settings, done.project_id, 0)
    desk.changed(settings, done.owner_id, done.signal_ids)
    return done
