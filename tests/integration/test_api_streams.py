"""Traces over HTTP, with the API as a process: soon, whole, each line once, whatever is killed."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from orchestrator import events as live
from orchestrator.client import Client
from orchestrator.deltas import Delta
from orchestrator.live import Live
from orchestrator.records import Event
from orchestrator.settings import Settings
from orchestrator.store import events, projects
from orchestrator.store.database import get_database
from tests.projects import start
from tests.studio import API, ApiProcess, bearer, key_of
from tests.support import eventually


@pytest.fixture
def api(live_settings: Settings, tmp_path: Path) -> Iterator[ApiProcess]:
    server = ApiProcess(live_settings, tmp_path / "api.log")
    server.start()
    yield server
    server.close()


def a_project(settings: Settings, folder: Path) -> str:
    made = start(folder, settings, [{"key": "t", "role": "writer", "instruction": "w"}], {"tasks": {}})
    return made.project_id


def grow(settings: Settings, project_id: str, count: int = 1, *, tell: bool = True) -> int:
    """Adds lines to a trace, as a checkpoint does; gives the last number."""
    lines = [Event("message", {"role": "assistant", "text": f"line {n}"}) for n in range(count)]
    last = get_database(settings).write(lambda c: events.append(c, project_id, lines))
    if tell:
        live.publish(settings, project_id, last)
    return last


def end(settings: Settings, project_id: str) -> int:
    database = get_database(settings)
    database.write(lambda c: projects.cancel(c, project_id, "over"))
    with database.read() as connection:
        return events.last(connection, project_id)


@pytest.mark.slow
def test_an_event_reaches_two_hundred_clients_within_a_moment_of_its_commit(
    live_settings: Settings, api: ApiProcess, tmp_path: Path
) -> None:
    project_id = a_project(live_settings, tmp_path)
    host, port = api.url.removeprefix("http://").split(":")
    request = f"GET {API}/projects/{project_id}/events HTTP/1.1\r\nHost: {host}\r\n"
    request += f"Authorization: Bearer {key_of(live_settings)}\r\n\r\n"

    async def one(mine: dict[int, float]) -> None:
        # Nothing but sockets: two hundred HTTP clients in one process would be measured themselves.
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request.encode())
        while line := await reader.readline():
            if line.startswith(b"id: "):
                mine[int(line[4:])] = time.monotonic()

    async def everybody() -> list[float]:
        seen: list[dict[int, float]] = [{} for _ in range(200)]
        tasks = [asyncio.create_task(one(mine)) for mine in seen]
        while not all(seen):
            await asyncio.sleep(0.05)
            assert not [task for task in tasks if task.done()]
        slowest = []
        for _ in range(10):
            last = await asyncio.to_thread(grow, live_settings, project_id)
            committed = time.monotonic()
            while not all(last in mine for mine in seen):
                await asyncio.sleep(0.005)
            slowest.append(max(mine[last] for mine in seen) - committed)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return slowest

    slowest = sorted(asyncio.run(everybody()))

    print("slowest of 200 clients, ms:", [round(s * 1000) for s in slowest])
    assert slowest[len(slowest) // 2] < 0.1  # the machine may be busy with other things now and then


@pytest.mark.slow
def test_clients_of_a_killed_api_end_with_every_event_once(
    live_settings: Settings, api: ApiProcess, tmp_path: Path
) -> None:
    project_id = a_project(live_settings, tmp_path)
    key, told = key_of(live_settings), [list[int]() for _ in range(50)]

    def follow(mine: list[int]) -> None:
        with Client(api.url, key=key) as client:
            for event in client.events(project_id, follow=True):
                mine.append(event["seq"])

    threads = [threading.Thread(target=follow, args=(mine,), daemon=True) for mine in told]
    for thread in threads:
        thread.start()
    eventually(lambda: all(told), 30)
    for _ in range(3):
        grow(live_settings, project_id, 40)
        api.kill()
        grow(live_settings, project_id, 40)
        api.start()
        grow(live_settings, project_id, 40)
    last = end(live_settings, project_id)

    for thread in threads:
        thread.join(60)
    assert {tuple(mine) for mine in told} == {tuple(range(1, last + 1))}


def test_who_asks_hears_what_is_said_between_the_lines_and_the_lines_stay_as_they_are(
    live_settings: Settings, api: ApiProcess, tmp_path: Path
) -> None:
    project_id, key = a_project(live_settings, tmp_path), key_of(live_settings)
    speaker, words = Live(live_settings), ["Once ", "upon ", "a time"]
    heard, lines, plain = list[Delta](), list[int](), list[Any]()

    def follow(seen: list[Any], hear: Any) -> None:
        with Client(api.url, key=key) as client:
            seen.extend(event["seq"] for event in client.events(project_id, follow=True, hear=hear))

    threads = [threading.Thread(target=follow, args=one) for one in ((lines, heard.append), (plain, None))]
    for thread in threads:
        thread.start()
    eventually(lambda: speaker.listened(project_id), 20)
    said = ""
    for word in words:
        assert speaker.say(project_id, Delta("message.delta", "run-1", len(said), word, "task-1", "ada"))
        said += word
    eventually(lambda: len(heard) == len(words), 20)
    grow(live_settings, project_id)
    last = end(live_settings, project_id)
    for thread in threads:
        thread.join(30)

    assert heard[0] == Delta("message.delta", "run-1", 0, "Once ", "task-1", "ada")
    assert "".join(one.text for one in heard) == said
    assert lines == plain == list(range(1, last + 1))
    eventually(lambda: not Live(live_settings).listened(project_id), 10)  # nobody is left: nobody need speak


def test_a_stream_goes_on_without_redis(sqlite_url: str, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", database_url=sqlite_url, _env_file=None)  # type: ignore[call-arg]
    project_id = a_project(settings, tmp_path)
    server = ApiProcess(settings, tmp_path / "api.log")
    try:
        server.start()
        seen: list[int] = []

        def follow() -> None:
            with Client(server.url, key=key_of(settings)) as client:
                seen.extend(event["seq"] for event in client.events(project_id, follow=True))

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        grow(settings, project_id, tell=False)
        last = end(settings, project_id)
        thread.join(30)
    finally:
        server.close()

    assert seen == list(range(1, last + 1))


def test_a_line_may_hold_what_other_texts_end_lines_with(
    live_settings: Settings, api: ApiProcess, tmp_path: Path
) -> None:
    project_id, text = a_project(live_settings, tmp_path), "one\u2028two\u2029three\u0085four"
    said = Event("message", {"role": "assistant", "text": text})
    get_database(live_settings).write(lambda c: events.append(c, project_id, [said]))
    end(live_settings, project_id)

    with Client(api.url, key=key_of(live_settings)) as client:
        followed = [event["data"].get("text") for event in client.events(project_id, follow=True)]

    assert text in followed


@pytest.mark.long
def test_whoever_follows_a_project_that_says_nothing_for_long_outlives_a_restart(
    live_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead, looks = [0.0], [0]

    def monotonic() -> float:
        looks[0] += 1
        return time.monotonic() + ahead[0]

    monkeypatch.setattr("orchestrator.client.time", SimpleNamespace(monotonic=monotonic, sleep=time.sleep))
    server, seen = ApiProcess(live_settings, tmp_path / "api.log", API__HEARTBEAT_S="0.2"), list[int]()
    try:
        server.start()
        project_id = a_project(live_settings, tmp_path)
        have = grow(live_settings, project_id)

        def follow() -> None:
            with Client(server.url, key=key_of(live_settings)) as client:
                seen.extend(event["seq"] for event in client.events(project_id, after=have, follow=True))

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        eventually(lambda: looks[0] > 2, 20)  # it hears that the connection lives
        ahead[0], looks[0] = 3_600.0, 0
        eventually(lambda: looks[0] > 2, 20)
        server.kill()
        server.start()
        last = end(live_settings, project_id)
        thread.join(30)
    finally:
        server.close()

    assert seen == list(range(have + 1, last + 1))


@pytest.mark.long
def test_whoever_is_asked_to_wait_waits_and_goes_on(live_settings: Settings, tmp_path: Path) -> None:
    project_id, server = (
        a_project(live_settings, tmp_path),
        ApiProcess(live_settings, tmp_path / "api.log", RATES__API="1/second"),
    )
    try:
        server.start()
        begun = time.monotonic()
        with Client(server.url, key=key_of(live_settings)) as client:
            assert client.project(project_id)["id"] == project_id
            client.cancel(project_id)  # refused at the door, so that nothing is done twice
            kinds = [event["kind"] for event in client.events(project_id, follow=True)]
    finally:
        server.close()

    assert kinds.count("project.status") >= 1
    assert time.monotonic() - begun > 1


def test_an_api_that_is_asked_to_end_does_not_wait_for_its_streams(
    live_settings: Settings, api: ApiProcess, tmp_path: Path
) -> None:
    project_id = a_project(live_settings, tmp_path)
    headers = bearer(key_of(live_settings))
    with httpx2.stream("GET", f"{api.url}{API}/projects/{project_id}/events", headers=headers, timeout=30) as answer:
        lines = answer.iter_lines()
        assert next(lines).startswith(":")
        begun = time.monotonic()
        api.ask_to_end()
        rest = list(lines)

    assert any(line.startswith("id: ") for line in rest)
    eventually(lambda: not api.running, 10)
    assert time.monotonic() - begun < 4


@pytest.mark.long
def test_a_client_that_reads_nothing_costs_no_memory_and_is_let_go(live_settings: Settings, tmp_path: Path) -> None:
    import socket

    server = ApiProcess(live_settings, tmp_path / "api.log", API__SLOW_S="1")
    try:
        server.start()
        project_id = a_project(live_settings, tmp_path)
        host, port = server.url.removeprefix("http://").split(":")
        request = f"GET {API}/projects/{project_id}/events HTTP/1.1\r\nHost: {host}\r\n"
        request += f"Authorization: Bearer {key_of(live_settings)}\r\n\r\n"
        with socket.create_connection((host, int(port))) as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            deaf.sendall(request.encode())
            big: list[Any] = [Event("message", {"text": "x" * 30_000}) for _ in range(300)]
            get_database(live_settings).write(lambda c: events.append(c, project_id, big))
            log = tmp_path / "api.log"
            eventually(lambda: "left unread" in log.read_text(encoding="utf-8"), 20)
        answer = httpx2.get(f"{server.url}{API}/projects", headers=bearer(key_of(live_settings)))
        assert answer.status_code == 200
    finally:
        server.close()
