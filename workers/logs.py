"""Logs of a worker: one line an entry, with the run, task and agent at work in it."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from registry.masking import mask_text

#: Libraries that say more than anybody wants to read at INFO.
QUIET = ("amqp", "celery.worker.strategy", "celery.app.trace", "httpcore", "httpx", "kombu", "openai", "alembic")


def configure(loglevel: int | str = logging.INFO, logfile: str | None = None, **_: Any) -> None:
    """Takes Celery's place in setting up logging, so that its format and ours are one."""
    import structlog

    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.format_exc_info,
    ]
    render: Any = structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], bool_as_flag=False)

    def masked(logger: Any, name: str, entry: Any) -> str:
        # The last step of every line, tracebacks and all: what a library or an error says may hold a secret.
        return mask_text(render(logger, name, entry))

    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, masked],
    )
    handler = logging.FileHandler(logfile) if logfile else logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(loglevel)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


@contextmanager
def bound(**labels: Any) -> Iterator[None]:
    """Everything logged in here carries these labels; pool threads are reused, so they are cleared behind."""
    import structlog

    structlog.contextvars.clear_contextvars()
    with structlog.contextvars.bound_contextvars(**labels):
        yield
    structlog.contextvars.clear_contextvars()
