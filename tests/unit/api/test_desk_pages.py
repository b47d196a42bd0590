"""The desk's pages: who may look, and that whatever anybody wrote is text on every one of them."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from orchestrator.api.desk import assets, previews
from orchestrator.settings import Settings
from tests.rows import Project
from tests.studio import asked, bearer, key_of, session_of

#: Markup, a mark that turns the reading direction, a control, half a character's escape, and a template's own signs.
HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.exe\x1b[2J{{ 7*7 }}&amp;\"'"
#: A title may hold no controls; what looks like markup it may.
TITLE = "<img src=x onerror=alert(1)>{{ 7*7 }}"
TABS = ("", "/runs", "/timeline", "/trace?show=all", "/cost", "/files")
PLAN = [
    {"key": "a", "title": TITLE, "role": "analyst", "instruction": HOSTILE},
    {"key": "b", "title": "b", "role": "writer", "instruction": "Write.", "dependsOn": ["a"]},
]


@pytest.fixture
def desk(settings: Settings) -> Iterator[TestClient]:
    """A person's browser."""
    with asked(settings, session_of(settings), follow_redirects=False) as client:
        yield client


@pytest.fixture
def project(settings: Settings, desk: TestClient) -> str:
    body = {"title": TITLE, "brief": HOSTILE, "tasks": PLAN, "rehearse": True}
    made = desk.post(
        "/api/studio/projects",
        json=body | {"files": [{"path": "a.md", "text": "# <script>x</script>"}], "inputs": ["a.md"]},
    )
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def test_whoever_has_no_session_is_asked_to_sign_in_and_comes_back_to_where_they_wanted(settings: Settings) -> None:
    with asked(settings, follow_redirects=False) as client:
        sent = client.get("/projects/x?y=1")
        assert (sent.status_code, sent.headers["location"]) == (303, "/login?next=%2Fprojects%2Fx%3Fy%3D1")
        assert 'data-onward="/projects/x?y=1"' in client.get("/login?next=/projects/x?y=1").text
        for way in ("//", "/%5C", "/%09/", "/%0A/"):
            assert 'data-onward="/"' in client.get(f"/login?next={way}elsewhere.example").text, way
        page = {"hx-request": "true", "hx-current-url": "http://testserver/projects/x?y=1"}
        assert client.get("/pulse", headers={"hx-request": "true"}).headers["hx-redirect"] == "/login"
        assert client.get("/projects/x", headers=page).headers["hx-redirect"] == "/login?next=%2Fprojects%2Fx%3Fy%3D1"


def test_a_key_opens_no_page(settings: Settings) -> None:
    with asked(settings, bearer(key_of(settings))) as client:
        assert client.get("/inbox").status_code == 403


@pytest.mark.parametrize("path", ["/", "/inbox", "/agents", "/library", "/schedules", "/workers", "/agents/assistant"])
def test_every_page_of_an_empty_studio_is_there_and_runs_nothing_but_our_script(desk: TestClient, path: str) -> None:
    shown = desk.get(path)

    assert shown.status_code == 200
    policy = shown.headers["content-security-policy"]
    assert "script-src 'self'" in policy and "style-src 'self'" in policy and "unsafe" not in policy
    assert not re.search(r"<script(?! src=\"/static/)|\son[a-z]+=|\sstyle=|javascript:", shown.text)
    assert set(re.findall(r"(?:src|href)=\"(//|https?:)", shown.text)) == set()


@pytest.mark.parametrize("tab", [*TABS, "/tasks/a", "/files/inputs/a.md"])
def test_what_was_written_is_text_and_what_hides_is_written_out(desk: TestClient, project: str, tab: str) -> None:
    shown = desk.get(f"/projects/{project}{tab}")

    assert shown.status_code == 200
    assert "<img src=x" not in shown.text and "<script>x" not in shown.text
    assert "\u202e" not in shown.text and "\x1b" not in shown.text
    assert "&lt;img src=x onerror=alert(1)&gt;{{ 7*7 }}" in shown.text
    if tab in ("", "/tasks/a"):
        assert "gnp.exe" in shown.text and "⟦U+202E⟧" in shown.text and "⟦U+001B⟧" in shown.text


def test_projects_of_others_are_not_there(settings: Settings, project: str) -> None:
    with asked(settings, session_of(settings, "ann")) as ann:
        for tab in TABS:
            assert ann.get(f"/projects/{project}{tab}").status_code == 404
        assert project not in ann.get("/").text
        assert ann.post(f"/projects/{project}/cancel", json={}).status_code == 404


def test_a_refusal_is_a_page_for_a_reader_and_words_for_a_page(desk: TestClient, project: str) -> None:
    page = desk.get("/projects/01234567")
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert desk.post(f"/projects/{project}/cancel", json={}).status_code == 200
    words = desk.post(f"/projects/{project}/cancel", json={}, headers={"hx-request": "true"})
    assert words.status_code == 409
    assert "has ended already" in words.headers["hx-trigger"]


def test_a_form_of_another_page_cannot_act(desk: TestClient, project: str) -> None:
    at = f"/projects/{project}/cancel"
    assert desk.post(at, data={"a": "b"}).status_code == 415
    assert desk.post(at, json={}, headers={"origin": "https://elsewhere.example"}).status_code == 403
    assert desk.post(at, json={}, headers={"sec-fetch-site": "cross-site"}).status_code == 403


