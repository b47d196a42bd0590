"""Slots of several workers: no message waits for one that is taken while another is free. On real workers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.settings import Settings
from tests.projects import Watched, start, task
from tests.support import eventually
from tests.workers import WorkerProcess


def test_short_runs_do_not_wait_behind_long_ones_while_a_slot_is_free(
    tmp_path: Path, sqlite_url: str, redis: Any, redis_url: str, worker_process: Callable[..., WorkerProcess]
) -> None:
    settings = Settings(home=tmp_path / "home", database_url=sqlite_url, broker_url=redis_url, _env_file=None)  # type: ignore[call-arg]
    # The clock would send the messages of those that wait again: here it does not come to that.
    rare = {"LIMITS__CLOCK_TICK_S": "600", "LIMITS__LEASE_S": "4800"}
    for worker in [worker_process(settings, WORKER_SLOTS="2", **rare) for _ in range(2)]:
        worker.ready()

    def project(keys: str, **script: Any) -> Watched:
        script["tasks"] = {key: [{"say": "done"}] for key in keys}
        return Watched(settings, start(tmp_path / keys, settings, [task(key) for key in keys], script).project_id)

    def states(of: Watched) -> set[str]:
        return {one.status for one in of.tasks.values()}

    slow = project("abc", delayMs=60_000)
    eventually(lambda: states(slow) == {"running"}, 20)

    fast = project("uvwxyz", delayMs=50)  # so long that none is followed by the next without a message

    eventually(lambda: fast.status == "completed", 30)
    assert states(slow) == {"running"}
