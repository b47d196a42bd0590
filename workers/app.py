"""The Celery application of the workers. Importing it opens no socket and starts no thread."""

from celery import Celery
from celery.signals import celeryd_init, setup_logging

from orchestrator.queue import configuration
from orchestrator.settings import get_settings
from workers import bootsteps, logs

app = Celery("officina", set_as_current=True)
app.conf.update(configuration(get_settings()))
app.conf.imports = ("workers.jobs",)
app.conf.worker_consumer = "workers.consumer:Consumer"
app.steps["worker"].add(bootsteps.Clockwork)
app.steps["consumer"].add(bootsteps.Parcels)
setup_logging.connect(logs.configure, weak=False)
celeryd_init.connect(bootsteps.prepare, weak=False)
