"""Host A's servers: PostgreSQL and Redis, on its address, each behind a password."""

import signal
from pathlib import Path

import psycopg

from orchestrator.stack.processes import Process
from tests import guarded_redis, services
from tests.hosts.network import Host, Service
from tests.support import eventually

PASSWORD = "another-password-of-the-tests"
#: What the log of Redis says once it serves.
READY = "Ready to accept connections"


class NetworkPostgres(services.PostgresServer):
    """A PostgreSQL server that listens on a host's address and asks for a password there.

    Its Unix socket stays open to this test, which looks at the rows from outside of all hosts.
    """

    host: Host | None = None

    @property
    def folder(self) -> Path:
        """Its disk, which its host has to see."""
        return self._folder

    def open(self, host: Host) -> None:
        """Starts it in a host."""
        self.host = host
        with (self._folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write("host all all samenet scram-sha-256\n")
        self.start()
        with psycopg.connect(self.url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(f"ALTER USER postgres PASSWORD '{PASSWORD}'")

    def address(self, database: str) -> str:
        """The address of a database for every host."""
        assert self.host is not None
        return f"postgresql+psycopg://postgres:{PASSWORD}@{self.host.address}/{database}"

    def stop(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process = None

    def _run(self, command: list[str], log: Path) -> Process:
        assert self.host is not None
        more = ["-c", f"listen_addresses={self.host.address}", "-c", "max_connections=150"]
        user = ["setpriv", f"--reuid={self._user}", f"--regid={self._user}", "--clear-groups"]
        return Process(self.host.into(*user, *command, *more), log=log)


class NetworkRedis:
    """A Redis server as `deploy/redis` configures it, which can be stopped and started again.

    Args:
        folder: its files; its host has to see the folder.
    """

    def __init__(self, host: Host, folder: Path) -> None:
        self._host, self._log = host, folder / "redis.log"
        self.made = guarded_redis.guarded(folder, "a", host.address, address=host.address, port=6379)
        self.start()

    def address(self, root: Path) -> str:
        """Its address for every host, which has the root certificate at `root`."""
        return self.made.url(self._host.address, root)

    def start(self) -> None:
        """Starts it, empty, and returns once it takes connections."""
        before = self._log.read_text(errors="replace").count(READY) if self._log.exists() else 0
        self._service = Service(self._host, self.made.command, log=self._log)
        eventually(lambda: self._service.output.count(READY) > before, 20, 0.05)

    def stop(self) -> None:
        """Ends it as an administrator does; all it held is gone."""
        self._service.signal(signal.SIGTERM)
        self._service.ended(10)
