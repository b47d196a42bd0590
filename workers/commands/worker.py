"""`officina worker`: one worker process, kept alive; and the command line every worker process is started with."""

import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.commands.output import note

if TYPE_CHECKING:
    from orchestrator.settings import Settings

app = typer.Typer()

#: Seconds beyond its own grace that a worker gets to leave.
LEAVE_S = 5


class PoolName(StrEnum):
    """How a worker carries its slots."""

    THREADS = "threads"
    PREFORK = "prefork"


@app.command()
def worker(
    slots: Annotated[int | None, typer.Option(min=1, help="Runs it carries at once; default: as set.")] = None,
    pool: Annotated[PoolName | None, typer.Option(help="Threads wait well, processes compute well.")] = None,
    queues: Annotated[
        str | None, typer.Option(help="Queues it serves, with commas between, as in code,default; default: default.")
    ] = None,
    autoscale: Annotated[
        str | None, typer.Option(metavar="MAX,MIN", help="With --pool prefork: processes at most and at least.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Its name in Flower; default: one of its own.")] = None,
) -> None:
    """Run a worker on the broker and database that are set, and start it again when it ends."""
    from orchestrator.queue import NoBroker
    from orchestrator.settings import get_settings
    from orchestrator.stack.caretaker import Caretaker
    from orchestrator.stack.environment import child_environment
    from orchestrator.stack.processes import Process
    from orchestrator.stack.stopping import Stopped, StopSignals
    from orchestrator.stack.supervisor import Part, Supervisor

    settings = get_settings()
    if not settings.broker:
        raise NoBroker("no broker: start the embedded stack with `officina up`, or set OFFICINA_BROKER_URL")
    _check(settings)
    command = worker_command(
        settings,
        name=name or f"worker-{os.getpid()}",
        slots=slots,
        pool=pool.value if pool else None,
        queues=_queues(queues, settings),
        autoscale=_bounds(autoscale, pool.value if pool else settings.worker_pool),
    )
    supervisor, caretaker = Supervisor(note), Caretaker(lambda: settings)
    with StopSignals(supervisor.hurry) as signals:
        supervisor.start()
        try:
            environment = child_environment(settings)
            caretaker.start()
            part = Part(
                "worker",
                lambda: Process(command, env=environment),
                grace_s=settings.grace_s + LEAVE_S,
                buried=caretaker.bury,
                silent=caretaker.is_silent,
            )
            supervisor.add(part)
            signals.wait()
        except Stopped:
            note("stopping: running steps may finish (once more to stop at once)")
        finally:
            supervisor.stop()
            caretaker.stop()


def _check(settings: "Settings") -> None:
    """A worker on a database that lacks what it needs would fail at each run, one by one; one without the folder that
    all hosts work in would write where nobody else looks.

    Raises:
        Refused: `schema`, `workspaces`.
    """
    from orchestrator import volume
    from orchestrator.agreement import REMEDY, disagreement
    from orchestrator.store import schema
    from orchestrator.store.database import get_database
    from registry.errors import Unavailable

    database = get_database(settings)
    try:
        schema.require(database)
        volume.take(settings)
        if (words := disagreement(settings)) is not None:
            note(f"{words}; {REMEDY}")
    except Unavailable as error:
        note(f"{error.message}; the worker waits for it")
    finally:
        database.dispose()  # this process only watches over the one that works


def _queues(written: str | None, settings: "Settings") -> list[str]:
    """The names in `--queues`; one that no rule knows would be served for nothing.

    Raises:
        BadParameter: a name is unknown.
    """
    from registry.graph.findings import nearest
    from registry.queues import names

    found, known = [name.strip() for name in (written or "").split(",") if name.strip()], names(settings.queues)
    for name in found:
        if name not in known:
            words = f"no rule of OFFICINA_QUEUES names the queue {name!r}{nearest(name, known)}"
            raise typer.BadParameter(words, param_hint="--queues")
    return found


def _bounds(written: str | None, pool: str) -> tuple[int, int] | None:
    """The two numbers in `--autoscale`.

    Raises:
        BadParameter: they are none, or the pool cannot grow.
    """
    if written is None:
        return None
    parts = [int(part) if part.strip().isdecimal() else 0 for part in written.split(",")]
    if len(parts) != 2 or not parts[0] >= parts[1] >= 1:
        raise typer.BadParameter("write MAX,MIN, as in 8,2", param_hint="--autoscale")
    if pool != "prefork":
        words = "only processes come and go: add --pool prefork; threads cost nothing while they wait"
        raise typer.BadParameter(words, param_hint="--autoscale")
    return parts[0], parts[1]


def worker_command(
    settings: "Settings",
    *,
    name: str,
    slots: int | None = None,
    pool: str | None = None,
    queues: Sequence[str] = (),
    autoscale: tuple[int, int] | None = None,
) -> list[str]:
    """The command line of a worker process.

    Args:
        settings: what is in force.
        name: its name before the `@host`; two live workers of one host need two names.
        slots: runs it carries at once; none: as set.
        pool: `threads` or `prefork`; none: as set.
        queues: what it serves; none: the default queue.
        autoscale: processes at most and at least; none: as many as slots.
    """
    from orchestrator.queue import celery_name

    # -P keeps a folder called `workers` in the current directory from standing in for ours.
    return [
        *(sys.executable, "-P", "-m", "workers.commands.child", "worker"),
        *("--hostname", f"{name}@%h"),
        *("--pool", pool or settings.worker_pool),
        *("--concurrency", str(slots or settings.worker_slots)),
        *("--loglevel", "INFO"),
        "--without-gossip",
        "--without-mingle",
        *(["--task-events"] if settings.monitor else []),
        *(["--queues", ",".join(map(celery_name, queues))] if queues else []),
        *(["--autoscale", f"{autoscale[0]},{autoscale[1]}"] if autoscale else []),
    ]
