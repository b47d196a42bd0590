"""Queues of their own for some runs: who carries them, and what is said when nobody does. On real workers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import select

from orchestrator.queue import send, sender
from orchestrator.records import Wake
from orchestrator.settings import Settings
from orchestrator.signals import answer
from orchestrator.states import PROJECT_ENDED
from orchestrator.store import tables as t
from orchestrator.store.database import get_database
from tests.projects import Watched, start, task
from tests.support import eventually
from tests.workers import WorkerProcess
from workers import probes

RULES: list[dict[str, Any]] = [
    {"queue": "code", "needs": ["code.execute", "shell"]},
    {"queue": "deep", "tiers": ["deep"]},
    {"queue": "gpu", "labels": ["gpu"]},
]
SAYS = [{"say": "done"}]
CODER: dict[str, Any] = {"id": "coder", "skills": ["code.execute"], "instructions": "Compute."}
ALERT = "No worker serves the queue code, and work of this project waits there"


@pytest.fixture
def ruled(tmp_path: Path, postgres_url: str, redis: Any, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings with rules, which workers find in their environment."""
    monkeypatch.setenv("OFFICINA_QUEUES", json.dumps(RULES))
    return Settings(home=tmp_path / "home", database_url=postgres_url, broker_url=redis_url, _env_file=None)  # type: ignore[call-arg]


@pytest.fixture
def worker(ruled: Settings, worker_process: Callable[..., WorkerProcess]) -> Callable[..., WorkerProcess]:
    def started(*queues: str, **changed: str) -> WorkerProcess:
        return worker_process(ruled, queues=queues, LIMITS__CLOCK_TICK_S="0.2", **changed)

    return started


def carried(settings: Settings, project: Watched, seconds: float = 30) -> set[tuple[str, int]]:
    """Looks again and again until the project has ended: the queue of each run seen at work, and its process."""
    query = select(t.runs.c.queue, t.workers.c.pid).join(t.workers, t.workers.c.id == t.runs.c.worker_id)
    working = query.where(t.runs.c.project_id == project.id, t.runs.c.status == "running")
    seen: set[tuple[str, int]] = set()

    def over() -> bool:
        with get_database(settings).read() as connection:
            seen.update((row.queue or "default", row.pid) for row in connection.execute(working))
        return project.status in PROJECT_ENDED

    eventually(over, seconds)
    return seen


def done_by(settings: Settings, worker: WorkerProcess) -> int:
    """How often a worker was asked to look at a project."""
    stats = sender(settings).control.inspect(timeout=2).stats() or {}
    return sum(
        one["total"].get("officina.advance", 0) for name, one in stats.items() if name.startswith(worker.name + "@")
    )


def queue_probe(settings: Settings) -> dict[str, str]:
    return {one.part.strip(): f"{one.verdict}: {one.words}" for one in probes.queues(settings)}


def test_each_queue_is_carried_by_its_own_workers(
    tmp_path: Path, ruled: Settings, worker: Callable[..., WorkerProcess]
) -> None:
    plain, code = worker("default", "gpu"), worker("code", "deep")
    plain.ready(), code.ready()
    plan = [
        task("write"),
        task("compute", agent="coder", after=["write"]),
        task("think", tier="deep"),
        task("render", labels=["gpu"], after=["compute"]),
    ]
    script = {"delayMs": 300, "tasks": dict.fromkeys(("write", "compute", "think", "render"), SAYS)}
    project = Watched(ruled, start(tmp_path / "p", ruled, plan, script, agents={"coder": CODER}).project_id)

    seen = carried(ruled, project)

    assert project.status == "completed"
    assert seen == {("default", plain.pid), ("gpu", plain.pid), ("code", code.pid), ("deep", code.pid)}
    shown = {one["key"]: one["runs"][0].get("queue") for one in project.shown["tasks"]}
    assert shown == {"write": None, "compute": "code", "think": "deep", "render": "gpu"}


@pytest.mark.long
def test_the_children_of_a_fan_out_go_to_their_own_queue_and_their_parent_goes_on_in_its(
    tmp_path: Path, ruled: Settings, worker: Callable[..., WorkerProcess]
) -> None:
    plain, code = worker("default"), worker("code")
    plain.ready(), code.ready()
    calls = [{"agentId": "coder", "input": f"n{n}"} for n in range(4)]
    graph = {
        "nodes": {
            "s": {"type": "core:start"},
            "f": {"type": "control:spawn", "calls": calls},
            "e": {"type": "core:end", "output": "$output"},
        },
        "edges": [{"from": "s", "to": "f"}, {"from": "f", "to": "e"}],
    }
    plan = [task("all", agent="lead"), task("one", agent="coder", after=["all"])]
    script = {"delayMs": 300, "tasks": {"one": SAYS}, "agents": {"coder": SAYS}}
    agents = {"lead": {"id": "lead", "graph": graph}, "coder": CODER}
    project = Watched(ruled, start(tmp_path / "p", ruled, plan, script, agents=agents).project_id)

    seen = carried(ruled, project)

    assert project.status == "completed"
    assert len(project.tasks["all"].output["results"]) == 4
    assert {run.queue for run in project.runs if run.kind == "spawn"} == {"code"}
    assert seen >= {("code", code.pid)}
    assert ("code", plain.pid) not in seen
    assert ("default", code.pid) not in seen


