"""What no request gets past: who it is from, what page sent it, what it brings (spec: skills 20)."""

import asyncio
import json
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from orchestrator import keys
from orchestrator.settings import Settings
from orchestrator.store.database import get_database, now_ms
from orchestrator.store.kept import api_keys
from registry.errors import Refused
from tests.studio import API, asked, bearer, key_of, session_of


@pytest.fixture
def anyone(settings: Settings) -> Iterator[TestClient]:
    with asked(settings) as client:
        yield client


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer ofk_" + "a" * 43},
        {"authorization": "Bearer "},
        {"authorization": "Basic b2Zr"},
        {"cookie": "officina_session=ofs_" + "a" * 43},
        {"authorization": "Bearer " + "x" * 5_000},
    ],
)
def test_nobody_comes_in_without_a_key(anyone: TestClient, headers: dict[str, str]) -> None:
    refused = anyone.get(f"{API}/projects", headers=headers)

    assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
    assert refused.headers["www-authenticate"] == "Bearer"


def test_a_key_works_until_it_is_revoked_and_is_stored_nowhere(settings: Settings, anyone: TestClient) -> None:
    made, text = keys.add(settings, "ci")

    assert anyone.get(f"{API}/projects", headers=bearer(text)).status_code == 200
    assert keys.listed(settings, "local")[0]["lastUsedAt"] is not None
    keys.revoke(settings, "local", made["id"])
    assert anyone.get(f"{API}/projects", headers=bearer(text)).status_code == 401
    stored = (settings.home / "officina.db").read_bytes() + (settings.home / "officina.db-wal").read_bytes()
    assert text.encode() not in stored
    assert text[4:].encode() not in stored


def test_a_key_with_an_end_works_until_then_and_is_told_so_afterwards(settings: Settings, anyone: TestClient) -> None:
    made, text = keys.add(settings, "ci", expires_at=in_an_hour())

    assert anyone.get(f"{API}/projects", headers=bearer(text)).status_code == 200
    let_expire(settings, made["id"])
    refused = anyone.get(f"{API}/projects", headers=bearer(text))
    assert (refused.status_code, refused.json()["code"]) == (401, "key_expired")
    assert refused.headers["www-authenticate"] == "Bearer"
    assert keys.listed(settings, "local")[0]["expiresAt"] < time.time() * 1000


def test_an_expired_key_in_a_cookie_leads_to_the_sign_in(settings: Settings, anyone: TestClient) -> None:
    made, text = keys.add(settings, "ci", expires_at=in_an_hour())
    for _ in range(2):  # in force, then expired: no session either way
        shown = anyone.get("/login", headers={"cookie": f"officina_session={text}"}, follow_redirects=False)
        assert shown.status_code == 200
        let_expire(settings, made["id"])


def test_an_expired_key_takes_no_place(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "MAX_KEYS", 1)
    made, _ = keys.add(settings, "first", expires_at=in_an_hour())
    with pytest.raises(Refused, match="revoke one first"):
        keys.add(settings, "second")
    let_expire(settings, made["id"])
    keys.add(settings, "second")


@pytest.mark.parametrize("expires", [0, 1_000, 253_402_300_800_000, -1, "tomorrow", 1.5])
def test_a_key_expires_at_a_time_to_come(settings: Settings, anyone: TestClient, expires: Any) -> None:
    body = {"name": "ci", "expiresAt": expires}
    assert anyone.post(f"{API}/keys", json=body, headers=session_of(settings)).status_code == 400
    body["expiresAt"] = in_an_hour()
    made = anyone.post(f"{API}/keys", json=body, headers=session_of(settings)).json()
    assert made["expiresAt"] == body["expiresAt"]


def in_an_hour() -> int:
    return round(time.time() * 1000) + 3_600_000


def let_expire(settings: Settings, key_id: str) -> None:
    past = update(api_keys).where(api_keys.c.id == key_id).values(expires_at=now_ms() - 1)
    get_database(settings).write(lambda c: c.execute(past))


