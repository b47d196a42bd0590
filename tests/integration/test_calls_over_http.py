"""Calls of skills over HTTP that a worker makes: a row, a wake-up, an answer that waits, and nothing made twice."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from orchestrator.settings import Settings
from tests.plugins import written
from tests.studio import API, asked, bearer, key_of, session_of
from tests.support import eventually
from tests.workers import WorkerProcess

Start = Callable[..., WorkerProcess]
JSON = {"accept": "application/json"}
PYTHON = {"name": "code.execute", "input": {"code": "print(6 * 7)"}}


@pytest.fixture
def live(tmp_path: Path, sqlite_url: str, redis: Any, redis_url: str) -> Settings:
    return Settings(home=tmp_path / "home", broker_url=redis_url, _env_file=None)  # type: ignore[call-arg]


@pytest.fixture
def studio(live: Settings) -> Iterator[TestClient]:
    with asked(live) as client:
        yield client


def write(path: str, **more: Any) -> dict[str, Any]:
    return {"name": "files.write", "input": {"path": path, "content": "hello"}} | more


def project(studio: TestClient, headers: dict[str, str]) -> str:
    plan = [{"key": "t", "role": "writer", "instruction": "w"}]
    body = {"title": "t", "brief": "b", "tasks": plan, "planOnly": True, "rehearse": True}
    return str(studio.post(f"{API}/projects", json=body, headers=headers).json()["id"])


def test_a_worker_makes_what_the_api_cannot(studio: TestClient, live: Settings, worker_process: Start) -> None:
    from orchestrator import plugins

    plugins.install(live, written(live.home / "source"), [], taken=frozenset())
    worker_process(live, PLUGINS__RUN="true").ready()
    person, key = session_of(live), bearer(key_of(live))
    where = project(studio, key)

    def call(body: dict[str, Any], who: dict[str, str]) -> dict[str, Any]:
        answer = studio.post(f"{API}/skills/invoke", json=body, headers=who)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    # Both owners' scratch folders are their own, and a project's call works in its folder and stands in its trace.
    mine, hers = call(write("a.txt"), key), call(write("a.txt"), bearer(key_of(live, "ann")))
    assert (mine["output"]["created"], hers["output"]["created"]) == (True, True)
    assert call(write("notes/b.txt", projectId=where), key)["ok"]
    assert (live.workspaces / where / "notes/b.txt").read_text() == "hello"
    files = studio.get(f"{API}/projects/{where}/files", headers=key).json()["items"]
    assert [one["path"] for one in files] == ["notes/b.txt"]
    assert call({"name": "files.read", "input": {"path": "../b.txt"}}, key)["code"] == "path_escape"

    # The world waits for a person: a key is refused, or asks for its project; a session is the person's own act.
    refused, asking = call(PYTHON, key), call(PYTHON | {"projectId": where}, key)
    assert (refused["ok"], refused["code"]) == (False, "approval_required")
    assert asking["code"] == "approval_required"
    assert studio.get(f"{API}/signals/{asking['signalId']}", headers=key).json()["kind"] == "decision"
    ran = call(PYTHON, person)
    assert (ran["ok"], ran.get("output", {}).get("stdout")) == (True, "42\n"), ran

    # A plugin's skill is one like any other.
    assert call({"name": "hello.greet", "input": {"name": "Ada"}}, person)["output"] == {"words": "Hello Ada"}
    assert call({"name": "hello.greet", "input": {"nome": "Ada"}}, person)["code"] == "invalid_input"
    nobodys = studio.post(f"{API}/skills/invoke", json={"name": "hello.greet"}, headers=bearer(key_of(live, "ann")))
    assert (nobodys.status_code, nobodys.json()["code"]) == (404, "unknown_skill")
    lines = studio.get(f"{API}/projects/{where}/events", headers=key | JSON).json()["items"]
    kinds = [line["kind"] for line in lines if line["kind"] in ("tool.call", "file.written", "tool.result")]
    assert kinds == ["tool.call", "file.written", "tool.result", "tool.call", "tool.result"]


def test_who_does_not_wait_looks_again(studio: TestClient, live: Settings, worker_process: Start) -> None:
    key = bearer(key_of(live))

    later = studio.post(f"{API}/skills/invoke", json=write("a.txt"), headers=key | {"prefer": "respond-async"})
    place = later.headers["location"]

    assert (later.status_code, later.json()["status"], later.json()["result"]) == (202, "queued", None)
    assert studio.get(place, headers=bearer(key_of(live, "ann"))).status_code == 404
    waited = studio.post(f"{API}/skills/invoke", json=write("b.txt"), headers=key | {"prefer": "wait=1"})
    assert waited.status_code == 202
    worker_process(live).ready()
    done = eventually(lambda: one if (one := studio.get(place, headers=key).json())["status"] == "done" else None, 30)
    assert done["result"]["output"]["path"] == "a.txt"


def test_only_so_many_wait_and_without_a_broker_none(
    live: Settings, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = live.model_copy(update={"api": live.api.model_copy(update={"calls": 1})})
    with asked(few, bearer(key_of(few)) | {"prefer": "respond-async"}) as studio:
        codes = [studio.post(f"{API}/skills/invoke", json=write("a.txt")).status_code for _ in range(2)]
    with asked(settings, bearer(key_of(settings))) as alone:
        nobody = alone.post(f"{API}/skills/invoke", json=write("a.txt"))

    assert codes == [202, 429]
    assert (nobody.status_code, nobody.json()["code"]) == (503, "no_broker")


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_call_whose_worker_dies_in_the_middle_is_unknown_and_not_made_again(
    studio: TestClient, live: Settings, worker_process: Start
) -> None:
    """(One that may be repeated goes on elsewhere: tests/contract/store/test_requests.py.)"""
    short = {"LIMITS__LEASE_S": "2", "LIMITS__RENEW_S": "0.5"}
    person = session_of(live) | {"prefer": "respond-async"}
    doomed = worker_process(live, CRASHPOINTS="begun=1", **short).ready()
    place = studio.post(f"{API}/skills/invoke", json=PYTHON, headers=person).headers["location"]
    eventually(lambda: not doomed.process.running, 60)

    worker_process(live, **short)
    done = eventually(lambda: one if (one := studio.get(place, headers=person).json())["result"] else None, 120)

    assert (done["result"]["ok"], done["result"]["code"]) == (False, "unknown")
