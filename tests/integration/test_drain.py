"""Fast runs follow one another in a slot, without a message each; nothing listens to a queue here."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select

from benchmarks import projects
from orchestrator.producer import submit
from orchestrator.settings import Settings
from orchestrator.store import tables as t
from orchestrator.store import wakes
from orchestrator.store.database import upgrade
from tests.support import eventually
from workers.runtime import Runtime

ITEMS = 6
Started = Callable[[], tuple[str, str]]


@pytest.fixture
def runtime(tmp_path: Path, request: pytest.FixtureRequest) -> Runtime:
    drain_ms = getattr(request, "param", 60_000)
    settings = Settings(home=tmp_path / "home", drain_ms=drain_ms, _env_file=None)  # type: ignore[call-arg]
    upgrade(settings)
    return Runtime(settings, 8, shared=True)


@pytest.fixture
def started(runtime: Runtime, tmp_path: Path) -> Started:
    """Submits a project with one map, and gives it and the run of its task, marked for a wake-up."""

    def start() -> tuple[str, str]:
        file = projects.write(tmp_path / "project", projects.bare_mapper(ITEMS), turns=[], section="items")
        made = submit(file, settings=runtime.settings)
        runtime.database.write(lambda c: wakes.advance(c, made.project_id))
        return made.project_id, _root(runtime, made.project_id)

    return start


def _root(runtime: Runtime, project_id: str) -> str:
    with runtime.database.read() as c:
        return str(c.execute(select(t.runs.c.id).where(t.runs.c.project_id == project_id)).scalar_one())


def states(runtime: Runtime, project_id: str) -> list[str]:
    query = select(t.runs.c.status).where(t.runs.c.project_id == project_id)
    with runtime.database.read() as c:
        return sorted(c.execute(query).scalars())


def test_a_fast_child_is_followed_by_its_siblings_and_by_its_parent(runtime: Runtime, started: Started) -> None:
    project_id, root = started()
    done = runtime.carry(root)
    assert len(done.children) == ITEMS, "of children nobody has seen yet, each gets a message"

    runtime.carry(done.children[0].run_id)

    eventually(lambda: states(runtime, project_id) == ["completed"] * (ITEMS + 1), 20)
    assert runtime.carry(done.children[1].run_id).word == "nothing to do", "a message that comes later"


def test_children_that_were_fast_before_need_no_messages_at_all(runtime: Runtime, started: Started) -> None:
    project_id, root = started()
    runtime.carry(runtime.carry(root).children[0].run_id)
    eventually(lambda: states(runtime, project_id) == ["completed"] * (ITEMS + 1), 20)
    project_id, root = started()

    assert runtime.carry(root).children == ()

    eventually(lambda: states(runtime, project_id) == ["completed"] * (ITEMS + 1), 20)
    query = select(t.tasks.c.output).where(t.tasks.c.project_id == project_id)
    with runtime.database.read() as c:
        results = c.execute(query).scalar_one()["results"]
    assert [one["output"] for one in results] == [f"item {n}" for n in range(ITEMS)], json.dumps(results)


@pytest.mark.parametrize("runtime", [0], indirect=True)
def test_it_can_be_left_to_the_queue(runtime: Runtime, started: Started) -> None:
    project_id, root = started()
    done = runtime.carry(root)

    runtime.carry(done.children[0].run_id)

    assert states(runtime, project_id) == sorted(["waiting", "completed"] + ["queued"] * (ITEMS - 1))


def dag(runtime: Runtime, folder: Path, agent: projects.Json) -> tuple[str, str]:
    """Submits a plan of three layers, and gives it and the first run of it that is marked for a wake-up."""
    file = projects.write(folder / "project", agent, tasks=projects.layers(3, 4), turns=[{"say": "Done."}])
    made = submit(file, settings=runtime.settings)
    ready = runtime.database.write(lambda c: wakes.advance(c, made.project_id))
    return made.project_id, ready[0].run_id


def test_a_root_run_that_asks_nobody_is_followed_by_those_that_wait_and_those_it_frees(
    runtime: Runtime, tmp_path: Path
) -> None:
    project_id, first = dag(runtime, tmp_path, projects.nothing())
    rest = [run_id for run_id in queued(runtime, project_id) if run_id != first]

    runtime.carry(first)
    for run_id in rest:  # whose messages had been sent
        runtime.carry(run_id)

    eventually(lambda: states(runtime, project_id) == ["completed"] * 12, 20)


def test_a_root_run_that_takes_its_time_stays_a_job_of_its_own(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.drain.FAST_ROOT_S", 0)
    project_id, first = dag(runtime, tmp_path, projects.speaker())

    runtime.carry(first)

    assert states(runtime, project_id) == sorted(["completed"] + ["queued"] * 3)


def queued(runtime: Runtime, project_id: str) -> list[str]:
    query = select(t.runs.c.id).where(t.runs.c.project_id == project_id, t.runs.c.status == "queued")
    with runtime.database.read() as c:
        return list(c.execute(query).scalars())
