"""The floors: a bare Celery application that does the same work as cheaply as it honestly can.

Two processes of Celery's default pool, JSON, no events, no mingling, acknowledgement at the start; plain psycopg.
`FLOOR_REDIS` and `FLOOR_DATABASE` say where broker, results and rows are.
"""

import os
import sys
import time
from functools import cache
from typing import Any

import psycopg
from celery import Celery
from psycopg.types.json import Jsonb

from benchmarks.projects import ANSWER, FOUND, STEPS

TABLES = """
CREATE TABLE floor_runs (id text PRIMARY KEY, step int NOT NULL, at timestamptz NOT NULL);
CREATE TABLE floor_steps (run_id text, step int, body jsonb NOT NULL, PRIMARY KEY (run_id, step));
"""

app = Celery("floor", set_as_current=False)
app.conf.update(
    broker_url=os.environ.get("FLOOR_REDIS"),
    result_backend=os.environ.get("FLOOR_REDIS"),
    task_default_queue="floor",
    task_serializer="json",
    result_expires=600,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
)


def worker_command() -> list[str]:
    """One worker whose pool has two processes."""
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "WARNING")
    return [sys.executable, "-m", "celery", "-A", "benchmarks.floors", "worker", "-P", "prefork", "-c", "2", *quiet]


@app.task
def nothing(*_: Any) -> None:
    """A no-op, and the body of a chord."""


@app.task
def started(sent: float) -> float:
    """Seconds from the publishing to here."""
    return time.time() - sent


@app.task
def two_steps(_item: str) -> list[dict[str, Any]]:
    """What an item of the map does: a model's answer and a tool's result."""
    return [_step(0), _step(1)]


@app.task
def twenty_steps(run_id: str) -> int:
    """An agent run: a row update and an insert for each step, committed in one round trip."""
    rows = _rows()
    rows.execute("INSERT INTO floor_runs VALUES (%s, 0, now())", (run_id,))
    for step in range(STEPS):
        body = Jsonb(_step(step))
        with rows.pipeline(), rows.transaction():
            rows.execute("UPDATE floor_runs SET step = %s, at = clock_timestamp() WHERE id = %s", (step + 1, run_id))
            rows.execute("INSERT INTO floor_steps VALUES (%s, %s, %s)", (run_id, step, body))
    return STEPS


def _step(number: int) -> dict[str, Any]:
    """The message of a step: the model's and the tool's in turn."""
    if number % 2 == 0:
        call = {"id": f"call_{number}", "name": "math.evaluate", "args": {"expression": "1 + 1"}}
        return {"role": "assistant", "content": ANSWER, "toolCalls": [call]}
    return {"role": "tool", "toolCallId": f"call_{number - 1}", "content": FOUND}


@cache
def _rows() -> psycopg.Connection[Any]:
    """The connection of this process of the pool."""
    return psycopg.connect(os.environ["FLOOR_DATABASE"], autocommit=True)
