"""A schedule due every minute, and a worker that is killed again and again: each due time is worked off once."""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from orchestrator.ports.wiring import wire
from orchestrator.settings import Settings
from orchestrator.store import invariants, kept
from orchestrator.store import tables as t
from orchestrator.store.database import Database, get_database, now_ms
from registry.agents import AgentDefinition
from registry.skills import catalogue
from registry.skills.context import Caller
from registry.skills.triggers import Hand, Planned
from tests import clock_worker
from tests.support import eventually
from tests.workers import WorkerProcess

MINUTE = 60_000
MINUTES, DEATHS = 20, 10
QUICK = {
    "STAND_IN": "true",
    "LIMITS__LEASE_S": "2",
    "LIMITS__RENEW_S": "0.5",
    "LIMITS__CLOCK_TICK_S": "0.1",
    "WORKER_POOL": "threads",
}
#: Where each worker dies in the second minute of its life; None: killed at whatever it is doing then.
POINTS = (None, "fired=2", None, "claimed=2", "checkpoint=3", None, "ended=2", "fired=2", None, "told=3")


class Minutes:
    """Real workers on a database whose clock the test sets forward, one alive at a time."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings, self.folder, self.database = settings, folder, get_database(settings)
        self.workers: list[WorkerProcess] = []
        clock_worker.prepare(self.database)
        self.ahead = 0
        self.chance = random.Random(7)

    def worker(self, point: str | None = None) -> WorkerProcess:
        log = self.folder / f"worker-{len(self.workers)}.log"
        more = {"OFFICINA_CRASHPOINTS": point} if point else {}
        self.workers.append(
            WorkerProcess(self.settings, log, QUICK, module="tests.clock_worker", more=more),
        )
        return self.workers[-1].ready()

    def all(self, query: Any) -> list[Any]:
        with self.database.read() as connection:
            return list(connection.execute(query))

    def until(self, moment: int) -> None:
        """Sets the clock to just after a moment."""
        (now,) = self.all(select(now_ms().label("now")))
        step = moment - (now.now + self.ahead) + 20
        if step > 0:
            clock_worker.forward(self.database, step)
            self.ahead += step

    @property
    def firings(self) -> list[Any]:
        return self.all(select(kept.firings).order_by(kept.firings.c.due_at))

    def worked_off(self, count: int) -> bool:
        runs = self.all(select(t.runs.c.status).join(kept.thread_runs, kept.thread_runs.c.run_id == t.runs.c.id))
        return len(self.firings) >= count and [run.status for run in runs].count("completed") >= count


@pytest.fixture
def minutes(live_settings: Settings, tmp_path: Path) -> Iterator[Minutes]:
    made = Minutes(live_settings, tmp_path)
    yield made
    for worker in made.workers:
        worker.kill()


def every_minute(database: Database, settings: Settings) -> tuple[str, int]:
    """A schedule that says something in a thread each minute, and its first time."""
    agent = AgentDefinition.model_validate({"id": "ada", "name": "Ada", "instructions": "Answer in a line."})
    planned = Planned(name="Tick", cron="* * * * *", detail="What time is it?", agent_id="ada")
    hand = Hand(Caller("person", agent_id="ada"), agent)
    made = wire(settings, catalogue.build()).scheduler.save(hand, planned)["schedule"]
    return str(made["id"]), int(made["nextRunAt"])


@pytest.mark.long
@pytest.mark.timeout(900)
def test_twenty_minutes_and_ten_deaths_are_twenty_firings(minutes: Minutes) -> None:
    settings = minutes.settings.model_copy(update={"stand_in": True})
    schedule_id, first = every_minute(minutes.database, settings)
    points, deaths = iter(POINTS), 0
    point = next(points)
    worker = minutes.worker(point)

    def dead() -> bool:
        return not worker.process.running

    for minute in range(MINUTES):
        minutes.until(first + minute * MINUTE)
        if minute % 2 and not dead() and point is None:
            time.sleep(minutes.chance.random() * 0.5)
            worker.kill()
        eventually(lambda: dead() or minutes.worked_off(minute + 1), 60, every=0.1)  # noqa: B023
        if minute % 2:  # at the latest now
            worker.kill()
        if dead():
            deaths += 1
            point = next(points, None)
            worker = minutes.worker(point)
        eventually(lambda: minutes.worked_off(minute + 1), 60, every=0.1)  # noqa: B023

    assert deaths >= DEATHS
    assert [row.due_at for row in minutes.firings] == [first + n * MINUTE for n in range(MINUTES)]
    assert {row.result for row in minutes.firings} == {"fired"}
    began = minutes.all(select(kept.thread_runs).order_by(kept.thread_runs.c.number))
    assert [run.client_key for run in began] == [
        f"schedule:{schedule_id}:{first + n * MINUTE}" for n in range(MINUTES)
    ], "one run each, in order"
    with minutes.database.read() as connection:
        assert invariants.broken(connection, grace_ms=minutes.ahead + MINUTE) == []
