"""Four hosts: A with PostgreSQL and Redis, B and C with workers, D with the API, a producer and a person.

They share one thing besides the network: the volume with the workspaces (and, for the test, the file of effects).
"""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, text

from orchestrator.settings import Settings
from orchestrator.states import PROJECT_ENDED
from orchestrator.store.database import get_database
from orchestrator.store.tables import projects, runs, workers
from orchestrator.vault import new_key
from tests import services
from tests.faults import skills
from tests.faults.company import Company
from tests.hosts.network import HOME, ROOT, VOLUME, Host, Service, Switch
from tests.hosts.servers import NetworkPostgres, NetworkRedis
from tests.projects import Watched
from tests.support import eventually

#: Runs one worker carries at once: few, so that hosts and not cores are what there is too little of.
SLOTS = 4
#: Leases and ticks short enough to wait for, long enough for a busy machine.
CALM = {
    "LIMITS__LEASE_S": "5",
    "LIMITS__RENEW_S": "1",
    "LIMITS__CLOCK_TICK_S": "0.3",
    "LIMITS__STUCK_S": "4",
    "LIMITS__OPEN_DECISIONS_PER_PROJECT": "20",
    "GRACE_S": "15",
    "WORKER_SLOTS": str(SLOTS),
}
ADDRESSES = {"a": "10.77.0.1", "b": "10.77.0.2", "c": "10.77.0.3", "d": "10.77.0.4", "e": "10.77.0.5"}
API = f"http://{ADDRESSES['d']}:4000"


class Worker(Service):
    """`officina worker` on a host, as it is installed: a supervisor and its worker process."""

    def ready(self, seconds: float = 90) -> "Worker":
        """Waits until it takes work."""
        eventually(lambda: " ready." in self.output or not self.running, seconds, 0.05)
        assert self.running, self.output
        return self

    def leave(self, seconds: float = 60) -> None:
        """Asks it to leave as a roll does, and waits until it has."""
        self.signal(signal.SIGTERM)
        self.ended(seconds)