def test_a_session_is_no_key_and_a_key_no_session(settings: Settings, anyone: TestClient) -> None:
    token = session_of(settings)["cookie"].partition("=")[2]

    assert anyone.get(f"{API}/projects", headers=bearer(token)).status_code == 401
    key = {"cookie": f"officina_session={key_of(settings)}"}
    assert anyone.get(f"{API}/projects", headers=key).status_code == 401


def test_a_one_time_code_works_once(settings: Settings, anyone: TestClient) -> None:
    code = {"code": keys.make_code(settings)}

    first, second = anyone.post(f"{API}/session", json=code), anyone.post(f"{API}/session", json=code)

    assert (first.status_code, second.status_code) == (201, 404)
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert anyone.get(f"{API}/session").json()["person"] is True
    assert anyone.delete(f"{API}/session").status_code == 204
    anyone.cookies.set("officina_session", first.json()["token"])
    assert anyone.get(f"{API}/session").status_code == 401


@pytest.mark.parametrize(
    ("scope", "method", "path"),
    [
        ("write", "POST", "projects/x/cancel"),
        ("answer", "POST", "signals/x/dismiss"),
        ("invoke", "POST", "skills/invoke"),
        ("connections", "DELETE", "connections/x"),
        ("read", "GET", "projects"),
    ],
)
def test_a_key_does_what_its_scopes_say(
    settings: Settings, anyone: TestClient, scope: str, method: str, path: str
) -> None:
    rest = [one for one in keys.SCOPES if one != scope]
    body: Any = {"name": "math.evaluate"} if scope == "invoke" else None

    without = anyone.request(method, f"{API}/{path}", json=body, headers=bearer(key_of(settings, scopes=rest)))
    having = anyone.request(method, f"{API}/{path}", json=body, headers=bearer(key_of(settings, scopes=[scope])))

    assert (without.status_code, without.json()["code"]) == (403, "scope")
    assert having.status_code != 403


def test_keys_are_made_and_seen_by_people_only(settings: Settings, anyone: TestClient) -> None:
    key = bearer(key_of(settings))

    assert anyone.post(f"{API}/keys", json={"name": "more"}, headers=key).json()["code"] == "not_a_person"
    assert anyone.get(f"{API}/keys", headers=key).status_code == 403
    made = anyone.post(f"{API}/keys", json={"name": "more"}, headers=session_of(settings))
    assert made.status_code == 201
    assert anyone.get(f"{API}/projects", headers=bearer(made.json()["key"])).status_code == 200


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "evil.example"}, "foreign_host"),
        ({"host": "127.0.0.1.evil.example"}, "foreign_host"),
        ({"host": ""}, "foreign_host"),
        ({"host": "a@b:c"}, "foreign_host"),
        ({"origin": "https://evil.example"}, "foreign_origin"),
        ({"origin": "http://localhost:4001"}, "foreign_origin"),
        ({"origin": "null"}, "foreign_origin"),
        ({"origin": "http://["}, "foreign_origin"),
        ({"sec-fetch-site": "cross-site"}, "foreign_origin"),
        ({"sec-fetch-site": "same-site"}, "foreign_origin"),
    ],
)
def test_a_page_of_somebody_else_moves_nothing(settings: Settings, headers: dict[str, str], code: str) -> None:
    with asked(settings, session_of(settings)) as person:
        refused = person.post(f"{API}/projects", json={"title": "t", "brief": "b"}, headers=headers)

        assert (refused.status_code, refused.json()["code"]) == (403, code)
        assert person.get(f"{API}/projects").json()["items"] == []


def test_our_own_page_may(settings: Settings) -> None:
    with asked(settings, session_of(settings)) as person:
        ours = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
        made = person.post(f"{API}/projects", json={"title": "t", "brief": "b", "rehearse": True}, headers=ours)

        assert made.status_code == 201


def test_no_other_origin_is_let_read(studio: TestClient) -> None:
    asking = {"origin": "https://evil.example", "access-control-request-method": "POST"}

    assert studio.options(f"{API}/projects", headers=asking).status_code == 405
    answer = studio.get(f"{API}/projects", headers={"origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", "application/jsonx"]
)
def test_a_form_is_no_request(studio: TestClient, kind: str) -> None:
    refused = studio.post(f"{API}/projects", content=b'{"title":"t","brief":"b"}', headers={"content-type": kind})

    assert (refused.status_code, refused.json()["code"]) == (415, "unsupported_type")


