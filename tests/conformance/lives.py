"""Worker processes that live as long as there is something to do, forked from one that has everything imported.

`python -m tests.conformance.lives` reads a line of JSON for each life and answers with how it ended.
"""

import json
import os
import sys
import traceback
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from sqlalchemy import select

from orchestrator import crashpoints
from orchestrator.clock import Clock
from orchestrator.settings import Settings
from orchestrator.store.tables import runs
from registry.skills import catalogue
from tests.conformance.casebook import cases
from tests.conformance.outside import Outside, begin_as_scripted
from workers.runtime import Runtime


def live(order: dict[str, Any]) -> None:
    """Carries whatever is queued until nothing is; then the process ends."""
    outside = Outside(Path(order["outside"]), cases("runtime")[order["case"]])
    begin_as_scripted(outside)
    runtime = Runtime(Settings(**order["settings"], _env_file=None), order["slots"])
    outside.surround(runtime.services)
    crashpoints.arm(**order["armed"])
    clock = Clock(runtime.settings, runtime.database, runtime.worker_id)
    clock.tick()
    work: dict[str, Future[Any]] = {}
    with ThreadPoolExecutor(order["slots"]) as pool:
        while True:
            for run_id in _queued(runtime, order["slots"] - len(work)):
                if run_id not in work:
                    work[run_id] = pool.submit(runtime.carry, run_id)
            if not work:
                break
            done, _ = wait(work.values(), timeout=0.05, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            work = {run_id: future for run_id, future in work.items() if future not in done}
            if work and order["slots"] > 1:  # otherwise time passes between lives only, when the test says so
                clock.tick()
    clock.resign()
    runtime.stop(5)


def _queued(runtime: Runtime, places: int) -> list[str]:
    """The oldest queued runs; children in the order of their calls."""
    query = select(runs.c.id).where(runs.c.status == "queued").order_by(runs.c.created_at, runs.c.position, runs.c.id)
    with runtime.database.read() as connection:
        return list(connection.execute(query.limit(max(0, places))).scalars())


def main() -> None:
    catalogue.build()  # imported once for all lives
    for line in sys.stdin:
        order = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _be(order, writing)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            said = pipe.read()
        _, status = os.waitpid(child, 0)
        ended = {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"exit": os.WEXITSTATUS(status)}
        sys.stdout.write(json.dumps(ended | {"hits": json.loads(said or "{}")}) + "\n")
        sys.stdout.flush()


def _be(order: dict[str, Any], writing: int) -> None:
    """The child's whole life; never returns."""
    code = 0
    try:
        live(order)
        os.write(writing, json.dumps(crashpoints.hits()).encode())
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