def test_files_are_shown_as_what_they_hold_and_not_as_what_they_are_called(desk: TestClient) -> None:
    png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    files: list[dict[str, Any]] = [
        {"path": "p.html", "base64": png},
        {"path": "p.png", "text": "<script>alert(1)</script>"},
        {"path": "t.csv", "text": "a,b\n1,<b>2</b>\n"},
    ]
    body = {"title": "f", "brief": "f", "tasks": PLAN[1:2], "rehearse": True, "files": files}
    body["tasks"] = [{"key": "b", "role": "writer", "instruction": "Write."}]
    made = desk.post("/api/studio/projects", json=body | {"inputs": ["p.html", "p.png", "t.csv"]}).json()["id"]
    at = f"/projects/{made}"

    assert f'src="{at}/pictures/inputs/p.html"' in desk.get(f"{at}/files/inputs/p.html").text
    picture = desk.get(f"{at}/pictures/inputs/p.html")
    assert picture.headers["content-type"] == "image/png"
    assert picture.headers["content-security-policy"].startswith("sandbox")
    assert "&lt;script&gt;alert(1)" in desk.get(f"{at}/files/inputs/p.png").text
    assert desk.get(f"{at}/pictures/inputs/p.png").status_code == 404
    assert "<td>&lt;b&gt;2&lt;/b&gt;</td>" in desk.get(f"{at}/files/inputs/t.csv").text
    assert desk.get(f"{at}/files/../../secret").status_code == 404


@pytest.mark.parametrize(
    ("output", "name", "whole"),
    [
        ("It rains <b>. " * 9_000, "b.txt", "It rains <b>. " * 9_000),
        ({"content": "x" * 150_000, "files": []}, "b.txt", "x" * 150_000),
        ({"years": list(range(20_000))}, "b.json", None),
    ],
)
def test_however_long_an_output_is_its_page_shows_a_beginning_and_leads_to_all_of_it(
    settings: Settings, desk: TestClient, output: Any, name: str, whole: str | None
) -> None:
    made = Project(settings)
    made.task("b", "completed", output=output)
    at = f"/projects/{made.id}/tasks/b"

    page = desk.get(at).text
    assert len(page) < 2 * previews.DRAWN + 30_000
    assert "this is its beginning" in page and f'href="{at}/output"' in page
    sent = desk.get(f"{at}/output")
    assert sent.headers["content-disposition"].startswith(f'attachment; filename="{name}"')
    assert sent.headers["content-security-policy"].startswith("sandbox")
    assert sent.text == whole if whole is not None else sent.json() == output
    with asked(settings, session_of(settings, "ann")) as ann:
        assert ann.get(f"{at}/output").status_code == 404


def test_an_output_that_a_page_has_room_for_is_there_whole(settings: Settings, desk: TestClient) -> None:
    made = Project(settings)
    made.task("b", "completed", output="42 mm")
    made.task("c")
    page = desk.get(f"/projects/{made.id}/tasks/b").text
    assert '<p class="prose">42 mm</p>' in page and "beginning" not in page
    assert desk.get(f"/projects/{made.id}/tasks/c/output").status_code == 404


def test_assets_may_be_kept_because_their_address_changes_with_them(desk: TestClient) -> None:
    style = desk.get(assets.url("desk.css"))
    assert style.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "immutable" not in desk.get("/static/older/desk.css").headers["cache-control"]
    assert desk.get("/static/x/vendor/NOTICE").status_code == 404


def test_rows_that_no_check_of_ours_ever_saw_are_text_on_every_page(settings: Settings, desk: TestClient) -> None:
    words = '<img src=x onerror="alert(1)"><b>bold</b> \u202egnp.exe\u202c \x1b[31m \u200b{{ 7*7 }} \ud800'
    words = words.encode("utf-8", "replace").decode()
    project = Project(settings, words, brief=words)
    project.task("a", "needs_input", title=words, agent_name=words, instruction=words, output=words)
    project.task("b", "failed", after=["a"], title=words, error={"code": words, "message": words})
    action = {"toolCallId": "c", "skill": words, "input": {words: words, "body": words * 4}}
    named = {"title": words, "reason": words, "body": words, "agent_name": words}
    signal = project.signal("a", action=action, expires_at=4_000_000_000_000, **named)
    project.event("think", {"model": words, "text": words}, "a")
    project.event("file.written", {"path": words, "bytes": 1}, "a")
    project.file(words)
    at = f"/projects/{project.id}"

    for path in ("/", "/inbox", f"/inbox/{signal}", *(at + tab for tab in TABS), f"{at}/tasks/a", f"{at}/tasks/b"):
        shown = desk.get(path)
        assert shown.status_code == 200, path
        assert "&lt;img src=x" in shown.text, path
        assert "<img src=x" not in shown.text and "<b>bold" not in shown.text, path
        assert not set(shown.text) & {"\u202e", "\x1b", "\u200b"}, path
    assert "⟦U+202E⟧" in desk.get(f"{at}/events/1").text


def test_a_plan_that_waits_is_shown_and_started_as_it_was_shown(desk: TestClient) -> None:
    body = {"title": "Wait", "brief": "b", "tasks": PLAN, "rehearse": True, "planOnly": True}
    made = desk.post("/api/studio/projects", json=body)
    assert made.status_code == 201, made.text
    at = f"/projects/{made.json()['id']}"

    shown = desk.get(at)

    assert "A plan waits for you" in shown.text and "&lt;img src=x" in shown.text
    version = re.search(r'name="version" value="([^"]+)"', shown.text)
    assert version is not None
    assert desk.post(f"{at}/start", json={"version": "0" * 64}, headers={"hx-request": "true"}).status_code == 412
    assert desk.post(f"{at}/start", json={"version": version[1]}).status_code == 200
    assert "A plan waits for you" not in desk.get(at).text
