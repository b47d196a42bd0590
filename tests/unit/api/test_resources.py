"""Agents, files, signals, schedules, generators, connections and skills over HTTP."""

import os
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import insert

from orchestrator import outside, timetable
from orchestrator.ports import schedules
from orchestrator.settings import Settings
from orchestrator.store.database import get_database, now_ms
from orchestrator.store.tables import signals
from registry.ids import new_id
from registry.skills.registry import Pending
from tests.studio import API, asked, bearer, key_of, session_of
from tests.unit.api.test_projects import project

ADA = {"name": "Ada", "role": "analyst", "instructions": "Count twice.", "skills": ["math.evaluate"]}


def test_of_two_who_edit_one_agent_the_second_is_told(studio: TestClient) -> None:
    made = studio.post(f"{API}/agents", json=ADA)
    where, etag = f"{API}/agents/{made.json()['id']}", made.headers["etag"]

    first = studio.patch(where, json={"role": "writer"}, headers={"if-match": etag})
    second = studio.patch(where, json={"role": "editor"}, headers={"if-match": etag})
    gone = studio.delete(where, headers={"if-match": etag})

    assert (made.status_code, first.status_code, second.status_code, gone.status_code) == (201, 200, 412, 412)
    shown = studio.get(where)
    assert (shown.json()["role"], shown.headers["etag"]) == ("writer", first.headers["etag"])
    assert studio.delete(where, headers={"if-match": shown.headers["etag"]}).status_code == 204
    assert studio.get(where).status_code == 404


def test_null_takes_a_field_away_and_new_words_replace_the_old(studio: TestClient) -> None:
    where = f"{API}/agents/{studio.post(f'{API}/agents', json=ADA).json()['id']}"

    changed = studio.patch(where, json={"role": None, "instructions": "Count once."}).json()

    assert "role" not in changed
    assert changed["prompts"]["main"]["instructions"] == "Count once."
    odd = studio.patch(where, json={"instructions": "Count.", "prompts": "x"})
    assert (odd.status_code, odd.json()["code"]) == (400, "agent_invalid")


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"skills": ["math.evaluate", "math.evalaute"]}, "skills[1]"),
        ({"ownerId": "bob"}, "ownerId"),
        ({"isPublic": True}, "isPublic"),
        ({"id": "mine"}, "id"),
        ({"permissions": {"world": "allow"}}, "permissions.world"),
        ({"hooks": [{"event": "Stop", "handler": {"command": ["rm", "-rf", "/"]}}]}, "hooks"),
    ],
)
def test_an_agent_that_is_not_good_is_not_saved(studio: TestClient, wrong: dict[str, Any], path: str) -> None:
    refused = studio.post(f"{API}/agents", json=ADA | wrong)

    assert (refused.status_code, refused.json()["code"]) == (400, "agent_invalid")
    assert path in [detail["path"] for detail in refused.json()["details"]]
    assert studio.get(f"{API}/agents").json()["items"] == []


def test_a_program_neither_adds_hooks_nor_takes_them_away(studio: TestClient, settings: Settings) -> None:
    hooks = [{"event": "PreToolUse", "handler": {"plugin": "house-rules"}}]
    with asked(settings, session_of(settings)) as person:
        made = person.post(f"{API}/agents", json=ADA | {"hooks": hooks}).json()
        where = f"{API}/agents/{made['id']}"
        for changed in ({"hooks": None}, {"hooks": []}, {"hooks": [*hooks, *hooks]}):
            refused = studio.patch(where, json=changed)
            assert (refused.status_code, refused.json()["details"][0]["code"]) == (400, "not_a_person")
        kept = studio.patch(where, json={"role": "writer", "hooks": made["hooks"]}).json()
        gone = person.patch(where, json={"hooks": None}).json()

    assert (kept["role"], kept["hooks"]) == ("writer", made["hooks"])
    assert "hooks" not in gone


