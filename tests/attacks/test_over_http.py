"""What a hostile page, program or neighbour tries over HTTP (spec: skills 20 and 21): each gets nowhere.

What concerns single routes stands in tests/unit/api; this is about ways round a person's yes, and round whose it is.
"""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient

from orchestrator import outside
from orchestrator.settings import Settings
from registry.skills.registry import Pending
from tests.studio import API, ApiProcess, asked, bearer, key_of, session_of

MAIL = {"to": ["a@example.com"], "subject": "s", "body": "b"}
PLAN = [{"key": "t", "role": "writer", "instruction": "w"}]


def decision(settings: Settings, client: TestClient | httpx2.Client, headers: dict[str, str]) -> str:
    """An open decision about an e-mail."""
    body = {"title": "t", "brief": "b", "tasks": PLAN, "rehearse": True}
    made = client.post(f"{API}/projects", json=body, headers=headers).json()["id"]
    where = outside.place(settings, made, "local")
    return outside.ask(settings, where, "call-1", Pending("email.send", MAIL, "d" * 64, "world", "it acts outside"))


@pytest.fixture
def open_to_all(settings: Settings) -> Iterator[TestClient]:
    with asked(settings) as client:
        yield client


@pytest.mark.parametrize(
    "foreign",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"host": "evil.example"},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
    ],
)
def test_no_foreign_page_says_yes_with_a_persons_session(
    settings: Settings, open_to_all: TestClient, foreign: dict[str, str]
) -> None:
    person = session_of(settings)
    signal = decision(settings, open_to_all, person)
    yes = json.dumps({"option": "Do it"})

    plain = {"content-type": "application/json"}
    refused = open_to_all.post(f"{API}/signals/{signal}/answer", content=yes, headers=person | plain | foreign)

    assert refused.status_code in (403, 415)
    assert open_to_all.get(f"{API}/signals/{signal}", headers=person).json()["status"] == "open"


@pytest.mark.parametrize("name", ["email.send", "http.request", "http.json", "telegram.send", "code.execute"])
def test_a_key_cannot_make_a_world_call(settings: Settings, open_to_all: TestClient, name: str) -> None:
    """It is an agent's call: without a project nobody can be asked, and nothing runs."""
    answer = open_to_all.post(
        f"{API}/skills/invoke", json={"name": name, "input": {}}, headers=bearer(key_of(settings))
    )

    assert not answer.json().get("ok")


@pytest.mark.parametrize(
    "extra",
    [{"approved": True}, {"authority": {"digest": None}}, {"asAgent": False}, {"person": True}, {"mode": "bypass"}],
)
def test_no_field_of_a_body_makes_a_program_a_person(
    settings: Settings, open_to_all: TestClient, extra: dict[str, Any]
) -> None:
    call = {"name": "math.evaluate", "input": {"expression": "1"}}
    headers = bearer(key_of(settings))

    outer = open_to_all.post(f"{API}/skills/invoke", json=call | extra, headers=headers)
    inner = open_to_all.post(
        f"{API}/skills/invoke", json=call | {"input": {"expression": "1"} | extra}, headers=headers
    )

    assert (outer.status_code, outer.json()["code"]) == (400, "invalid_request")
    assert inner.json()["code"] == "invalid_input"


@pytest.mark.parametrize("column", ["ownerId", "beingId", "isPublic"])
def test_nobody_writes_whose_a_row_is(settings: Settings, open_to_all: TestClient, column: str) -> None:
    headers = bearer(key_of(settings))
    step = {"key": "a", "title": "t", "role": "writer", "instruction": "w"}
    value: Any = True if column == "isPublic" else "bob"
    bodies: dict[str, dict[str, Any]] = {
        "agents": {"name": "A", "instructions": "w"},
        "generators": {"name": "G", "steps": [step]},
        "schedules": {"title": "S", "everyMinutes": 5, "action": {"kind": "prompt", "text": "w"}},
        "projects": {"title": "t", "brief": "b", "tasks": PLAN, "rehearse": True},
    }

    for where, body in bodies.items():
        refused = open_to_all.post(f"{API}/{where}", json=body | {column: value}, headers=headers)
        assert refused.status_code == 400, where
        assert open_to_all.get(f"{API}/{where}", headers=headers).json()["items"] == [], where


def test_a_project_cannot_allow_itself_the_world(settings: Settings, open_to_all: TestClient) -> None:
    body = {"title": "t", "brief": "b", "tasks": PLAN, "rehearse": True, "permissions": {"world": "allow"}}

    refused = open_to_all.post(f"{API}/projects", json=body, headers=bearer(key_of(settings)))

    assert (refused.status_code, refused.json()["details"][0]["path"]) == (400, "permissions")


@pytest.mark.slow
def test_of_two_who_answer_at_once_over_http_one_wins(settings: Settings, tmp_path: Path) -> None:
    server = ApiProcess(settings, tmp_path / "api.log").start()
    person = session_of(settings)
    try:
        with httpx2.Client(base_url=server.url, headers=person, timeout=30) as client:
            for _ in range(10):
                signal = decision(settings, client, {})
                gate, codes = threading.Barrier(4), list[int]()

                def say(
                    option: str, gate: threading.Barrier = gate, signal: str = signal, codes: list[int] = codes
                ) -> None:
                    gate.wait(20)
                    codes.append(client.post(f"{API}/signals/{signal}/answer", json={"option": option}).status_code)

                threads = [threading.Thread(target=say, args=(option,)) for option in ("Do it", "No") * 2]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                assert sorted(codes) == [200, 409, 409, 409]
    finally:
        server.close()
