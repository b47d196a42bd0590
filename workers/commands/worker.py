"""`officina worker`: one worker process, kept alive."""

import os
import sys
from collections.abc import Sequence

from orchestrator.settings import Settings


def worker_command(
    settings: Settings,
    *,
    name: str,
    slots: int | None = None,
    pool: str | None = None,
    queues: Sequence[str] = (),
) -> list[str]:
    """The command line of a worker process.

    Args:
        settings: what is in force.
        name: its name before the `@host`; two live workers of one host need two names.
        slots: runs it carries at once; none: as set.
        pool: `threads` or `prefork`; none: as set.
        queues: what it listens to; none: the default queue.
    """
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
        *(["--queues", ",".join(queues)] if queues else []),
    ]


def worker_environment(settings: Settings) -> dict[str, str]:
    """The environment that gives a child process the same home, database, broker and Redis as ours."""
    found = {
        "OFFICINA_HOME": str(settings.home.absolute()),
        "OFFICINA_DATABASE_URL": settings.database_url,
        "OFFICINA_BROKER_URL": settings.broker or "",
        "OFFICINA_REDIS_URL": settings.redis_url,
        "OFFICINA_WORKSPACE_ROOT": str(settings.workspaces),
    }
    return {**os.environ, **found}
