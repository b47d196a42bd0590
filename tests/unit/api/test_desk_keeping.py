"""Memory, documents, connections, generators and conversations as pages: looked at, searched, taken away."""

import base64
import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from orchestrator import threads
from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from orchestrator.store.kept import memories, pins, sources
from orchestrator.store.tables import connections, projects, tasks
from tests.showroom import Showroom
from tests.studio import asked, session_of

PAGE = {"hx-request": "true"}


@pytest.fixture
def room(settings: Settings) -> Showroom:
    return Showroom(settings)


@pytest.fixture
def desk(settings: Settings) -> Iterator[TestClient]:
    with asked(settings, session_of(settings), follow_redirects=False) as client:
        yield client


def ids(settings: Settings, table: object) -> list[str]:
    with get_database(settings).read() as connection:
        return [str(id_) for id_ in connection.execute(select(table.c.id)).scalars()]  # type: ignore[attr-defined]


def test_memories_are_found_by_words_that_all_occur_and_forgotten_for_good(
    settings: Settings, desk: TestClient, room: Showroom
) -> None:
    found = desk.get("/memories?q=fridays NOON").text
    assert "Reports are due on Fridays" in found and "closes early" not in found and "metric units" not in found
    assert "Nothing like that" in desk.get("/memories?q=fridays december").text
    assert "Nothing like that" in desk.get("/memories?q=%25").text, "a sign of SQL is a sign"

    for id_ in ids(settings, memories):
        assert desk.post(f"/memories/{id_}/forget", json={}).status_code == 200
        assert desk.post(f"/memories/{id_}/forget", json={}, headers=PAGE).status_code == 404
    for id_ in ids(settings, pins):
        assert desk.post(f"/pins/{id_}/remove", json={}).status_code == 200
        assert desk.post(f"/pins/{id_}/remove", json={}, headers=PAGE).status_code == 404

    assert "Nothing is remembered yet" in desk.get("/memories").text


def test_documents_are_given_looked_up_and_removed(settings: Settings, desk: TestClient, room: Showroom) -> None:
    given = desk.post("/knowledge", json={"name": "trams", "text": "The tram to the harbour runs every ten minutes."})
    assert "Added" in given.headers["hx-trigger"]
    again = desk.post("/knowledge", json={"name": "trams", "text": "The tram to the harbour runs every ten minutes."})
    assert "as it is" in again.headers["hx-trigger"]
    assert desk.post("/knowledge", json={"name": " ", "text": "x"}, headers=PAGE).status_code == 400

    assert "every ten minutes" in desk.get("/knowledge?q=harbour").text
    assert "lamp,20" in desk.get("/knowledge?q=lamp").text, "what one agent alone was given is its owner's, too"
    for id_ in ids(settings, sources):
        assert desk.post(f"/knowledge/{id_}/remove", json={}).status_code == 200
    assert "No document yet" in desk.get("/knowledge").text


def test_connections_show_no_secret_and_can_be_removed(settings: Settings, desk: TestClient, room: Showroom) -> None:
    shown = desk.get("/connections").text
    assert "api.example.com" in shown and "never shown" in shown and "not-to-be-seen" not in shown

    assert desk.post("/connections/weather/remove", json={}).status_code == 200
    assert desk.post("/connections/weather/remove", json={}, headers=PAGE).status_code == 404
    assert ids(settings, connections) == []


def test_a_generator_asks_for_its_blanks_and_starts_one_project_however_often_the_button_is_pressed(
    settings: Settings, desk: TestClient, room: Showroom
) -> None:
    at = f"/generators/{room.generator_id}"
    form = desk.get(at).text
    assert 'name="city"' in form and 'value="3"' in form and "selected" not in form
    given = {
        "city": "Oslo {{notes}}",
        "years": "2",
        "tone": "1",
        "chart": "false",
        "_rehearse": "true",
        "_key": "k" * 16,
    }

    assert desk.post(f"{at}/run", json=given | {"city": ""}, headers=PAGE).status_code == 400
    assert desk.post(f"{at}/run", json=given | {"years": "many"}, headers=PAGE).status_code == 400
    made = desk.post(f"{at}/run", json=given)
    again = desk.post(f"{at}/run", json=given)

    assert made.headers["hx-redirect"] == again.headers["hx-redirect"]
    with get_database(settings).read() as connection:
        project_id = made.headers["hx-redirect"].rpartition("/")[2]
        words = connection.execute(select(tasks.c.instruction).where(tasks.c.project_id == project_id)).scalars().all()
        assert connection.execute(select(projects.c.rehearsal).where(projects.c.id == project_id)).scalar_one()
    assert sorted(words) == ["Find 2 years of figures of Oslo {{notes}} (). ", "Write it in a warm tone; chart: false."]
    assert desk.post(f"{at}/delete", json={}).status_code == 200
    assert desk.get(at).status_code == 404


