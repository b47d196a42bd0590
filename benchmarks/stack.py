"""What the workloads run on: Redis, PostgreSQL as it commits by default, two worker processes, and the floor's two."""

import json
import logging
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from benchmarks import floors
from benchmarks.measure import tell
from orchestrator import queue
from orchestrator.producer import submit
from orchestrator.settings import Settings
from orchestrator.stack.environment import child_environment
from orchestrator.stack.processes import Process
from orchestrator.stack.redis_server import RedisServer
from orchestrator.states import PROJECT_ENDED
from orchestrator.store.database import get_database
from tests import services
from workers.commands.worker import worker_command

if TYPE_CHECKING:
    import psutil
    from sqlalchemy import Select

WORKERS = 2
#: Seconds a piece of work may take before the run is given up.
PATIENCE_S = 300


@dataclass(frozen=True)
class Model:
    """A model server."""

    url: str
    #: A line for each request: the task it is about, and how many answers it already holds.
    asked: Path


class Stack:
    """Services and workers of one run; every method measures on what is warm."""

    def __init__(self, folder: Path, server: str, stopping: ExitStack) -> None:
        self.folder = folder
        self._server, self._stopping = server, stopping
        self._numbers = count(1)
        self._floor_runs = False
        self._offices: dict[str, Settings] = {}
        self._crews: dict[str, Crew] = {}
        self.settings = self.office("office")

    def office(self, name: str, **changed: Any) -> Settings:
        """A database, a Redis and two workers of its own, the same for one name; `changed` are settings other than the
        defaults."""
        if name in self._offices:
            return self._offices[name]
        settings = self._offices[name] = self.bare_office(name, **changed)
        home, environment = settings.home, child_environment(settings)
        environment |= {f"OFFICINA_{key.upper()}": json.dumps(value) for key, value in changed.items()}
        logs = [home / f"worker-{number + 1}.log" for number in range(WORKERS)]
        commands = {log: worker_command(settings, name=f"{name}-{log.stem}") for log in logs}
        self._crews[settings.database] = Crew(
            {log: partial(self._start, command, log, environment) for log, command in commands.items()}
        )
        return settings

    def bare_office(self, name: str, **changed: Any) -> Settings:
        """The same without workers."""
        home = self.folder / name
        home.mkdir()
        url = services.make_database(self._server, name, migrate_from=home)
        self._stopping.callback(services.close_connections, url)
        return Settings(home=home, database_url=url, broker_url=self._redis(home), _env_file=None, **changed)

    def database_for(self, name: str) -> str:
        """The address of a new, empty database, as psycopg reads it."""
        made = services.make_database(self._server, f"{name}_{next(self._numbers)}")
        self._stopping.callback(services.close_connections, made)
        return made.replace("+psycopg", "")

    def start_api(self, settings: Settings, listening: socket.socket) -> None:
        """The API of an office, a process of its own that answers on this socket."""
        command = [sys.executable, "-P", "-m", "orchestrator.api.server", str(listening.fileno())]
        environment, log = child_environment(settings), settings.home / "api.log"
        process = Process(command, log=log, env=environment, keep_fds=[listening.fileno()])
        self._stopping.callback(process.kill)

    def crew(self, settings: Settings) -> "Crew":
        """The two workers of an office."""
        return self._crews[settings.database]

    @property
    def floor(self) -> ModuleType:
        """The module of the floor's tasks, served by two processes; started when it is asked for."""
        if not self._floor_runs:
            self._start_floor()
            self._floor_runs = True
        return floors

    def model(self, turns: Sequence[dict[str, Any]], delay_ms: int = 0) -> "Model":
        """A model server, a process of its own, that answers with these turns."""
        name = f"model-{next(self._numbers)}"
        file, log, asked = (self.folder / f"{name}.{end}" for end in ("json", "log", "asked"))
        file.write_text(json.dumps(turns), encoding="utf-8")
        words = [str(file), str(delay_ms), str(asked)]
        self._start([sys.executable, "-m", "benchmarks.model_server", *words], log, {**os.environ})
        wait(partial(_says, log, "/v1\n"), 0.02)
        return Model(log.read_text(encoding="utf-8").split()[-1], asked)

    def modelled(self, name: str, model: "Model", **changed: Any) -> Settings:
        """An office whose model is that server."""
        served = {"standard": {"name": "stub", "base_url": model.url}}
        return self.office(name, models=served, model_api_key="none", **changed)

    def rows(self, query: "Select[Any]", settings: Settings | None = None) -> list[Any]:
        """What a query of an office's database gives."""
        with get_database(settings or self.settings).read() as connection:
            return list(connection.execute(query))

    def wake(self, files: Sequence[Path], settings: Settings | None = None) -> float:
        """Submits projects while nobody listens, then wakes them; seconds from the first wake-up to the last end."""
        settings = settings or self.settings
        silent = settings.model_copy(update={"broker_url": ""})
        made = [submit(file, settings=silent).project_id for file in files]
        begun = time.time()
        for project_id in made:
            queue.advance(settings, project_id, "bench")
        return self.ended(made, settings) - begun

    def fan_out(self, file: Path, settings: Settings | None = None) -> tuple[float, float]:
        """Runs a project with one map; seconds from its fan-out to its join, and those of the whole project."""
        from sqlalchemy import select

        from orchestrator.store.tables import events, projects

        whole = self.wake([file], settings)
        with get_database(settings or self.settings).read() as connection:
            latest = select(projects.c.id).order_by(projects.c.created_at.desc()).limit(1).scalar_subquery()
            spans = ("map.started", "map.completed")
            query = select(events.c.kind, events.c.at).where(events.c.trace_id == latest, events.c.kind.in_(spans))
            at = {row.kind: row.at for row in connection.execute(query)}
        return (at["map.completed"] - at["map.started"]) / 1000, whole

    def ended(self, project_ids: Sequence[str], settings: Settings | None = None) -> float:
        """Waits until these projects have completed; epoch seconds of the last end, as its row says.

        Raises:
            RuntimeError: one of them ended in another way, or took longer than `PATIENCE_S`.
        """
        from sqlalchemy import select

        from orchestrator.store.tables import projects

        query = select(projects.c.status).where(projects.c.id.in_(project_ids))
        wait(lambda: set(self._column(query, settings)) <= PROJECT_ENDED)
        if (found := set(self._column(query, settings))) != {"completed"}:
            raise RuntimeError(f"a project of the benchmark ended {', '.join(sorted(found))}")
        last = select(projects.c.ended_at).where(projects.c.id.in_(project_ids))
        return float(max(self._column(last, settings))) / 1000

    def folder_of(self, what: str) -> Path:
        """A new folder for a project file."""
        return self.folder / "projects" / f"{what}-{next(self._numbers)}"

    def _column(self, query: "Select[Any]", settings: Settings | None) -> list[Any]:
        with get_database(settings or self.settings).read() as connection:
            return list(connection.execute(query).scalars())

    def _redis(self, home: Path) -> str:
        """The address of a new Redis server, as the embedded stack starts it."""
        server = RedisServer(home / "redis")
        server.take()
        self._stopping.callback(server.release)
        self._stopping.callback(server.start().end, 5)
        return server.url

    def _start(self, command: Sequence[str], log: Path, environment: dict[str, str]) -> Process:
        process = Process(command, log=log, env=environment)
        self._stopping.callback(process.kill)
        return process

    def _start_floor(self) -> None:
        import psycopg

        url = services.make_database(self._server, "floor").replace("+psycopg", "")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(floors.TABLES)
        redis = self._redis(self.folder / "floor")
        environment = {**os.environ, "FLOOR_REDIS": redis, "FLOOR_DATABASE": url}
        self._start(floors.worker_command(), self.folder / "floor" / "worker.log", environment)
        floors.app.conf.update(broker_url=redis, result_backend=redis)
        for warm in [floors.twenty_steps.delay(f"warm {number}") for number in range(20)]:
            warm.get(timeout=60)


