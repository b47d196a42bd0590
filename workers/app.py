"""The Celery application of the workers. Importing it opens no socket and starts no thread."""

from typing import Any

from celery import Celery, concurrency
from celery.signals import celeryd_init, setup_logging, task_postrun, worker_process_init

from orchestrator import tracing
from orchestrator.queue import configuration
from orchestrator.settings import get_settings
from workers import bootsteps, logs
from workers.threads import FreeSlots

concurrency.ALIASES["threads"] = "workers.threads:Threads"  # type: ignore[attr-defined]  # not in its stubs
app = Celery("officina", set_as_current=True)
app.conf.update(configuration(get_settings()))
app.conf.imports = ("workers.jobs",)
app.conf.worker_consumer = "workers.consumer:Consumer"
app.steps["worker"].add(bootsteps.Clockwork)
app.steps["consumer"].add(bootsteps.Parcels)
app.steps["consumer"].add(FreeSlots)
setup_logging.connect(logs.configure, weak=False)
celeryd_init.connect(bootsteps.prepare, weak=False)


def _in_a_pool(**_: Any) -> None:
    """In a process of a pool, which goes without a word: its spans leave with each job."""
    task_postrun.connect(lambda **_: tracing.hurry(), weak=False)


worker_process_init.connect(_in_a_pool, weak=False)
