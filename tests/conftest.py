"""What every test may ask for: real services, settings of its own, worker processes.

Each xdist process has its own servers, so tests share nothing; `redis` is emptied and a database made anew per test.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

from tests import services
from tests.databases import Databases

if TYPE_CHECKING:
    from redis import Redis

    from orchestrator.settings import Settings
    from tests.workers import WorkerProcess


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", help="the seed of tests that roll dice; they print the one they take")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What uses a database runs on one of both in the short form, by its name; on both in the long form.

    What a store does is tested on PostgreSQL and in memory, which is SQLite too, in each form: tests/contract. On a
    file it is of the long form.
    """
    both, contract = ("sqlite", "postgres"), Path(__file__).parent / "contract" / "store"
    for item in items:
        kind = getattr(getattr(item, "callspec", None), "params", {}).get("database_url")
        if kind == "sqlite" and contract in item.path.parents:
            item.add_marker(pytest.mark.long)
        elif kind in both and contract not in item.path.parents:
            name = item.nodeid.replace(kind, "")
            if kind != both[crc32(name.encode()) % 2]:
                item.add_marker(pytest.mark.long)


@pytest.fixture(autouse=True)
def no_secrets_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another test called a secret is an ordinary word in this one."""
    masking = sys.modules.get("registry.masking")
    if masking is not None:
        monkeypatch.setattr(masking, "_values", masking._Values())


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the person who runs the tests reaches them."""
    for name in [name for name in os.environ if name.startswith(("OFFICINA_", "OTEL_"))]:
        monkeypatch.delenv(name)
    cached = sys.modules.get("orchestrator.settings")
    if cached is not None:
        cached.get_settings.cache_clear()


#: Codes any call may end in: of its input, its gate, its run, its hooks, and of ports that are not there.
OF_EVERY_CALL = {
    *("invalid_input", "unknown_skill", "tool_not_offered", "denied", "blocked", "approval_required", "not_wired"),
    *("timeout", "cancelled", "tool_failed", "too_large", "invalid_output", "rate_limited", "lease_stale"),
}


@pytest.fixture(autouse=True)
def only_declared_failures(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A pack's tool that ends, in any test of this process, in a code it does not declare (`fails`) fails that test."""
    registry = sys.modules.get("registry.skills.registry")
    packs = sys.modules.get("registry.packs")
    if registry is None or packs is None:
        yield
        return
    declared = {tool.name: {*tool.fails, *OF_EVERY_CALL} for pack in packs.PACKS.values() for tool in pack.tools}
    invoke, odd = registry.SkillRegistry.invoke, []

    def recording(self: Any, name: str, *args: Any, **options: Any) -> Any:
        result = invoke(self, name, *args, **options)
        if not result.ok and result.code not in declared.get(name, {result.code}):
            odd.append((name, result.code))
        return result

    monkeypatch.setattr(registry.SkillRegistry, "invoke", recording)
    yield
    assert odd == [], "these tools end in codes that their `fails` does not name"


@pytest.fixture(scope="session")
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's name."""
    folder = Path(tempfile.mkdtemp(prefix="officina-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def redis_url(short_folder: Path) -> Iterator[str]:
    """A Redis server of this test process, as Celery and the settings write its address."""
    from orchestrator.stack.redis_server import RedisServer
    from registry.errors import WrongUse

    def start() -> Any:
        try:
            return server.start()
        except WrongUse as error:
            raise services.ServiceMissing(error.message) from error

    server = RedisServer(short_folder / "redis")
    assert server.take()
    process = services.needed(start)
    yield server.url
    process.end(5)
    server.release()


@pytest.fixture
def redis(redis_url: str) -> "Iterator[Redis]":
    """A client of that server, which is empty."""
    from redis import Redis

    client = Redis.from_url(redis_url.replace("redis+socket://", "unix://"), decode_responses=True)
    client.flushall()
    yield client
    client.close()


@pytest.fixture(scope="session")
def _postgres() -> Iterator[str]:
    server = services.postgres(hasty=True)
    yield services.needed(server.__enter__)
    server.__exit__(None, None, None)


@pytest.fixture(scope="session")
def _databases(_postgres: str, short_folder: Path) -> Databases:
    return Databases(_postgres, services.make_database(_postgres, "migrated", migrate_from=short_folder))


@pytest.fixture
def postgres_url(_databases: Databases) -> Iterator[str]:
    """A migrated, empty PostgreSQL database for this test alone."""
    url = _databases.take()
    yield url
    _databases.give_back(url)


@pytest.fixture(scope="session")
def _migrated_sqlite(short_folder: Path) -> Path:
    path = short_folder / "migrated.db"
    services.migrate(f"sqlite:///{path}", short_folder)
    return path


@pytest.fixture
def sqlite_url(_migrated_sqlite: Path, tmp_path: Path) -> Iterator[str]:
    """A migrated, empty SQLite database for this test alone."""
    path = tmp_path / "home" / "officina.db"
    path.parent.mkdir(exist_ok=True)
    shutil.copy(_migrated_sqlite, path)
    yield f"sqlite:///{path}"
    services.close_connections(f"sqlite:///{path}")


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The test runs twice: on SQLite and on PostgreSQL."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def memory_url() -> Iterator[str]:
    """An empty store in the memory of this process."""
    yield "sqlite://"
    services.close_connections("sqlite://")


@pytest.fixture
def settings(tmp_path: Path, sqlite_url: str) -> "Settings":
    """Settings of a home of this test's own, with its SQLite database and no broker."""
    from orchestrator.settings import Settings

    return Settings(home=tmp_path / "home", _env_file=None)  # type: ignore[call-arg]


@pytest.fixture
def live_settings(tmp_path: Path, database_url: str, redis: "Redis", redis_url: str) -> "Settings":
    """Settings with a database (each in turn) and an empty Redis: what a whole system needs."""
    from orchestrator.settings import Settings

    return Settings(home=tmp_path / "home", database_url=database_url, broker_url=redis_url, _env_file=None)  # type: ignore[call-arg]


@pytest.fixture
def worker_process(tmp_path: Path) -> "Iterator[Callable[..., WorkerProcess]]":
    """Starts real worker processes: `worker_process(settings, LIMITS__LEASE_S="2")`; all are killed at the end."""
    from tests.workers import WorkerProcess

    started: list[WorkerProcess] = []

    def start(
        settings: "Settings", queues: Sequence[str] = (), autoscale: tuple[int, int] | None = None, **changed: str
    ) -> "WorkerProcess":
        log = tmp_path / f"worker-{len(started) + 1}.log"
        worker = WorkerProcess(settings, log, changed, queues=queues, autoscale=autoscale)
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.kill()
