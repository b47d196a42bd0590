"""Conversations and what agents look things up in, over HTTP; an agent that becomes a being; a plan made again."""

import base64
from hashlib import sha256
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select, update

from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from orchestrator.store.tables import checkpoints, projects
from orchestrator.store.tables import files as kept_files
from registry.skills import catalogue
from registry.skills.context import Caller, SkillContext
from tests.studio import API, asked, bearer, key_of

SKILLS = catalogue.build()
#: The second is larger than any other route takes.
MANY = {"notes.md": b"Bees.", "ü.bin": bytes(range(256)) * 10_000}
THREADS, KNOWLEDGE = f"{API}/threads", f"{API}/knowledge"


def agent(studio: TestClient, name: str) -> str:
    return str(studio.post(f"{API}/agents", json={"name": name, "instructions": "Talk."}).json()["id"])


@pytest.fixture
def thread(studio: TestClient) -> str:
    made = studio.post(THREADS, json={"agent": agent(studio, "Ada"), "title": "On bees"})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def test_a_thread_is_begun_once_for_a_key_and_shown_where_it_is_listed(studio: TestClient) -> None:
    body, key = {"agent": agent(studio, "Ada")}, {"idempotency-key": "k"}

    first, again = studio.post(THREADS, json=body, headers=key), studio.post(THREADS, json=body, headers=key)
    others = [studio.post(THREADS, json=body).json()["id"] for _ in range(2)]

    assert (first.json()["id"], first.json()["agentName"]) == (again.json()["id"], "Ada")
    seen, cursor = list[str](), None
    while page := studio.get(THREADS, params={"limit": 2} | ({"cursor": cursor} if cursor else {})).json():
        seen += [one["id"] for one in page["items"]]
        if (cursor := page["next"]) is None:
            break
    assert sorted(seen) == sorted([first.json()["id"], *others])
    nobody = studio.post(THREADS, json={"agent": "/etc/passwd"})
    assert (nobody.status_code, nobody.json()["code"]) == (404, "unknown_agent")


def test_one_message_at_a_time_and_each_key_once(studio: TestClient, thread: str) -> None:
    where, key = f"{THREADS}/{thread}", {"idempotency-key": "k"}

    first = studio.post(f"{where}/send", json={"text": "Hello"}, headers=key)
    again = studio.post(f"{where}/send", json={"text": "Hello"}, headers=key)
    busy = studio.post(f"{where}/send", json={"text": "Are you there?"})

    assert (first.status_code, first.json()["created"], again.json()["created"]) == (202, True, False)
    assert again.json()["runId"] == first.json()["runId"]
    assert (busy.status_code, busy.json()["code"]) == (409, "thread_busy")
    shown = studio.get(where).json()
    assert (shown["runId"], shown["status"], shown["signals"]) == (first.json()["runId"], "queued", [])
    # Its trace is followed as that of a project.
    lines = studio.get(f"{API}/projects/{thread}/events", headers={"accept": "application/json"})
    assert lines.status_code == 200
    assert studio.post(f"{where}/stop").json() == {"runId": first.json()["runId"]}
    assert studio.post(f"{where}/stop").json() == {"runId": None}
    assert studio.get(where).json()["status"] is None
    assert studio.post(f"{where}/compact").status_code == 202


def laid(settings: Settings, thread: str) -> dict[str, bytes]:
    """Every file of a thread's workspace, ours left out."""
    root = settings.workspaces / thread
    found = {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}
    return {path: content for path, content in found.items() if not path.startswith(".officina")}


