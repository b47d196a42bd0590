"""The embedded stack: found by others, joined by a second one, and gone when its owner is, however that ends."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from celery import Celery

from orchestrator.local import EmbeddedStack
from orchestrator.settings import Settings
from orchestrator.stack.redis_server import answers
from registry.errors import Refused
from tests.stack_owner import WORKERS
from tests.support import alive, eventually


class Owner:
    """A process that owns a stack with two workers of this kind."""

    def __init__(self, home: Path, workers: str) -> None:
        self.home = home
        command = [sys.executable, "-m", "tests.stack_owner", str(home), workers]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def said(self, word: str) -> str:
        """Reads on until a line holds this word."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if word in line:
                return line
        raise AssertionError(f"it ended and never said {word!r}")

    @property
    def pids(self) -> set[int]:
        """Every process of its stack, its workers' children included."""
        return {child.pid for child in psutil.Process(self.process.pid).children(recursive=True)}

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(20)


@pytest.fixture
def owner() -> Iterator[Callable[..., Owner]]:
    started: list[Owner] = []

    def start(home: Path, workers: str = "plain") -> Owner:
        started.append(Owner(home, workers))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
        assert one.process.stdout is not None
        one.process.stdout.close()


@pytest.fixture
def home(short_folder: Path, request: pytest.FixtureRequest) -> Path:
    return short_folder / f"home-{abs(hash(request.node.nodeid)) % 10**6}"


def settings_of(home: Path, **changed: Any) -> Settings:
    return Settings(home=home, _env_file=None, **changed)


def test_other_processes_find_a_running_stack_through_the_settings(owner, home) -> None:
    owner(home).said("up")

    settings = settings_of(home)

    assert settings.broker is not None
    assert answers(settings.broker)
    assert (home / "run" / "stack.json").stat().st_mode & 0o777 == 0o600
    assert (home / "officina.db").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stack_that_is_asked_to_end_leaves_nothing_running(owner, home, number) -> None:
    stack = owner(home, "parent")
    stack.said("up")
    pids = eventually(lambda: len(stack.pids) == 5 and stack.pids)  # redis, two workers, their children

    assert stack.end(number) == 0

    assert not any(alive(pid) for pid in pids)
    assert not (home / "run" / "stack.json").exists()
    assert settings_of(home).broker is None


def test_a_second_signal_ends_at_once_what_takes_its_time(owner, home) -> None:
    stack = owner(home, "deaf")
    stack.said("up")
    pids = stack.pids
    stack.process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        stack.process.wait(1)

    assert stack.end(signal.SIGINT) == 0

    assert not any(alive(pid) for pid in pids)


def test_a_stack_whose_owner_is_killed_leaves_nothing_running(owner, home) -> None:
    stack = owner(home)
    stack.said("up")
    pids = eventually(lambda: len(stack.pids) == 3 and stack.pids)  # redis and two workers

    stack.end(signal.SIGKILL)

    eventually(lambda: not any(alive(pid) for pid in pids))


def test_a_new_stack_starts_where_one_was_killed(owner, home) -> None:
    first = owner(home)
    first.said("up")
    first.end(signal.SIGKILL)

    owner(home).said("up")

    assert answers(str(settings_of(home).broker))


def test_a_second_stack_joins_and_later_takes_the_redis_over(owner, home) -> None:
    first = owner(home)
    first.said("up")
    broker = str(settings_of(home).broker)
    second = owner(home)
    second.said("joining")
    second.said("up")
    assert settings_of(home).stack["pid"] == first.process.pid

    assert first.end(signal.SIGTERM) == 0
    second.said("goes on here")

    eventually(lambda: answers(broker))
    eventually(lambda: settings_of(home).stack.get("pid") == second.process.pid)
    assert settings_of(home).broker == broker


def test_a_redis_that_dies_comes_back_at_its_address(owner, home) -> None:
    stack = owner(home)
    stack.said("up")
    broker = str(settings_of(home).broker)

    os.kill(settings_of(home).stack["pids"]["redis"], signal.SIGKILL)

    stack.said("redis ended (killed by SIGKILL)")
    eventually(lambda: answers(broker))


