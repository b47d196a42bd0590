"""The parts that `deploy/` configures, as it configures them, with real work on them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from redis import Redis
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError
from sqlalchemy import text

from orchestrator.settings import Settings
from orchestrator.stack.processes import Process
from orchestrator.stack.redis_server import find_server, free_port
from orchestrator.store import wakes
from orchestrator.store.database import get_database
from tests.guarded_redis import DEPLOY, PASSWORD, guarded
from tests.projects import Watched, start, task
from tests.support import eventually
from tests.workers import WorkerProcess

pytestmark = pytest.mark.slow

PLAN = [task("a"), task("b"), task("c", after=["a"])]
SAYS = {"tasks": {key: [{"say": "Done."}] for key in "abc"}}


@pytest.fixture
def guarded_redis(tmp_path: Path) -> Iterator[str]:
    """A server on the configuration and the users of `deploy/redis`: gives its address for the user `officina`."""
    made = guarded(tmp_path, "localhost", "127.0.0.1", address="127.0.0.1", port=free_port())
    server = Process(made.command, log=tmp_path / "redis.log")
    try:
        eventually(lambda: _answers(made.url("localhost", user="health:x")), 15)
        yield made.url("localhost")
    finally:
        server.end(5)


def _answers(url: str) -> bool:
    try:
        with Redis.from_url(url) as client:
            return bool(client.ping())
    except Exception:
        return False


def test_a_project_runs_over_redis_as_deployed(live_settings: Settings, guarded_redis: str, tmp_path: Path) -> None:
    settings = live_settings.model_copy(update={"broker_url": guarded_redis, "redis_url": ""})
    project = Watched(settings, start(tmp_path, settings, PLAN, SAYS).project_id)
    worker = WorkerProcess(settings, tmp_path / "worker.log", {}).ready()
    try:
        assert project.ended() == "completed"
        assert "NOPERM" not in worker.output
    finally:
        worker.kill()


def test_the_user_of_officina_cannot_administer_redis(guarded_redis: str) -> None:
    with Redis.from_url(guarded_redis) as client:
        for command in (["CONFIG", "GET", "*"], ["FLUSHALL"], ["ACL", "LIST"], ["SHUTDOWN"], ["DEBUG", "SLEEP", "0"]):
            with pytest.raises((NoPermissionError, ResponseError)):
                client.execute_command(*command)
    with pytest.raises((AuthenticationError, NoPermissionError, ResponseError)):
        Redis.from_url(guarded_redis.replace(f"officina:{PASSWORD}@", "")).set("a", "b")


@pytest.fixture
def composed_redis(tmp_path: Path) -> Iterator[str]:
    """Redis as its container starts it: gives its address, without a user."""
    service: dict[str, Any] = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["services"]["redis"]
    assert service["tmpfs"] == ["/data"] and service["read_only"], "nothing but /data can be written"
    (data := tmp_path / "data").mkdir()
    (programs := tmp_path / "bin").mkdir()
    (programs / "valkey-server").symlink_to(find_server().path)
    entry = programs / "docker-entrypoint.sh"
    entry.write_text('#!/bin/sh\nexec "$@"\n')
    entry.chmod(0o755)
    port = free_port()
    words = [word.replace("$$", "$").replace("/data", str(data)) for word in service["command"]]
    words[-1] = words[-1].rstrip() + f" --bind 127.0.0.1 --port {port}"
    path = f"{programs}:/usr/bin:/bin"
    assert set(service["environment"]) == {"REDIS_PASSWORD"}
    server = Process(words, log=tmp_path / "redis.log", env={"PATH": path, "REDIS_PASSWORD": "pass1word"})
    try:
        eventually(lambda: _answers(f"redis://health:health@127.0.0.1:{port}"), 15)
        yield f"127.0.0.1:{port}"
    finally:
        server.end(5)


def test_redis_of_the_compose_file_knows_its_users_and_nobody_else(composed_redis: str) -> None:
    with Redis.from_url(f"redis://officina:pass1word@{composed_redis}") as client:
        assert client.set("a", "b") and client.keys("*")
        with pytest.raises(NoPermissionError):
            client.config_get("*")
    for who in ("", "officina:wrong@", "health:health@"):
        with pytest.raises((AuthenticationError, NoPermissionError)):
            Redis.from_url(f"redis://{who}{composed_redis}").set("a", "b")


def keda_queries() -> dict[str, str]:
    """What KEDA asks the database, by the deployment it scales."""
    documents = yaml.safe_load_all((DEPLOY / "kubernetes" / "scaling.yaml").read_text(encoding="utf-8"))
    specs = [one["spec"] for one in documents if one["kind"] == "ScaledObject"]
    return {one["scaleTargetRef"]["name"]: one["triggers"][0]["metadata"]["query"] for one in specs}


def test_keda_counts_what_runs_and_what_waits_for_a_slot(live_settings: Settings, tmp_path: Path) -> None:
    def counted(name: str = "worker") -> int:
        with get_database(live_settings).read() as connection:
            return int(connection.execute(text(keda_queries()[name])).scalar_one())

    database = get_database(live_settings)
    silent = live_settings.model_copy(update={"broker_url": "", "redis_url": live_settings.broker_url})
    made = start(tmp_path, silent, PLAN, SAYS)
    assert counted() == 0, "nobody has woken it yet"

    database.write(lambda c: wakes.advance(c, made.project_id))
    assert (counted(), counted("worker-code")) == (2, 0)
    database.write(lambda c: c.execute(text("UPDATE runs SET queue = 'code' WHERE due_at IS NOT NULL AND wakes > 0")))
    assert (counted(), counted("worker-code")) == (0, 2)
    database.write(lambda c: c.execute(text("UPDATE runs SET queue = NULL")))

    worker = WorkerProcess(live_settings, tmp_path / "worker.log", {}).ready()
    try:
        assert Watched(live_settings, made.project_id).ended() == "completed"
        assert counted() == 0
    finally:
        worker.kill()


@pytest.fixture
def flower(redis_url: str, tmp_path: Path) -> Iterator[str]:
    """Flower as the container starts it: by the command and the variables of the compose file."""
    service: dict[str, Any] = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["services"]["flower"]
    port = free_port()
    words = [word.replace("--address=0.0.0.0", "--address=127.0.0.1") for word in service["command"]]
    ours = {"--port": f"--port={port}", "--db": f"--db={tmp_path / 'flower'}"}
    words = [ours.get(word.partition("=")[0], word) for word in words]
    celery = Path(sys.executable).with_name("celery")
    broker = redis_url.replace("unix://", "redis+socket://")
    process = Process(
        [str(celery), *words],
        log=tmp_path / "flower.log",
        env={"PATH": str(celery.parent), "BROKER_URL": broker, "FLOWER_BASIC_AUTH": "ann:of-the-tests"},
    )
    try:
        eventually(lambda: _opens(f"http://127.0.0.1:{port}/healthcheck"), 40)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()


def _opens(url: str) -> bool:
    try:
        return httpx2.get(url).status_code == 200
    except httpx2.HTTPError:
        return False


def test_flower_asks_who_is_there_and_changes_nothing(flower: str) -> None:
    assert httpx2.get(f"{flower}/workers").status_code == 401
    assert httpx2.get(f"{flower}/api/tasks").status_code == 401
    known = ("ann", "of-the-tests")
    assert httpx2.get(f"{flower}/workers", auth=known).status_code == 200
    sent = httpx2.post(f"{flower}/api/task/async-apply/officina.run", auth=known, content=json.dumps({"args": ["x"]}))
    assert sent.status_code in (403, 405)


def test_a_database_is_checked_before_anything_starts_on_it(tmp_path: Path) -> None:
    def officina(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("officina")), *words]
        environment = {"OFFICINA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    before = officina("db", "check")
    officina("db", "upgrade")
    after = officina("db", "check", "--wait", "5")

    assert (before.returncode, after.returncode) == (1, 0)
    assert "officina db upgrade" in before.stderr
    assert "is at this release" in after.stdout
