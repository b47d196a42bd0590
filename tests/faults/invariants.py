"""What must be true of the rows whenever nothing moves any more."""

from collections.abc import Iterator
from itertools import groupby

from sqlalchemy import Connection, func, select

from orchestrator.settings import Settings
from orchestrator.states import PROJECT_ENDED, RUN_ENDED, SIGNAL_OF_PARK, TASK_ENDED
from orchestrator.store import stuck
from orchestrator.store import tables as t
from orchestrator.store.database import get_database


def broken(settings: Settings) -> list[str]:
    """Every breach, a line each; for a system at rest."""
    with get_database(settings).read() as connection:
        return [*_traces(connection), *_steps(connection), *_states(connection), *_money(connection)]


def _traces(connection: Connection) -> Iterator[str]:
    """Numbers without gaps, and the counter where they end."""
    counted = {row.id: row.seq for row in connection.execute(select(t.traces))}
    numbers = select(t.events.c.trace_id, func.count(), func.min(t.events.c.seq), func.max(t.events.c.seq))
    for trace_id, count, first, last in connection.execute(numbers.group_by(t.events.c.trace_id)):
        if (first, last) != (1, count) or counted[trace_id] != last:
            yield f"trace {trace_id}: {count} events from {first} to {last}, counter at {counted[trace_id]}"


def _steps(connection: Connection) -> Iterator[str]:
    """No step twice and none out of order, one result for each call."""
    done = select(t.events).where(t.events.c.kind.in_(("node.completed", "tool.result")))
    lines = connection.execute(done.order_by(t.events.c.run_id, t.events.c.seq)).all()
    for run_id, mine in groupby(lines, key=lambda line: line.run_id):
        of_run = list(mine)
        steps = [line.data["step"] for line in of_run if line.kind == "node.completed"]
        if steps != sorted(set(steps)):
            yield f"run {run_id}: steps {steps}"
        calls = [line.data["toolCallId"] for line in of_run if line.kind == "tool.result"]
        if len(calls) != len(set(calls)):
            yield f"run {run_id}: results of {calls}"


def _states(connection: Connection) -> Iterator[str]:
    ended = {row.id: row.status for row in connection.execute(select(t.projects))}
    for task in connection.execute(select(t.tasks)):
        if ended[task.project_id] in PROJECT_ENDED and task.status not in TASK_ENDED:
            yield f"task {task.key} is {task.status}, its project {ended[task.project_id]}"
    runs = {row.id: row for row in connection.execute(select(t.runs))}
    for run in runs.values():
        over = run.status in RUN_ENDED
        if not over and ended[run.project_id] in PROJECT_ENDED:
            yield f"run {run.id} is {run.status}, its project {ended[run.project_id]}"
        if not over and run.parent_id and runs[run.parent_id].status in RUN_ENDED:
            yield f"run {run.id} is {run.status}, its parent {runs[run.parent_id].status}"
        if over and (run.worker_id is not None and run.status != "cancelled" or run.due_at is not None):
            yield f"run {run.id} is {run.status} and held by {run.worker_id}, due {run.due_at}"
    asked = select(t.signals).where(t.signals.c.status == "open", t.signals.c.kind.in_(sorted(SIGNAL_OF_PARK)))
    for signal in connection.execute(asked.where(~t.signals.c.carry_on)):
        if signal.run_id and runs[signal.run_id].status in RUN_ENDED:
            yield f"signal {signal.id} is open, its run {runs[signal.run_id].status}"
    for run_id in stuck.find(connection, 100):
        yield f"run {run_id} waits for what is there already"


def _money(connection: Connection) -> Iterator[str]:
    """What was spent is counted once, and nothing is set aside for runs that have ended."""
    for row in connection.execute(select(t.reservations)):
        yield f"run {row.run_id} has {row.micro} set aside in {row.window_id}"
    for project in connection.execute(select(t.projects)):
        of = t.runs.c.project_id == project.id
        roots = select(func.coalesce(func.sum(t.runs.c.cost_micro), 0)).where(of, t.runs.c.parent_id.is_(None))
        spent = connection.execute(roots.where(t.runs.c.status.in_(sorted(RUN_ENDED)))).scalar_one()
        if project.cost_micro != spent:
            yield f"project {project.id} cost {project.cost_micro}, its runs {spent}"
