"""The embedded stack: everything a project needs on one machine, started together and ended in order.

It starts Redis (unless a broker is set), brings the schema up, then Flower and the workers, and keeps them alive.
`run/stack.json` in the home tells other processes where it is. The workers' command lines come from the caller:
nothing here knows a worker.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from orchestrator.settings import Settings
from orchestrator.stack.api import Api
from orchestrator.stack.caretaker import Caretaker
from orchestrator.stack.environment import child_environment
from orchestrator.stack.flower import Flower
from orchestrator.stack.processes import Process
from orchestrator.stack.redis_server import GRACE_S as REDIS_GRACE_S
from orchestrator.stack.redis_server import RedisServer
from orchestrator.stack.supervisor import Part, Supervisor
from registry.errors import Refused

#: The order of the end: workers first, while broker and monitor still listen; Redis last.
REDIS, MONITOR, WORKERS = 0, 1, 2
#: Seconds beyond its own grace that a worker gets to leave.
LEAVE_S = 5


class EmbeddedStack:
    """The stack of one home, for as long as the `with` block lasts.

    A second one of the same home joins the first one's Redis and adds its workers; when the first one ends it takes
    the Redis over.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        workers: int,
        worker_command: Callable[[str], Sequence[str]],
        flower: bool,
        say: Callable[[str], None],
        api: bool = False,
    ) -> None:
        """
        Args:
            settings: what is in force; `broker_url` set means that no Redis is started.
            workers: worker processes to keep.
            worker_command: command line of the worker of that name.
            flower: whether to show the monitor.
            say: receives what a person should read, a line each.
            api: whether to serve the HTTP API.
        """
        self._settings = settings
        self._workers = workers
        self._worker_command = worker_command
        self._say = say
        self._run = settings.home.absolute() / "run"
        self._logs = settings.home.absolute() / "logs"
        self._redis = RedisServer(self._run, self._log("redis"))
        self._wants_flower = flower
        self._flower: Flower | None = None
        self._wants_api = api
        self._api: Api | None = None
        self._joined = False
        self._supervisor = _StackSupervisor(say, self._write_file, self._take_over)
        self._caretaker = Caretaker(lambda: settings)

    @property
    def broker_url(self) -> str:
        """The broker in force, as Celery writes it."""
        return self._settings.broker_url or self._redis.url

    @property
    def flower_url(self) -> str | None:
        """Where Flower answers; None when none is shown."""
        return self._flower.url if self._flower else None

    @property
    def api_url(self) -> str | None:
        """Where the HTTP API answers; None when none is served here."""
        return self._api.url if self._api else None

    def __enter__(self) -> Self:
        for folder in (self._settings.home.absolute(), self._run, self._logs):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._supervisor.start()
        try:
            upgrade = self._begin_upgrade()
            self._start_redis()
            if self._wants_flower and not self._joined:
                self._supervisor.add(self._flower_part())
            self._finish_upgrade(upgrade)
            if self._wants_api and not self._joined:
                self._supervisor.add(self._api_part())
            self._start_workers()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def hurry(self) -> None:
        """Cuts the end short; safe in a signal handler."""
        self._supervisor.hurry()

    def _start_redis(self) -> None:
        if self._settings.broker_url:
            return
        if self._redis.take():
            self._supervisor.add(self._redis_part())
        else:
            self._redis.join()
            self._joined = True
            self._say(f"joining the stack that runs in {self._settings.home}")

    def _start_workers(self) -> None:
        if self._workers:
            self._caretaker.start()
        for number in range(1, self._workers + 1):
            # Two stacks of one home are two sets of workers: their names must differ.
            name = f"worker-{os.getpid()}-{number}" if self._joined else f"worker-{number}"
            grace_s = self._settings.grace_s + LEAVE_S
            look = (self._caretaker.bury, self._caretaker.is_silent)
            self._supervisor.add(Part(name, partial(self._worker, name), WORKERS, grace_s, self._log(name), *look))

    def _redis_part(self) -> Part:
        return Part("redis", self._redis.start, REDIS, REDIS_GRACE_S, self._log("redis"))

    def _flower_part(self) -> Part:
        self._flower = Flower(self._log("flower"), self._environment())
        return Part("flower", self._flower.start, MONITOR, log=self._log("flower"))

    def _api_part(self) -> Part:
        self._api = self._api or Api(self._log("api"), self._environment(), self._settings.api.port)
        grace_s = self._settings.api.grace_s + 2
        return Part("api", self._api.start, MONITOR, grace_s, log=self._log("api"))

    def _worker(self, name: str) -> Process:
        return Process(self._worker_command(name), log=self._log(name), env=self._environment())

    def _take_over(self) -> None:
        """In the supervisor's thread: brings back what the stack we joined took away with it."""
        if not self._joined or not self._redis.take():
            return
        self._joined = False
        self._supervisor.keep(self._redis_part())
        if self._wants_flower:
            self._supervisor.keep(self._flower_part())
        if self._wants_api:
            self._supervisor.keep(self._api_part())
        self._say(f"the stack we joined has ended; its Redis goes on here, Flower at {self.flower_url or 'no address'}")

    def _log(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def _environment(self) -> dict[str, str]:
        return child_environment(self._settings, self.broker_url)

    def _begin_upgrade(self) -> Process:
        command = [sys.executable, "-P", "-m", "orchestrator.stack.upgrade"]
        return Process(command, log=self._log("database"), env=self._environment())

    def _finish_upgrade(self, upgrade: Process) -> None:
        if upgrade.popen.wait() != 0:
            said = self._log("database").read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise Refused(f"the database cannot be used: {said[-1] if said else upgrade.outcome}", code="database")

    def _write_file(self) -> None:
        if self._joined:
            return  # the file speaks of the other one
        found = {
            "pid": os.getpid(),
            "pids": self._supervisor.pids,
            "flowerUrl": self.flower_url,
            "apiUrl": self.api_url,
        }
        if not self._settings.broker_url:
            found["brokerUrl"] = self._redis.url
        fresh = self._file.with_suffix(".new")
        with open(fresh, "w", encoding="utf-8", opener=_private) as out:
            json.dump(found, out)
        fresh.replace(self._file)

    @property
    def _file(self) -> Path:
        return self._run / "stack.json"

    def _close(self) -> None:
        self._supervisor.stop()
        self._caretaker.stop()
        if str(self._settings.stack.get("pid")) == str(os.getpid()):
            self._file.unlink(missing_ok=True)
        if self._flower:
            self._flower.close()
        if self._api:
            self._api.close()
        self._redis.release()


class _StackSupervisor(Supervisor):
    def __init__(self, say: Callable[[str], None], changed: Callable[[], None], besides: Callable[[], None]) -> None:
        super().__init__(say, changed)
        self._besides = besides

    def tick(self) -> None:
        super().tick()
        self._besides()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