@pytest.mark.parametrize(
    "text",
    [
        '{"name": NaN}',
        '{"name": 1e999}',
        '{"name": "a", "name": "b"}',
        "[" * 200 + "]" * 200,
        "[" * 100_000,
        "1" * 5_000,
        '"\\ud800"',
        "{",
        "",
        "\ufeff{}",
        "[]",
        '"x"',
    ],
)
def test_what_is_no_plain_json_is_malformed(studio: TestClient, text: str) -> None:
    refused = studio.post(
        f"{API}/skills/invoke", content=text.encode("utf-8"), headers={"content-type": "application/json"}
    )

    assert refused.status_code == 400


def test_bytes_that_are_no_utf8_are_malformed(studio: TestClient) -> None:
    refused = studio.post(
        f"{API}/skills/invoke", content=b'{"name": "\xff"}', headers={"content-type": "application/json"}
    )

    assert refused.status_code == 400


@pytest.mark.parametrize("length", ["99999999999", "9" * 5_000, "-1", "abc"])
def test_a_body_that_says_it_is_too_large_is_not_read(studio: TestClient, length: str) -> None:
    headers = {"content-type": "application/json", "content-length": length}

    assert studio.post(f"{API}/skills/invoke", content=b"{}", headers=headers).status_code == 413


def test_a_body_that_turns_out_too_large_is_given_up(studio: TestClient, settings: Settings) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"name": "'
        for _ in range(3 * 1024):
            yield b"a" * 1024

    refused = studio.post(f"{API}/skills/invoke", content=pieces(), headers={"content-type": "application/json"})

    assert (refused.status_code, refused.json()["code"]) == (413, "too_large")


def test_a_body_that_never_ends_is_given_up() -> None:
    from orchestrator.api.gate import _Body

    async def never() -> Any:
        await asyncio.sleep(60)

    async def read() -> str:
        try:
            await _Body(never, 10, 0.05)()
        except Exception as error:
            return str(getattr(error, "code", error))
        return "read"

    assert asyncio.run(read()) == "timeout"


def test_every_answer_says_that_it_is_what_it_says(studio: TestClient) -> None:
    for path in ("/health", f"{API}/projects", f"{API}/nothing", "/openapi.json"):
        answer = studio.get(path)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_probe_needs_neither_key_nor_name(settings: Settings, anyone: TestClient) -> None:
    assert anyone.get("/health", headers={"host": "10.1.2.3"}).json()["status"] == "ok"


def test_a_fault_on_our_side_tells_nothing_but_where_to_look(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from orchestrator import views

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("hunter2")

    monkeypatch.setattr(views, "project_list", broken)
    with asked(settings, bearer(key_of(settings)), raise_server_exceptions=False) as client:
        failed = client.get(f"{API}/projects")

    assert failed.status_code == 500
    assert "hunter2" not in json.dumps(failed.json())
    assert failed.json()["id"] in caplog.text
    assert "hunter2" in caplog.text


def test_a_database_that_is_not_at_this_release_is_said_so(settings: Settings) -> None:
    with asked(settings, bearer(key_of(settings))) as client:
        get_database(settings).write(lambda c: api_keys.drop(c))
        failed = client.get(f"{API}/projects")

    assert (failed.status_code, failed.json()["code"]) == (503, "schema_outdated")


def test_a_stream_ends_when_the_key_it_was_asked_with_does(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with asked(settings, bearer(key_of(settings))) as client:
        project = client.post(f"{API}/projects", json={"title": "t", "brief": "b", "rehearse": True}).json()["id"]
        _, text = keys.add(settings, "soon", ["read"], expires_at=in_an_hour())
        # The rows say that it is in force; the stream believes that an hour has passed.
        monkeypatch.setattr("orchestrator.api.sse.time", SimpleNamespace(time=lambda: time.time() + 3_600))
        streamed = client.get(f"{API}/projects/{project}/events", headers=bearer(text))  # returns at its end only

    assert (streamed.status_code, streamed.headers["content-type"][:17]) == (200, "text/event-stream")
