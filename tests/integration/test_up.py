"""`officina up` and `officina worker` as a person starts them: real workers, real Flower, one project."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from orchestrator.settings import Settings
from tests.support import alive, eventually

pytestmark = pytest.mark.slow

PROJECT = {
    "title": "Two notes",
    "script": "script.json",
    "tasks": [
        {"key": "first", "role": "writer", "instruction": "Write it.", "deliverables": ["first.md"]},
        {"key": "second", "role": "editor", "instruction": "Read it.", "dependsOn": ["first"]},
    ],
}
SCRIPT = {
    "delayMs": 400,
    "tasks": {
        "first": [
            {"calls": [{"name": "files.write", "args": {"path": "first.md", "content": "a note"}}]},
            {"say": "ok"},
        ],
        "second": [{"say": "read"}],
    },
}


class Command:
    """One `officina ...` with a home of its own; what it prints is read line by line."""

    def __init__(self, home: Path, *words: str, environment: Mapping[str, str] | None = None) -> None:
        self.home = home
        self.process = subprocess.Popen(
            [Path(sys.executable).with_name("officina"), *words],
            env={**os.environ, "OFFICINA_HOME": str(home), **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def until(self, word: str) -> str:
        """Reads on to the line that holds this word."""
        assert self.process.stdout is not None
        read = []
        for line in self.process.stdout:
            read.append(line)
            if word in line:
                return line
        raise AssertionError(f"it ended and never said {word!r}:\n{''.join(read)}")

    @property
    def family(self) -> set[int]:
        return {child.pid for child in psutil.Process(self.process.pid).children(recursive=True)}


@pytest.fixture
def officina() -> Iterator[Callable[..., Command]]:
    started: list[Command] = []

    def start(home: Path, *words: str, **more: Any) -> Command:
        started.append(Command(home, *words, **more))
        return started[-1]

    yield start
    for command in started:
        command.process.kill()
        command.process.communicate()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT))
    (tmp_path / "project.json").write_text(json.dumps(PROJECT))
    return tmp_path / "project.json"


@pytest.fixture
def home(short_folder: Path, request: pytest.FixtureRequest) -> Path:
    return short_folder / f"up-{abs(hash(request.node.nodeid)) % 10**6}"


def ask(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return json.load(answer)


def flower_of(home: Path) -> str:
    return str(eventually(lambda: Settings(home=home, _env_file=None).stack.get("flowerUrl"), 30))  # type: ignore[call-arg]


def test_a_project_runs_to_its_end_is_seen_in_flower_and_the_stack_goes(officina, home, project) -> None:
    command = officina(home, "up", "--run", str(project), "--yes")
    flower = flower_of(home)
    command.until("first")
    family = command.family

    runs = eventually(
        lambda: [seen for seen in ask(f"{flower}/api/tasks").values() if seen["name"] == "officina.run"], 30
    )
    workers = eventually(lambda: ask(f"{flower}/api/workers"), 30)

    assert "Two notes" in runs[0]["kwargs"]
    assert [name.partition("@")[0] for name in workers] == ["worker-1"]
    assert command.until("first.md").split()[0].endswith("/first.md")
    assert flower in command.until("Flower:")
    assert command.process.wait(60) == 0
    assert not any(alive(pid) for pid in family)


def test_nothing_is_left_when_the_command_is_killed(officina, home) -> None:
    command = officina(home, "up")
    flower = flower_of(home)
    eventually(lambda: ask(f"{flower}/api/workers"), 30)
    family = command.family

    command.process.kill()

    eventually(lambda: not any(alive(pid) for pid in family))


@pytest.mark.parametrize("pool", ["threads", pytest.param("prefork", marks=pytest.mark.long)])
def test_a_worker_is_started_again_and_ends_with_its_command(officina, home, live_sqlite, pool) -> None:
    command = officina(home, "worker", "--slots", "2", "--pool", pool, "--name", "w", environment=live_sqlite)
    command.until(" ready")
    first = psutil.Process(command.process.pid).children()[0]

    first.kill()
    command.until("starting it again")
    command.until(" ready")
    family = command.family
    command.process.send_signal(signal.SIGTERM)

    assert command.process.wait(60) == 0
    eventually(lambda: not any(alive(pid) for pid in family))


def test_a_killed_worker_command_leaves_no_pool_behind(officina, home, live_sqlite) -> None:
    command = officina(home, "worker", "--slots", "2", "--pool", "prefork", environment=live_sqlite)
    command.until(" ready")
    family = eventually(lambda: len(command.family) >= 3 and command.family)

    command.process.kill()

    eventually(lambda: not any(alive(pid) for pid in family), 20)


def test_a_worker_without_a_broker_says_what_to_do(officina, home) -> None:
    command = officina(home, "worker")

    assert "OFFICINA_BROKER_URL" in command.until("no_broker")
    assert command.process.wait(20) == 1


@pytest.fixture
def live_sqlite(redis, redis_url: str, sqlite_url: str) -> dict[str, str]:
    """The environment of a worker on an empty Redis and a migrated database."""
    return {"OFFICINA_BROKER_URL": redis_url, "OFFICINA_DATABASE_URL": sqlite_url}
