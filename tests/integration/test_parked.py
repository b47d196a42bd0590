"""Parking is free: thousands of runs that wait hold rows, and neither memory nor slots nor connections.

`make test-parked` is the long form, with thousands of each kind; without it each kind has a hundred.
"""

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import func, select, text

from orchestrator import desk
from orchestrator.settings import Settings
from orchestrator.signals import answer
from orchestrator.store.database import POOL_SIZE, get_database
from orchestrator.store.tables import runs, signals
from tests.projects import Watched, start, task
from tests.support import eventually

#: Runs of each kind that are parked at once.
COUNT = int(os.environ.get("PARKED", "100"))
MOST_REDIS = 20_000_000
SLOTS = 16


def waiter(id_: str, **node: Any) -> dict[str, Any]:
    """An agent that parks once, asks no model, and ends with what it was resumed with."""
    nodes = {
        "s": {"type": "core:start"},
        "w": node,
        "k": {"type": "control:assign", "patch": {"said": "$resume"}},
        "e": {"type": "core:end", "output": "$state.said"},
    }
    edges = [{"from": a, "to": b} for a, b in ("sw", "wk", "ke")]
    return {"id": id_, "instructions": "Wait.", "graph": {"nodes": nodes, "edges": edges}}


SLEEPER = waiter("sleeper", type="control:wait", untilMs="$input.data")
ASKER = waiter("asker", type="control:interrupt", reason="Go on?")


def many(folder: Path, settings: Settings, agent: dict[str, Any], how_many: int, **fields: Any) -> Watched:
    """A project whose tasks all begin at once, each by this agent."""
    plan = [task(f"t{n}", agent=agent["id"], title=f"Wait {n}", **fields) for n in range(how_many)]
    made = start(folder, settings, plan, {}, agents={agent["id"]: agent}, budget={"maxParallel": 64})
    return Watched(settings, made.project_id)


def count(settings: Settings, *which: Any) -> int:
    with get_database(settings).read() as connection:
        return int(connection.execute(select(func.count()).where(*which)).scalar_one())


def parked(project: Watched, waiting_on: str) -> int:
    return count(project.settings, runs.c.project_id == project.id, runs.c.waiting_on == waiting_on)


@dataclass
class Held:
    """What a worker process holds."""

    memory: int
    threads: int
    connections: int

    @classmethod
    def by(cls, pid: int, settings: Settings) -> "Held":
        process = psutil.Process(pid)
        return cls(process.memory_info().rss, process.num_threads(), _connections(process, settings))


def _connections(process: psutil.Process, settings: Settings) -> int:
    """Connections to the database: of a SQLite file each has it open once; PostgreSQL counts this process's as well."""
    database = get_database(settings)
    if database.sqlite:
        return sum(file.path.endswith("officina.db") for file in process.open_files())
    with database.read() as connection:
        own = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return int(connection.execute(own).scalar_one())


def at_rest(pid: int, settings: Settings) -> Held:
    """What it holds once it holds no less than a moment before."""
    seen = [Held.by(pid, settings)]

    def calm() -> Held | None:
        time.sleep(1)
        seen.append(Held.by(pid, settings))
        return seen[-1] if abs(seen[-1].memory - seen[-2].memory) < 200_000 else None

    return eventually(calm, 30)


def answer_all(project: Watched, settings: Settings) -> None:
    query = select(signals.c.id).where(signals.c.project_id == project.id, signals.c.status == "open")
    with get_database(settings).read() as connection:
        asked: Sequence[str] = connection.execute(query).scalars().all()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda one: answer(settings, one, payload={"go": "on"}, by="the test"), asked))


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_thousands_of_parked_runs_hold_nothing_and_all_go_on(
    tmp_path: Path, live_settings, worker_process, redis
) -> None:
    worker = worker_process(live_settings, WORKER_SLOTS=str(SLOTS)).ready()
    warm = many(tmp_path / "warm", live_settings, SLEEPER, 40, input=0)
    assert warm.ended(60) == "completed"
    idle = at_rest(worker.pid, live_settings)

    began = time.monotonic()
    asking = many(tmp_path / "asking", live_settings, ASKER, COUNT)
    eventually(lambda: parked(asking, "signals") == COUNT, 30 + COUNT / 10, 0.2)
    pace = time.monotonic() - began
    due = round((time.time() + 15 + 2 * pace) * 1000)
    asleep = many(tmp_path / "asleep", live_settings, SLEEPER, COUNT, input=due)
    eventually(lambda: parked(asleep, "timer") == COUNT, 15 + 2 * pace, 0.2)
    held = at_rest(worker.pid, live_settings)
    used = redis.info("memory")["used_memory"]

    print(f"\n{COUNT} of each in {pace:.1f} s; idle {idle}, held {held}, Redis {used:,}")
    assert time.time() * 1000 < due, "all of them slept at once"
    assert redis.hlen(desk.key(live_settings.owner)) == COUNT
    assert held.memory <= idle.memory * 1.1
    assert held.threads <= idle.threads + SLOTS, "no thread waits with a run"
    assert 0 < held.connections <= 2 * POOL_SIZE
    assert used < MOST_REDIS
    assert count(live_settings, runs.c.status == "running") == 0

    began = time.monotonic()
    answer_all(asking, live_settings)
    answered = time.monotonic() - began
    assert asking.ended(60 + 3 * pace) == "completed"
    print(f"answered in {answered:.1f} s, all ended after {time.monotonic() - began:.1f} s")
    assert asleep.ended(60 + 5 * pace) == "completed"
    print(f"sleepers ended {time.time() - due / 1000:.1f} s after they were due")
    assert {row.output["go"] for row in asking.tasks.values()} == {"on"}
    assert {row.output["timedOut"] for row in asleep.tasks.values()} == {False}
    assert redis.hlen(desk.key(live_settings.owner)) == 0
    assert [event.seq for event in asking.trace] == list(range(1, len(asking.trace) + 1))