def test_a_program_brings_no_hooks_along_with_a_project(studio: TestClient, settings: Settings) -> None:
    hooks = [{"event": "PreToolUse", "handler": {"http": "https://example.com/listen"}}]
    given = project() | {"agents": {"spy": {"instructions": "Work.", "hooks": hooks}}}

    refused = studio.post(f"{API}/projects", json=given)
    with asked(settings, session_of(settings)) as person:
        taken = person.post(f"{API}/projects", json=given)

    assert (refused.status_code, taken.status_code) == (400, 201), (refused.text, taken.text)
    assert [(one["path"], one["code"]) for one in refused.json()["details"]] == [("agents.spy.hooks", "not_a_person")]
    assert len(studio.get(f"{API}/projects").json()["items"]) == 1


def test_no_more_schedules_go_on_than_may_be_made(studio: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (schedules, timetable):
        monkeypatch.setattr(place, "MAX_ACTIVE", 1)
    body = {"title": "S", "everyMinutes": 5, "action": {"kind": "prompt", "text": "Look."}}
    where = f"{API}/schedules/{studio.post(f'{API}/schedules', json=body).json()['id']}"

    studio.patch(where, json={"status": "paused"})
    second = studio.post(f"{API}/schedules", json=body)
    refused = studio.patch(where, json={"status": "active"})

    assert (second.status_code, refused.status_code, refused.json()["code"]) == (201, 409, "quota")
    assert studio.get(where).json()["status"] == "paused"
    assert studio.delete(f"{API}/schedules/{second.json()['id']}").status_code == 204
    assert studio.patch(where, json={"status": "active"}).json()["status"] == "active"


def test_names_are_taken_once(studio: TestClient) -> None:
    studio.post(f"{API}/agents", json=ADA)

    assert studio.post(f"{API}/agents", json=ADA | {"name": " ADA "}).json()["code"] == "name_taken"


@pytest.fixture
def file(studio: TestClient, settings: Settings) -> tuple[str, Path]:
    """Where a file of a project answers, and the folder it lies in."""
    made = studio.post(f"{API}/projects", json=project()).json()
    folder = settings.workspaces / made["id"]
    (folder / "out.html").write_bytes(b"<script>0123456789")
    return f"{API}/projects/{made['id']}/files", folder


def test_a_file_is_never_shown_in_our_name(studio: TestClient, file: tuple[str, Path]) -> None:
    got = studio.get(f"{file[0]}/out.html")

    assert got.content == b"<script>0123456789"
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["content-disposition"].startswith("attachment;")
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["content-security-policy"].startswith("sandbox")


@pytest.mark.parametrize(
    ("wanted", "status", "content"),
    [
        ("bytes=0-3", 206, b"<scr"),
        ("bytes=8-", 206, b"0123456789"),
        ("bytes=-2", 206, b"89"),
        ("bytes=8-999", 206, b"0123456789"),
        ("bytes=0-", 206, b"<script>0123456789"),
        ("bytes=18-", 416, None),
        ("bytes=-0", 416, None),
        ("bytes=3-1", 200, b"<script>0123456789"),
        ("bytes=0-1,4-5", 200, b"<script>0123456789"),
        ("lines=1-2", 200, b"<script>0123456789"),
    ],
)
def test_a_range_is_the_part_that_was_asked_for(
    studio: TestClient, file: tuple[str, Path], wanted: str, status: int, content: bytes | None
) -> None:
    got = studio.get(f"{file[0]}/out.html", headers={"range": wanted})

    assert got.status_code == status
    if content is not None:
        assert got.content == content
        assert got.headers["content-length"] == str(len(content))
    if status == 206:
        first = 18 - len(content or b"") if not wanted.startswith("bytes=0") else 0
        assert got.headers["content-range"] == f"bytes {first}-{first + len(content or b'') - 1}/18"


def test_a_range_of_another_version_is_the_whole(studio: TestClient, file: tuple[str, Path]) -> None:
    etag = studio.get(f"{file[0]}/out.html").headers["etag"]
    (file[1] / "out.html").write_bytes(b"new")

    got = studio.get(f"{file[0]}/out.html", headers={"range": "bytes=0-0", "if-range": etag})

    assert (got.status_code, got.content) == (200, b"new")
    again = studio.get(f"{file[0]}/out.html", headers={"if-none-match": got.headers["etag"]})
    assert again.status_code == 304


@pytest.mark.parametrize(
    "path",
    [
        "link",
        "deep/link/x",
        "hard",
        "pipe",
        "deep",
        "%2e%2e/x",
        "..%2f..%2fetc/passwd",
        "/etc/passwd",
        "a%00b",
        "no",
    ],
)
def test_nothing_but_a_plain_file_of_the_workspace_is_given(
    studio: TestClient, file: tuple[str, Path], tmp_path: Path, path: str
) -> None:
    base, folder = file
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "deep").mkdir()
    (folder / "deep" / "link").symlink_to(tmp_path)
    (tmp_path / "x").write_text("secret")
    os.link(tmp_path / "secret", folder / "hard")
    os.mkfifo(folder / "pipe")

    got = studio.get(f"{base}/{path}")

    assert got.status_code == 404
    assert "secret" not in got.text