class Fleet:
    """The hosts, what runs on them, and what the rows say, seen from outside of all of them."""

    def __init__(self, stage: Path, patch: pytest.MonkeyPatch) -> None:
        """
        Raises:
            ServiceMissing: a server is not installed.
        """
        self.stage, self._numbers = stage, count(1)
        self.volume = stage / "volume"
        self.workers: dict[str, Worker] = {}
        self._postgres = NetworkPostgres()
        self._switch = Switch()
        self.hosts: dict[str, Host] = {}
        try:
            self._build(patch)
        except BaseException:
            self.close()
            raise

    def _build(self, patch: pytest.MonkeyPatch) -> None:
        for folder in ("volume/workspaces", "redis"):
            (self.stage / folder).mkdir(parents=True)
        a = self.host("a", volume=False, sees=[self._postgres.folder, self.stage / "redis"])
        self._postgres.open(a)
        self.redis = NetworkRedis(a, self.stage / "redis")
        url = services.make_database(self._postgres.url, "fleet")
        self.settings = Settings(home=self.stage / "outside", database_url=url, _env_file=None)  # type: ignore[call-arg]
        self._shared = {
            "OFFICINA_HOME": str(HOME / "officina"),
            "OFFICINA_DATABASE_URL": self._postgres.address("fleet"),
            "OFFICINA_BROKER_URL": self.redis.address(HOME / "root.pem"),
            "OFFICINA_WORKSPACE_ROOT": str(VOLUME / "workspaces"),
            "OFFICINA_SECRET_KEY": new_key(),
            skills.PLACE: str(VOLUME / "effects"),
            **{f"OFFICINA_{name}": value for name, value in CALM.items()},
        }
        for name in ("b", "c", "d"):
            self.host(name)
        self.officina("d", "db", "upgrade")
        self.company = Company(self.settings, self.stage, patch)
        self.company.place = self.volume / "effects"

    def host(self, name: str, *, volume: bool = True, sees: list[Path] | None = None) -> Host:
        """A new host on the switch."""
        where = self.volume if volume else None
        made = Host(self._switch, name, ADDRESSES[name], self.stage / "disks" / name, where, sees or [])
        if name != "a":  # where Redis is, which has made it
            shutil.copy(self.redis.made.certificates.root, made.disk / "root.pem")
        self.hosts[name] = made
        return made

    @contextmanager
    def guest(self, *, volume: bool) -> Iterator[Host]:
        """Host E, for a while."""
        made = self.host("e", volume=volume)
        try:
            yield made
        finally:
            self.hosts.pop("e").off()

    def environment(self, **more: str) -> dict[str, str]:
        """What processes of every host are started with."""
        path = f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {"PATH": path, "HOME": str(HOME), "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT)} | self._shared | more

    def officina(self, host: str, *words: str, **more: str) -> str:
        """Runs `officina` on a host; gives what it printed."""
        ended = self.try_officina(host, *words, **more)
        assert ended.returncode == 0, f"{words}: {ended.stdout}\n{ended.stderr}"
        return ended.stdout

    def try_officina(self, host: str, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
        """The same, however it ends."""
        return self.hosts[host].run(*_OFFICINA, *words, env=self.environment(**more))

    def worker(self, host: str) -> Worker:
        """A worker that is starting."""
        log = self.stage / f"worker-{host}-{next(self._numbers)}.log"
        return Worker(self.hosts[host], [*_OFFICINA, "worker"], log=log, env=self.environment())

    def staff(self, *hosts: str) -> None:
        """Lets exactly these hosts have a worker each."""
        for host in [host for host in self.workers if host not in hosts]:
            self.workers.pop(host).leave()
        new = {host: self.worker(host) for host in hosts if host not in self.workers}
        for host, made in new.items():
            self.workers[host] = made.ready()

    def upgrade(self) -> None:
        """The schema of a release to come, as its migrations called `pre` make it while this one is at work."""
        for table in ("runs", "tasks", "projects", "events", "messages", "checkpoints", "signals", "workers"):
            add = text(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS of_a_newer_release TEXT")
            get_database(self.settings).write(lambda connection, add=add: connection.execute(add))

    def roll(self, host: str) -> None:
        """A new worker beside the old one; then the old one leaves."""
        new = self.worker(host).ready()
        self.workers[host].leave()
        self.workers[host] = new

    def serve(self) -> "Desk":
        """The API on D with its producer and its person."""
        return Desk(self)

    def held_by(self, host: str) -> int:
        """Runs that workers of this host carry, as the rows have it."""
        mine = select(workers.c.id).where(workers.c.host == host)
        query = select(func.count()).where(runs.c.status == "running", runs.c.worker_id.in_(mine))
        return self._one(query)

    def ended(self) -> int:
        """Projects that have ended."""
        return self._one(select(func.count()).where(projects.c.status.in_(sorted(PROJECT_ENDED))))

    def _one(self, query: Any) -> int:
        with get_database(self.settings).read() as connection:
            return int(connection.execute(query).scalar_one())

    @property
    def output(self) -> str:
        """What all workers and the API printed, the end of each."""
        return "\n".join(
            f"--- {log.name}\n{log.read_text(errors='replace')[-4000:]}" for log in self.stage.glob("*.log")
        )

    def close(self) -> None:
        for host in self.hosts.values():
            host.off()
        if hasattr(self, "settings"):
            services.close_connections(self.settings.database)
        self._postgres.remove()
        self._switch.close()


class Desk:
    """D at work: the API, and over it a producer and a person who says yes."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, d = fleet, fleet.hosts["d"]
        self._api = Service(
            d, [*_OFFICINA, "api", "--host", d.address], log=fleet.stage / "api.log", env=fleet.environment()
        )
        eventually(lambda: "API at" in self._api.output or not self._api.running, 60, 0.05)
        key, code = fleet.officina("d", "keys", "add", "producer").strip(), fleet.officina("d", "keys", "code").strip()
        self.far = {"OFFICINA_API_URL": API, "OFFICINA_API_KEY": key}
        fleet.officina("d", "login", code, **self.far)
        self._process = subprocess.Popen(
            d.into(sys.executable, "-m", "tests.hosts.desk"),
            env=fleet.environment(**self.far),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(fleet.stage / "desk.log").open("w"),
            text=True,
            cwd="/",
        )

    def write(self, project: Mapping[str, Any], script: Mapping[str, Any], name: str) -> Path:
        """A project file on D's disk; gives its path there."""
        folder = self._fleet.hosts["d"].disk / "projects" / name
        folder.mkdir(parents=True)
        (folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
        (folder / "project.json").write_text(json.dumps({**project, "script": "script.json"}), encoding="utf-8")
        return HOME / "projects" / name / "project.json"

    def submit(self, files: list[Path]) -> list[Watched]:
        """Submits them, one after the other."""
        assert self._process.stdin is not None and self._process.stdout is not None
        made = []
        for file in files:
            print(file, file=self._process.stdin, flush=True)
            project_id = self._process.stdout.readline().strip()
            assert project_id, (self._fleet.stage / "desk.log").read_text()
            made.append(Watched(self._fleet.settings, project_id))
        return made

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._api.kill()


def seconds_of(project: Watched) -> float:
    """From the start of a project's first task to the end of its last, on the database's clock."""
    rows = project.tasks.values()
    return (max(row.ended_at for row in rows) - min(row.started_at for row in rows)) / 1000


def pause(seconds: float) -> None:
    """How long something stays broken."""
    time.sleep(seconds)


_OFFICINA = [sys.executable, "-m", "tests.hosts.officina"]