def test_files_of_a_message_lie_in_the_workspace_before_its_run_begins(
    settings: Settings, studio: TestClient, thread: str
) -> None:
    send = f"{THREADS}/{thread}/send"
    files = [{"name": name, "base64": base64.b64encode(one).decode()} for name, one in MANY.items()]
    body, key = {"text": "Read.", "attachments": [*files, files[0]]}, {"idempotency-key": "k"}

    first, again = studio.post(send, json=body, headers=key), studio.post(send, json=body, headers=key)
    busy = studio.post(send, json={"text": "And.", "attachments": [{"name": "more.md", "text": "Wasps."}]})

    assert (first.status_code, again.json()) == (202, {"runId": first.json()["runId"], "created": False}), first.text
    assert (busy.status_code, busy.json()["code"]) == (409, "thread_busy")
    paths = {f"attachments/{sha256(one).hexdigest()[:16]}/{name}": one for name, one in MANY.items()}
    assert laid(settings, thread) == paths
    with get_database(settings).read() as connection:
        given = connection.execute(select(checkpoints.c.input).where(checkpoints.c.run_id == first.json()["runId"]))
        attached = given.scalar_one()["attachments"]
        rows = connection.execute(select(kept_files.c.path, kept_files.c.bytes, kept_files.c.sha256)).all()
    assert [one["path"] for one in attached] == list(paths)
    assert sorted(tuple(row) for row in rows) == sorted((a["path"], a["bytes"], a["sha256"]) for a in attached)
    listed = studio.get(f"{THREADS}/{thread}/files").json()["items"]
    assert {one["path"]: studio.get(f"{THREADS}/{thread}/files/{one['path']}").content for one in listed} == paths
    assert studio.get(f"{THREADS}/{thread}/files/attachments/none.md").json()["code"] == "unknown_file"
    elsewhere = studio.patch(f"{THREADS}/{thread}", json={"title": "x" * 3_000_000})
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    ("file", "code", "path"),
    [
        ({"name": "../a.md", "text": "x"}, "invalid_input", "attachments[0].name"),
        ({"name": "a/b.md", "text": "x"}, "invalid_input", "attachments[0].name"),
        ({"name": "..", "text": "x"}, "path_escape", "attachments[0].name"),
        ({"name": ".officina", "text": "x"}, "path_escape", "attachments[0].name"),
        ({"name": "a\n.md", "text": "x"}, "invalid_input", "attachments[0].name"),
        ({"name": "a.md"}, "invalid_file", "attachments[0]"),
        ({"name": "a.md", "text": "x", "base64": "eA=="}, "invalid_file", "attachments[0]"),
        ({"name": "a.md", "base64": "no base64"}, "invalid_file", "attachments[0]"),
    ],
)
def test_a_file_that_cannot_lie_there_refuses_the_message(
    settings: Settings, studio: TestClient, thread: str, file: dict[str, str], code: str, path: str
) -> None:
    good = {"name": "good.md", "text": "x"}

    refused = studio.post(f"{THREADS}/{thread}/send", json={"text": "Read.", "attachments": [file, good]})

    assert refused.status_code == 400, refused.text
    assert [(one["path"], one["code"]) for one in refused.json()["details"]] == [(path, code)]
    assert (laid(settings, thread), studio.get(f"{THREADS}/{thread}").json()["runId"]) == ({}, None)


def test_files_of_a_message_have_a_size_together(settings: Settings, thread: str) -> None:
    limits = settings.limits.model_copy(update={"attachment_bytes": 10})
    files = [{"name": f"{n}.md", "text": "12345"} for n in range(3)]
    with asked(settings.model_copy(update={"limits": limits}), bearer(key_of(settings))) as studio:
        whole = studio.post(f"{THREADS}/{thread}/send", json={"text": "Read.", "attachments": files})
        two = studio.post(f"{THREADS}/{thread}/send", json={"text": "Read.", "attachments": files[:2]})

    assert (whole.status_code, whole.json()["code"], two.status_code) == (413, "too_large", 202)


def test_another_speaker_takes_over_a_free_thread(studio: TestClient, thread: str) -> None:
    where, bob = f"{THREADS}/{thread}", agent(studio, "Bob")
    preset = next(one["id"] for one in studio.get(f"{API}/presets").json()["items"] if one["runnable"])

    changed = studio.patch(where, json={"speaker": bob, "title": "On wasps", "mode": "plan"}).json()
    studio.post(f"{where}/send", json={"text": "Hello"})
    busy = studio.patch(where, json={"speaker": preset})
    studio.post(f"{where}/stop")
    last = studio.patch(where, json={"speaker": preset, "mode": None}).json()

    assert (changed["agentName"], changed["title"], changed["mode"]) == ("Bob", "On wasps", "plan")
    assert (busy.status_code, busy.json()["code"]) == (409, "thread_busy")
    assert (last["agentId"], last["mode"], last["originAgentId"]) == (preset, None, changed["originAgentId"])
    assert studio.patch(where, json={"speaker": "nobody"}).json()["code"] == "unknown_agent"
    assert studio.post(f"{where}/send", json={"text": "Hello again"}).status_code == 202


@pytest.mark.parametrize("title", ["   ", "a\nb"])
def test_a_thread_is_changed_whole_or_not_at_all(studio: TestClient, thread: str, title: str) -> None:
    where, bob = f"{THREADS}/{thread}", agent(studio, "Bob")
    before = studio.get(where).json()

    refused = studio.patch(where, json={"speaker": bob, "title": title, "mode": "plan"})
    begun = studio.post(THREADS, json={"agent": bob, "title": title})

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_input")
    assert (begun.status_code, begun.json()["code"]) == (400, "invalid_input")
    assert studio.get(where).json() == before


def test_a_deleted_thread_is_gone(studio: TestClient, thread: str) -> None:
    assert studio.delete(f"{THREADS}/{thread}").status_code == 204
    assert studio.get(f"{THREADS}/{thread}").json()["code"] == "unknown_thread"
    assert studio.post(f"{THREADS}/{thread}/send", json={"text": "x"}).status_code == 404