class Crew:
    """The worker processes of an office, ready for work."""

    def __init__(self, starts: dict[Path, Callable[[], Process]]) -> None:
        self._starts = starts
        self._there = {log: start() for log, start in starts.items()}
        for log in starts:
            wait(partial(_says, log, " ready."), 0.02)

    def kill(self) -> None:
        """Kills the first of them as the kernel would, in the middle of whatever it does."""
        self._there[next(iter(self._starts))].kill()

    def replace(self) -> None:
        """Starts a new one where one was killed; the next to be killed is another."""
        log, start = next(iter(self._starts.items()))
        log.unlink()
        self._there[log] = start()
        wait(partial(_says, log, " ready."), 0.02)
        self._starts = {**{k: v for k, v in self._starts.items() if k != log}, log: start}

    @property
    def threads(self) -> int:
        return sum(process.num_threads() for process in self._processes())

    @property
    def memory_mb(self) -> float:
        """What they and their children hold in memory, pages that are shared counted in parts."""
        return sum(process.memory_full_info().pss for process in self._processes()) / 1_000_000

    def _processes(self) -> "list[psutil.Process]":
        import psutil

        roots = [psutil.Process(process.pid) for process in self._there.values()]
        return [*roots, *(child for root in roots for child in root.children(recursive=True))]


@contextmanager
def stack() -> Iterator[Stack]:
    """A stack in a folder of its own, gone at the end."""
    logging.getLogger("orchestrator.queue").setLevel(logging.ERROR)  # projects submitted on purpose without a broker
    tell("starting Redis, PostgreSQL and the workers")
    with ExitStack() as stopping:
        folder = Path(tempfile.mkdtemp(prefix="officina-bench-"))
        stopping.callback(shutil.rmtree, folder, ignore_errors=True)
        postgres = stopping.enter_context(services.postgres())
        yield Stack(folder, postgres, stopping)


def wait(condition: Callable[[], bool], every: float = 0.01) -> None:
    """Looks often, though not so often that the looks are what is measured: rows and traces say when something was."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not done within {PATIENCE_S} s")
        time.sleep(every)


def _says(log: Path, word: str) -> bool:
    return word in log.read_text(encoding="utf-8", errors="replace")