@pytest.mark.long
def test_what_nobody_serves_waits_is_said_once_and_goes_on_with_the_first_worker(
    tmp_path: Path, ruled: Settings, redis: Any, worker: Callable[..., WorkerProcess]
) -> None:
    worker("default").ready()
    plan = [task("compute", agent="coder"), task("again", agent="coder"), task("write")]
    script = {"tasks": dict.fromkeys(("compute", "again", "write"), SAYS)}
    project = Watched(ruled, start(tmp_path / "p", ruled, plan, script, agents={"coder": CODER}).project_id)

    alert = project.open_signal()
    eventually(lambda: project.tasks["write"].status == "completed")

    assert (alert.kind, alert.title) == (
        "alert",
        "No worker serves the queue code, and work of this project waits there",
    )
    assert {project.tasks[key].status for key in ("compute", "again")} == {"queued"}
    assert queue_probe(ruled)["code"] == "broken: no worker serves it; 2 runs wait there"
    assert queue_probe(ruled)["queues"].startswith("broken: default: 1 worker")
    assert redis.llen("officina.code") == 2, "one message for each run, and no more while nobody takes them"

    worker("code")

    assert project.ended() == "completed"
    assert len(project.signals) == 1
    assert "code" not in queue_probe(ruled)


@pytest.mark.long
def test_an_action_with_a_yes_is_run_where_its_agent_may(
    tmp_path: Path, ruled: Settings, worker: Callable[..., WorkerProcess]
) -> None:
    plain, code = worker("default"), worker("code")
    plain.ready(), code.ready()
    asks = {"permissions": {"fs.write": "ask"}, "approvals": "carryOn"}
    coder = CODER | asks | {"skills": ["code.execute", "files.write"]}
    calls = [{"calls": [{"name": "files.write", "args": {"path": "a.txt", "content": "seven"}}]}, {"say": "done"}]
    script = {"tasks": {"compute": calls}}
    plan = [task("compute", agent="coder")]
    project = Watched(ruled, start(tmp_path / "p", ruled, plan, script, agents={"coder": coder}).project_id)

    answer(ruled, project.open_signal().id, option="Do it", by="maria")

    eventually(lambda: project.signals[0].execution == "succeeded")
    assert project.ended() == "completed"
    assert done_by(ruled, code) >= 1, "the worker of the code queue was asked to run the action"


def test_with_strict_priority_the_broker_gives_urgent_work_first(redis: Any, redis_url: str, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, broker_url=redis_url, strict_priority=True, _env_file=None)  # type: ignore[call-arg]
    send(settings, [Wake(str(priority), "p", None, "a", priority) for priority in (0, 5, 9, 4, 7)])

    with sender(settings).connection_for_read() as connection:
        channel: Any = connection.default_channel
        order = [channel.basic_get("officina", no_ack=True).decode()[0][0] for _ in range(5)]

    assert order == ["9", "7", "5", "4", "0"]


@pytest.mark.long
def test_processes_of_the_prefork_pool_come_with_the_work_and_serve_their_queue_alone(
    tmp_path: Path, ruled: Settings, worker: Callable[..., WorkerProcess]
) -> None:
    code = worker("code", autoscale=(4, 1), WORKER_POOL="prefork", WORKER_SLOTS="1").ready()
    plain = worker("default").ready()
    keys = [f"t{n}" for n in range(6)]
    script = {"delayMs": 2_000, "tasks": dict.fromkeys([*keys, "write"], SAYS)}
    plan = [*(task(key, agent="coder") for key in keys), task("write")]
    project = Watched(ruled, start(tmp_path / "p", ruled, plan, script, agents={"coder": CODER}).project_id)

    children = psutil.Process(code.pid).children
    eventually(lambda: len(children(recursive=True)) >= 3, 30)
    seen = carried(ruled, project, 60)

    assert project.status == "completed"
    assert ("default", plain.pid) in seen
    assert len({pid for queue, pid in seen if queue == "code"}) >= 2
    assert plain.pid not in {pid for queue, pid in seen if queue == "code"}