def a_stack(home: Path, said: list[str], **changed: Any) -> EmbeddedStack:
    settings = settings_of(home, **changed)
    return EmbeddedStack(settings, workers=0, worker_command=lambda _: WORKERS["plain"], flower=True, say=said.append)


def get(url: str, method: str = "GET", **headers: str) -> tuple[int, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, method=method, headers=named, data=b"" if method == "POST" else None)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@pytest.fixture(scope="module")
def flower_url(short_folder: Path) -> Iterator[str]:
    """The Flower of a stack without workers."""
    home = short_folder / "flower"
    with a_stack(home, []) as stack:
        assert settings_of(home).stack["flowerUrl"] == stack.flower_url
        yield str(stack.flower_url)


def test_flower_tells_programs_of_this_machine_what_it_sees(flower_url) -> None:
    assert get(f"{flower_url}/api/workers") == (200, b"{}")
    assert get(f"{flower_url}/api/tasks") == (200, b"{}")
    assert get(f"{flower_url}/")[0] == 200


@pytest.mark.parametrize(
    "path", ["worker/shutdown/x", "task/async-apply/officina.run", "task/revoke/x", "worker/pool/grow/x"]
)
def test_flower_changes_nothing(flower_url, path) -> None:
    assert get(f"{flower_url}/api/{path}", "POST")[0] == 403


def test_flower_answers_no_page_and_no_name_from_elsewhere(flower_url) -> None:
    url = f"{flower_url}/api/tasks"

    assert get(url, Origin="http://evil.example")[0] == 403
    assert get(url, Origin="null")[0] == 403
    assert get(url, Host="evil.example:80")[0] == 403
    assert get(url, Origin=flower_url)[0] == 200


def test_flower_listens_on_loopback_only_and_comes_back_on_its_port(home) -> None:
    said: list[str] = []
    with a_stack(home, said) as stack:
        get(f"{stack.flower_url}/healthcheck")
        pid = settings_of(home).stack["pids"]["flower"]
        listening = [link for link in psutil.Process(pid).net_connections() if link.status == "LISTEN"]
        assert {link.laddr.ip for link in listening} == {"127.0.0.1"}

        os.kill(pid, signal.SIGKILL)

        eventually(lambda: said)
        assert get(f"{stack.flower_url}/healthcheck")[0] == 200


def test_flower_still_knows_after_its_restart_what_it_has_seen(home) -> None:
    with a_stack(home, []) as stack:
        get(f"{stack.flower_url}/healthcheck")
        with Celery(broker=stack.broker_url, set_as_current=False) as app, app.connection_for_write() as connection:
            told = app.events.Dispatcher(connection, hostname="worker-1@here")
            seen = {"uuid": "seen", "name": "officina.run", "args": "('a run',)", "kwargs": "{}", "retries": 0}
            eventually(
                lambda: told.send("task-received", **seen) or b"seen" in get(f"{stack.flower_url}/api/tasks")[1], 20
            )
        first = settings_of(home).stack["pids"]["flower"]

        os.kill(first, signal.SIGTERM)

        eventually(lambda: settings_of(home).stack["pids"].get("flower") not in (first, None), 20)
        assert b"a run" in get(f"{stack.flower_url}/api/tasks")[1]


def test_a_broker_that_is_set_is_used_and_no_redis_started(home, redis_url) -> None:
    with a_stack(home, [], broker_url=redis_url) as stack:
        assert stack.broker_url == redis_url
        assert "redis" not in settings_of(home).stack["pids"]
        assert "brokerUrl" not in json.loads((home / "run" / "stack.json").read_text())


def test_a_database_that_cannot_be_used_ends_the_start_with_the_reason(home) -> None:
    children = set(psutil.Process().children())
    with (
        pytest.raises(Refused, match="database cannot be used"),
        a_stack(home, [], database_url="sqlite:////proc/no/db"),
    ):
        pass
    assert set(psutil.Process().children()) == children