def test_a_name_of_a_file_cannot_write_headers(studio: TestClient, file: tuple[str, Path]) -> None:
    (file[1] / 'a"; filename=b.exe; ü.txt').write_text("x")

    got = studio.get(f"{file[0]}/a%22%3B%20filename%3Db.exe%3B%20%C3%BC.txt")

    assert got.status_code == 200
    assert got.headers["content-disposition"].startswith('attachment; filename="a__ filename_b.exe_ _.txt"; filename*=')


def asked_signal(settings: Settings, studio: TestClient) -> str:
    """A decision about an e-mail."""
    made = studio.post(f"{API}/projects", json=project()).json()
    where = outside.place(settings, made["id"], "local")
    call = {"to": ["a@example.com"], "subject": "s", "body": "b"}
    return outside.ask(settings, where, "call-1", Pending("email.send", call, "d" * 64, "world", "it acts outside"))


def test_a_decision_is_answered_by_a_person_and_once(settings: Settings, studio: TestClient) -> None:
    where, person = f"{API}/signals/{asked_signal(settings, studio)}", session_of(settings)
    del studio.headers["authorization"]

    for said in ({"option": "Do it"}, {"payload": {"approved": True}}, {"option": "No"}):
        by_key = studio.post(f"{where}/answer", json=said, headers=bearer(key_of(settings)))
        assert (by_key.status_code, by_key.json()["code"]) == (403, "not_a_person")
    misfit = studio.post(f"{where}/answer", json={"payload": {"approved": "yes"}}, headers=person)
    first = studio.post(f"{where}/answer", json={"option": "No"}, headers=person)
    second = studio.post(f"{where}/answer", json={"option": "Do it"}, headers=person)

    assert (misfit.status_code, misfit.json()["code"]) == (400, "resume_validation_failed")
    assert (first.status_code, first.json()["status"], first.json()["rejected"]) == (200, "answered", True)
    assert (second.status_code, second.json()["code"]) == (409, "already_answered")


def test_a_key_answers_questions_and_dismisses_notices(settings: Settings, studio: TestClient) -> None:
    def raised(kind: str) -> str:
        row = {"id": new_id(), "owner_id": "local", "kind": kind, "status": "open", "title": kind, "schema": {}}
        row |= {"options": [{"id": "a", "label": "A"}], "priority": "normal"}
        values = row | {"created_at": now_ms(), "expires_at": now_ms() + 10**9}
        get_database(settings).write(lambda c: c.execute(insert(signals).values(values)))
        return str(row["id"])

    question, notice = raised("question"), raised("notice")

    assert studio.post(f"{API}/signals/{question}/answer", json={"option": "A"}).json()["status"] == "answered"
    assert studio.post(f"{API}/signals/{question}/dismiss").status_code == 409
    assert studio.post(f"{API}/signals/{notice}/dismiss").json()["status"] == "dismissed"
    assert studio.post(f"{API}/signals/{notice}/answer", json={}).status_code == 400