def test_whatever_belongs_to_another_owner_is_not_there(settings: Settings, room: Showroom) -> None:
    paths = [f"/threads/{room.thread_id}", f"/generators/{room.generator_id}"]
    acts = [f"/memories/{ids(settings, memories)[0]}/forget", f"/pins/{ids(settings, pins)[0]}/remove"]
    acts += [f"/knowledge/{ids(settings, sources)[0]}/remove", "/connections/weather/remove"]
    acts += [f"/threads/{room.thread_id}/{act}" for act in ("stop", "compact", "delete")]
    acts += [f"/generators/{room.generator_id}/delete"]
    with asked(settings, session_of(settings, "ann"), follow_redirects=False) as ann:
        assert [ann.get(path).status_code for path in paths] == [404] * len(paths)
        assert [ann.post(act, json={}).status_code for act in acts] == [404] * len(acts)
        for path in ("/threads", "/memories?q=fridays", "/knowledge?q=open", "/connections", "/generators"):
            text = ann.get(path).text
            assert not any(
                words in text for words in ("Rain in the north", "Reports are", "nine to five", "City report")
            )


def test_a_file_of_the_server_is_no_agent_to_talk_with(settings: Settings, desk: TestClient) -> None:
    (settings.home / "ada.json").write_text('{"id": "ada", "name": "Ada", "instructions": "Talk."}')
    body = {"agent": str(settings.home / "ada.json"), "text": "Hello", "key": "k" * 16}
    assert desk.post("/threads", json=body, headers=PAGE).status_code == 404
    assert "Ada" not in desk.get("/threads").text


def test_a_conversation_begins_once_however_often_it_is_sent(settings: Settings, desk: TestClient) -> None:
    body = {"agent": "assistant", "text": "Hello\nthere", "key": "k" * 16}
    first, second = (desk.post("/threads", json=body) for _ in range(2))
    assert first.headers["hx-redirect"] == second.headers["hx-redirect"]
    assert desk.post("/threads", json=body | {"text": " "}, headers=PAGE).status_code == 400
    shown = desk.get(first.headers["hx-redirect"]).text
    assert shown.count('class="said"') == 1 and "<h1>Hello there</h1>" in shown and "Waits for a worker" in shown
    thread_id = first.headers["hx-redirect"].rpartition("/")[2]
    assert desk.post(f"/threads/{thread_id}/send", json={"text": "x", "key": "l" * 16}, headers=PAGE).status_code == 409
    assert threads.stop(settings, thread_id, by="the test") is not None
    assert desk.post(f"/threads/{thread_id}/stop", json={}, headers=PAGE).status_code == 409


def test_files_go_with_a_message_are_shown_beside_it_and_can_be_opened(settings: Settings, desk: TestClient) -> None:
    notes = {"name": "über <b>.md", "base64": base64.b64encode("# Höhe\n\n42 m".encode()).decode()}
    large = {"name": "large.bin", "base64": base64.b64encode(bytes(3_000_000)).decode()}
    body = {"agent": "assistant", "text": "Read these.", "key": "k" * 16, "attachments": [notes, large]}
    begun = desk.post("/threads", json=body)
    at = begun.headers["hx-redirect"]

    shown = desk.get(at).text
    links = sorted(set(re.findall(rf'"({at}/files/[^"]+)"', shown)))
    text, unread = (desk.get(link).text for link in sorted(links, key=lambda link: "large" in link))
    saved = desk.get(re.findall(r'href="([^"]+)" download', text)[0])

    assert len(links) == 2 and "2 files in this conversation" in shown and "über &lt;b&gt;.md" in shown
    assert "<h1>Höhe</h1>" in text and "No preview" in unread
    assert saved.content == "# Höhe\n\n42 m".encode() and saved.headers["content-disposition"].startswith("attachment")
    assert desk.get(f"{at}/files/attachments/none.md").status_code == 404
    assert desk.get(links[0].replace("/files/", "/pictures/")).status_code == 404, "it is no picture"
    assert threads.stop(settings, at.rpartition("/")[2], by="the test") is not None
    sent = {"text": "And this.", "key": "l" * 16, "attachments": [{"name": "more.md", "text": "Bees."}]}
    assert desk.post(f"{at}/send", json=sent).status_code == 200
    assert "more.md" in desk.get(at).text
    with asked(settings, session_of(settings, "ann"), follow_redirects=False) as ann:
        assert [ann.get(link).status_code for link in links] == [404, 404]


def test_a_conversation_whose_files_are_refused_does_not_begin(settings: Settings, desk: TestClient) -> None:
    body = {"agent": "assistant", "text": "Read this.", "key": "k" * 16}
    for name, content in (("../up.md", "x"), ("large.bin", "x" * (settings.limits.attachment_bytes + 1))):
        refused = desk.post("/threads", json=body | {"attachments": [{"name": name, "text": content}]}, headers=PAGE)
        assert refused.status_code in (400, 413)
    assert "No conversation yet" in desk.get("/threads").text