def test_a_text_is_added_found_read_and_forgotten(studio: TestClient) -> None:
    text = {"name": "bees.md", "text": "A hive keeps its brood at 35 degrees."}

    added, again = studio.post(KNOWLEDGE, json=text), studio.post(KNOWLEDGE, json=text)
    found = studio.get(f"{KNOWLEDGE}/search", params={"q": "brood of a hive"}).json()["items"]
    where = f"{KNOWLEDGE}/{added.json()['id']}"

    assert (added.status_code, added.json()["how"], again.json()["how"]) == (201, "added", "unchanged")
    assert [one["text"] for one in found] == [text["text"]]
    assert studio.get(where).json()["text"] == text["text"]
    assert [one["uri"] for one in studio.get(KNOWLEDGE).json()["items"]] == ["bees.md"]
    assert studio.delete(where).status_code == 204
    assert studio.get(where).status_code == studio.delete(where).status_code == 404


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"text": "x", "base64": "eA=="}, 400, "invalid_request"),
        ({}, 400, "invalid_request"),
        ({"base64": "no base64"}, 400, "invalid_file"),
        ({"text": "   "}, 409, "empty_source"),
        ({"text": "x", "agentId": "nobody"}, 404, "unknown_agent"),
        ({"text": "x" * 2_000_001}, 413, "too_large"),
        ({"base64": base64.b64encode(b"%PDF-1.7").decode()}, 503, "no_broker"),
    ],
)
def test_what_cannot_be_looked_up_in_is_not_kept(
    studio: TestClient, body: dict[str, Any], status: int, code: str
) -> None:
    refused = studio.post(KNOWLEDGE, json={"name": "a.pdf"} | body)

    assert (refused.status_code, refused.json()["code"]) == (status, code)
    assert studio.get(KNOWLEDGE).json()["items"] == []


def test_a_being_keeps_what_it_noted_as_an_agent(settings: Settings, studio: TestClient) -> None:
    from orchestrator.ports.wiring import wire

    ada = agent(studio, "Ada")
    notebook, before = wire(settings, SKILLS).notebook, studio.get(f"{API}/agents/{ada}").json()
    noting = Caller("run", "local", thread_id="t", run_id="r", agent_id=ada, call_id="1")
    notebook.records.write(noting, "long", "Bees dance.", None)

    being = studio.post(f"{API}/agents/{ada}/promote")
    again = studio.post(f"{API}/agents/{ada}/promote").json()
    renamed = studio.patch(f"{API}/agents/{ada}", json={"role": "analyst"}).json()

    assert (before["beingId"], being.status_code, being.json()["beingId"]) == (None, 200, ada)
    assert being.json()["digest"] == again["digest"] != before["digest"]
    assert renamed["beingId"] == ada
    seen = studio.get(f"{API}/memories", params={"beingId": ada}).json()["items"]
    assert [one["content"] for one in seen] == ["Bees dance."]
    looking = SkillContext(
        Caller("run", "local", run_id="r2", agent_id=ada, being_id=ada), memory=wire(settings, SKILLS).memory
    )
    recalled = SKILLS.invoke("memory.recall", {"query": "dance"}, looking)
    assert [one["content"] for one in recalled.output["memories"]] == ["Bees dance."]
    stale = studio.post(f"{API}/agents/{ada}/promote", headers={"if-match": f'"{before["digest"]}"'})
    assert stale.status_code == 412


def test_another_plan_is_asked_for_with_a_note(settings: Settings, studio: TestClient) -> None:
    plan = [{"key": "t", "role": "writer", "instruction": "Write."}]
    body = {"title": "T", "brief": "Write on bees.", "tasks": plan, "planOnly": True, "rehearse": True}
    made = studio.post(f"{API}/projects", json=body).json()["id"]
    where = f"{API}/projects/{made}"
    version = studio.get(where).json()["plan"]["version"]

    stale = studio.post(f"{where}/plan", json={"note": "x"}, headers={"if-match": '"other"'})
    asked = studio.post(f"{where}/plan", json={"note": "Two tasks, please."}, headers={"if-match": f'"{version}"'})
    early = studio.post(f"{where}/start", json={})

    assert (stale.status_code, stale.json()["code"]) == (412, "version_conflict")
    assert (asked.status_code, asked.json()["status"], asked.json().get("plan")) == (202, "planning", None)
    assert "Two tasks, please." in asked.json()["reason"]
    assert (early.status_code, early.json()["code"]) == (409, "not_planned")
    get_database(settings).write(lambda c: c.execute(update(projects).values(status="running")))
    assert studio.post(f"{where}/plan", json={}).json()["code"] == "already_started"