def test_a_schedule_of_a_person_may_come_each_minute_and_rests_when_told(studio: TestClient) -> None:
    body = {"title": "Tick", "everyMinutes": 1, "action": {"kind": "prompt", "text": "Look."}}
    made = studio.post(f"{API}/schedules", json=body).json()
    where = f"{API}/schedules/{made['id']}"

    paused = studio.patch(where, json={"status": "paused", "title": "Tock"}).json()
    resumed = studio.patch(where, json={"status": "active"}).json()

    assert (paused["status"], paused["title"], paused["nextRunAt"]) == ("paused", "Tock", None)
    assert (resumed["status"], resumed["nextRunAt"] >= made["nextRunAt"]) == ("active", True)
    assert studio.delete(where).status_code == 204
    assert (
        studio.post(f"{API}/schedules", json=body | {"action": {"kind": "skill", "skill": "no.such"}}).status_code
        == 400
    )
    assert studio.post(f"{API}/schedules", json=body | {"everyMinutes": 0}).status_code == 400


def test_a_generator_is_filled_and_run(studio: TestClient) -> None:
    steps = [{"key": "a", "title": "About {{topic}}", "role": "writer", "instruction": "On {{topic}}"}]
    inputs = [{"key": "topic", "label": "Topic", "type": "text", "required": True}]
    made = studio.post(f"{API}/generators", json={"name": "G", "inputs": inputs, "steps": steps}).json()
    where = f"{API}/generators/{made['id']}/run"

    run = studio.post(where, json={"inputs": {"topic": "{{topic}} bees"}, "rehearse": True})
    missing = studio.post(where, json={"rehearse": True})
    forbidden = studio.post(
        f"{API}/generators", json={"name": "H", "steps": [steps[0] | {"title": "t", "skills": ["http.json"]}]}
    )

    assert run.status_code == 201
    shown = studio.get(f"{API}/projects/{run.json()['id']}").json()
    assert shown["tasks"][0]["title"] == "About {{topic}} bees"
    assert (missing.status_code, missing.json()["details"][0]["path"]) == (400, "inputs.topic")
    assert (forbidden.status_code, forbidden.json()["code"]) == (400, "generator_invalid")


def test_a_secret_goes_in_and_never_comes_out(studio: TestClient) -> None:
    secret = "123456:" + "S" * 35
    where = f"{API}/connections/team"

    new = studio.put(where, json={"kind": "telegram", "token": secret})
    replaced = studio.put(where, json={"kind": "telegram", "token": secret, "chatId": 7})
    wrong = studio.put(where, json={"kind": "telegram", "token": secret, "colour": "red"})

    assert (new.status_code, replaced.status_code, wrong.status_code) == (201, 200, 400)
    assert replaced.json()["config"]["chatId"] == 7
    seen = studio.get(f"{API}/connections")
    assert secret not in new.text + replaced.text + wrong.text + seen.text
    assert studio.delete(where).status_code == 204
    assert studio.delete(where).status_code == 404


def test_all_thirty_skills_are_listed_and_one_that_needs_nothing_runs_here(studio: TestClient) -> None:
    assert len(studio.get(f"{API}/skills").json()) == 30
    ran = studio.post(f"{API}/skills/invoke", json={"name": "math.evaluate", "input": {"expression": "2^10"}})
    wrong = studio.post(f"{API}/skills/invoke", json={"name": "math.evaluate", "input": {"expr": "2"}})
    unknown = studio.post(f"{API}/skills/invoke", json={"name": "no.such"})

    assert (ran.status_code, ran.json()["ok"]) == (200, True)
    assert str(ran.json()["output"]["value"]) == "1024"
    assert (wrong.status_code, wrong.json()["code"]) == (200, "invalid_input")
    assert unknown.status_code == 404


def test_presets_and_personas_are_listed(studio: TestClient) -> None:
    assert studio.get(f"{API}/presets").json()["items"]
    assert studio.get(f"{API}/personas").json()["items"][0]["role"] == "lead"


def test_memories_are_forgotten_by_filter_never_by_oversight(settings: Settings, studio: TestClient) -> None:
    assert studio.delete(f"{API}/memories").json()["code"] == "filter"
    assert studio.delete(f"{API}/memories", params={"all": "true"}).json() == {"forgotten": 0}
    with asked(settings, bearer(key_of(settings, scopes=["read"]))) as reader:
        assert reader.delete(f"{API}/memories", params={"all": "true"}).status_code == 403
