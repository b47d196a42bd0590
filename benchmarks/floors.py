"""The floors: a bare Celery application that does the same work as cheaply as it honestly can.

Two processes of Celery's default pool, JSON, no events, no mingling, acknowledgement at the start; plain psycopg.
`FLOOR_REDIS` and `FLOOR_DATABASE` say where broker, results and rows are.
"""

import json
import os
import sys
import time
from functools import cache
from pathlib import Path
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


@app.task(ignore_result=True)
def dag_node(run: str, node: str) -> None:
    """A no-op task of a plan: counts its dependents down, and publishes those that wait for nothing any more."""
    client = _redis()
    after: list[str] = json.loads(client.hget(f"{run}:after", node) or "[]")
    moves = client.pipeline(transaction=False)
    for name in after:
        moves.hincrby(f"{run}:open", name, -1)
    moves.decr(f"{run}:left")
    *opened, left = moves.execute()
    for name, still in zip(after, opened, strict=True):
        if still == 0:
            dag_node.delay(run, name)
    if left == 0:
        client.rpush(f"{run}:done", "")


@app.task(ignore_result=True)
def park(run: str, key: str) -> None:
    """What a job that needs an answer can do: put down its state and end."""
    state = {"name": "write_file", "args": {"path": f"{key}.txt", "content": ANSWER}}
    _redis().set(f"{run}:{key}", json.dumps(state))
    _redis().incr(f"{run}:parked")


@app.task(ignore_result=True)
def resume(run: str, key: str, folder: str, sent: float) -> None:
    """Published with the answer: reads the state, writes the file, says when it was done."""
    client = _redis()
    call = json.loads(client.get(f"{run}:{key}"))["args"]
    (Path(folder) / call["path"]).write_text(call["content"], encoding="utf-8")
    client.rpush(f"{run}:done", time.time() - sent)


def redis_at(broker_url: str) -> Any:
    """A client of the Redis that a broker's address names."""
    from redis import Redis

    path = broker_url.removeprefix("redis+socket://")
    return Redis.from_url(broker_url if path == broker_url else f"unix://{path}")


@cache
def _redis() -> Any:
    """The Redis client of this process of the pool."""
    return redis_at(os.environ["FLOOR_REDIS"])


@cache
def _rows() -> psycopg.Connection[Any]:
    """The connection of this process of the pool."""
    return psycopg.connect(os.environ["FLOOR_DATABASE"], autocommit=True)
