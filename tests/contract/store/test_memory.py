"""The store in memory, where it differs from the others: no file, a clock that can be set forward, one connection."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from orchestrator.records import Park, wall_ms
from orchestrator.store import runs
from orchestrator.store import tables as t
from orchestrator.store.database import now_ms
from orchestrator.store.memory import MemoryDatabase
from tests.contract.store.world import World, at

OPENED: list[str] = []
sys.addaudithook(lambda event, args: OPENED.append(str(args[0])) if event == "sqlite3.connect" else None)


@pytest.fixture
def memory() -> Iterator[MemoryDatabase]:
    made = MemoryDatabase()
    yield made
    made.dispose()


def clock(database: MemoryDatabase) -> int:
    with database.read() as connection:
        return int(connection.execute(select(now_ms())).scalar_one())


def test_nothing_of_it_is_ever_in_a_file(
    memory: MemoryDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    OPENED.clear()

    World(memory).plan()

    assert OPENED == [":memory:"], "one connection, opened once"
    assert list(tmp_path.iterdir()) == []


def test_two_of_them_know_nothing_of_each_other_and_what_was_disposed_of_is_gone(memory: MemoryDatabase) -> None:
    world, other = World(memory), World(MemoryDatabase())
    plan = world.plan()

    assert other.all(select(t.projects)) == []
    other.database.dispose()
    assert plan.row.status == "running"

    memory.dispose()
    assert world.all(select(t.projects)) == []


def test_its_clock_is_one_for_statements_and_code_and_only_goes_forward(memory: MemoryDatabase) -> None:
    before = wall_ms()
    assert before <= memory.now_ms() <= clock(memory) <= wall_ms()

    memory.pass_until(before + 86_400_000)
    assert before + 86_400_000 <= memory.now_ms() <= clock(memory) < wall_ms() + 86_400_001

    memory.pass_until(before)
    assert clock(memory) >= before + 86_400_000


def test_a_timer_is_due_when_its_clock_says_so(memory: MemoryDatabase) -> None:
    world = World(memory)
    plan = world.plan()
    claim = world.claimed(plan.run("a"))
    world.park(at(claim, park=Park("waiting", "timer", due_in_ms=3_600_000)))
    assert memory.write(lambda c: runs.wake_due(c, 10)) == []

    memory.pass_until(world.run(claim.run_id).due_at)

    assert memory.write(lambda c: runs.wake_due(c, 10)) == [claim.run_id]


def test_a_look_within_a_look_is_the_same_look(memory: MemoryDatabase) -> None:
    world = World(memory)
    plan = world.plan()

    with memory.read() as outer:
        inner = world.row(t.projects, plan.id)
        assert outer.execute(select(t.projects.c.id)).scalar_one() == inner.id

    assert plan.row.status == "running"
