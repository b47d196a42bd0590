"""Projects over HTTP: what is refused, what is stored, what comes back."""

import base64
from typing import Any

import pytest
from fastapi.testclient import TestClient

from orchestrator.settings import Settings
from tests.studio import API, asked, bearer, key_of

PLAN = [
    {"key": "sort", "role": "analyst", "instruction": "Sort."},
    {"key": "write", "role": "writer", "instruction": "Write.", "dependsOn": ["sort"]},
]


def project(**fields: Any) -> dict[str, Any]:
    return {"title": "Notes", "brief": "b", "tasks": PLAN, "rehearse": True} | fields


def test_a_submitted_project_can_be_shown_and_listed(studio: TestClient) -> None:
    made = studio.post(f"{API}/projects", json=project())

    assert made.status_code == 201
    assert made.headers["location"] == f"{API}/projects/{made.json()['id']}"
    assert set(made.json()["tasks"]) == {"sort", "write"}
    shown = studio.get(made.headers["location"]).json()
    assert (shown["title"], shown["status"]) == ("Notes", "running")
    assert [task["dependsOn"] for task in shown["tasks"]] == [[], ["sort"]]
    assert [one["id"] for one in studio.get(f"{API}/projects").json()["items"]] == [made.json()["id"]]


def test_every_fault_is_named_and_nothing_is_stored(studio: TestClient) -> None:
    bad = [{"key": "a", "role": "writer", "instruction": "x", "dependsOn": ["b"], "skills": ["web.serach"]}]
    refused = studio.post(f"{API}/projects", json=project(tasks=bad, colour="red"))

    assert refused.status_code == 400
    assert refused.json()["code"] == "project_invalid"
    places = {detail["path"] for detail in refused.json()["details"]}
    assert {"colour", "tasks[0].dependsOn[0]", "tasks[0].skills[0]"} <= places
    assert studio.get(f"{API}/projects").json()["items"] == []


def test_the_same_key_gives_the_same_project_and_another_file_under_it_is_refused(studio: TestClient) -> None:
    key = {"idempotency-key": "notes-1"}
    first = studio.post(f"{API}/projects", json=project(), headers=key)
    again = studio.post(f"{API}/projects", json=project(), headers=key)
    other = studio.post(f"{API}/projects", json=project(title="Other"), headers=key)

    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert again.json() == first.json() | {"created": False}
    assert other.json()["code"] == "key_conflict"


def test_keys_of_two_owners_do_not_meet(settings: Settings, studio: TestClient) -> None:
    key = {"idempotency-key": "notes-1"}
    mine = studio.post(f"{API}/projects", json=project(), headers=key).json()
    with asked(settings, bearer(key_of(settings, "ann"))) as ann:
        hers = ann.post(f"{API}/projects", json=project(title="Hers"), headers=key)

        assert hers.status_code == 201
        assert ann.get(f"{API}/projects/{mine['id']}").status_code == 404


def test_files_that_come_along_are_inputs(studio: TestClient) -> None:
    files = [
        {"path": "data/a.txt", "text": "ä"},
        {"path": "b.bin", "base64": base64.b64encode(b"\x00\xff").decode()},
    ]
    made = studio.post(f"{API}/projects", json=project(inputs=["data", "b.bin"], files=files)).json()

    listed = studio.get(f"{API}/projects/{made['id']}/files").json()["items"]
    assert [(one["path"], one["bytes"]) for one in listed] == [("inputs/b.bin", 2), ("inputs/data/a.txt", 2)]
    got = studio.get(f"{API}/projects/{made['id']}/files/inputs/b.bin")
    assert got.content == b"\x00\xff"


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ({"path": "../x", "text": ""}, "path_escape"),
        ({"path": "/etc/passwd", "text": ""}, "path_escape"),
        ({"path": "a", "text": "", "base64": ""}, "invalid_file"),
        ({"path": "a", "base64": "%%"}, "invalid_file"),
    ],
)
def test_a_file_that_cannot_come_along_is_refused(studio: TestClient, file: dict[str, str], code: str) -> None:
    refused = studio.post(f"{API}/projects", json=project(files=[file]))

    assert refused.status_code == 400
    assert [detail["code"] for detail in refused.json()["details"]] == [code]


def test_a_script_that_comes_inline_lies_among_no_files(studio: TestClient, settings: Settings) -> None:
    mine = {"script-of-the-submission.json": "mine", "script.json": "also mine", "script": "and this"}
    files = [{"path": path, "text": text} for path, text in mine.items()]
    script = {"tasks": {"sort": [{"say": "done"}]}}
    made = studio.post(f"{API}/projects", json=project(script=script, files=files, inputs=["."], rehearse=False))

    assert made.status_code == 201, made.text
    folder = settings.workspaces / made.json()["id"] / "inputs"
    assert {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*")} == mine


def test_a_script_may_come_inline(studio: TestClient) -> None:
    made = studio.post(f"{API}/projects", json=project(script={"tasks": {"sort": [{"say": "done"}]}}, rehearse=False))
    wrong = studio.post(f"{API}/projects", json=project(script={"tasks": {"nobody": []}}))

    assert made.status_code == 201
    assert wrong.status_code == 400


def test_a_cancelled_project_has_ended(studio: TestClient) -> None:
    made = studio.post(f"{API}/projects", json=project()).json()

    cancelled = studio.post(f"{API}/projects/{made['id']}/cancel")
    again = studio.post(f"{API}/projects/{made['id']}/cancel")

    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert (again.status_code, again.json()["code"]) == (409, "project_ended")


def test_pages_of_a_list_neither_repeat_nor_miss(studio: TestClient) -> None:
    made = [studio.post(f"{API}/projects", json=project()).json()["id"] for _ in range(5)]
    seen: list[str] = []
    cursor = None
    while True:
        more = {"cursor": cursor} if cursor else {}
        page = studio.get(f"{API}/projects", params={"limit": 2} | more).json()
        seen += [one["id"] for one in page["items"]]
        studio.post(f"{API}/projects", json=project())  # newer ones come in front, and move nothing
        cursor = page["next"]
        if cursor is None:
            break

    assert seen == made[::-1]


@pytest.mark.parametrize("cursor", ["x", "W10", "WzEsMl0", "W251bGwsIngiXQ", "😀", "a" * 300])
def test_a_cursor_nobody_gave_is_refused(studio: TestClient, cursor: str) -> None:
    assert studio.get(f"{API}/projects", params={"cursor": cursor}).status_code == 400


def test_a_page_of_the_trace_follows_the_one_before(studio: TestClient) -> None:
    made = studio.post(f"{API}/projects", json=project()).json()
    where, page = f"{API}/projects/{made['id']}/events", {"accept": "application/json"}

    first = studio.get(where, params={"limit": 2}, headers=page).json()
    rest = studio.get(where, params={"after": first["next"]}, headers=page).json()

    assert [event["seq"] for event in first["items"]] == [1, 2]
    assert rest["items"][0]["seq"] == 3
    assert rest["next"] is None


def test_a_stream_of_an_ended_project_tells_all_and_ends(studio: TestClient) -> None:
    made = studio.post(f"{API}/projects", json=project()).json()
    studio.post(f"{API}/projects/{made['id']}/cancel")
    where = f"{API}/projects/{made['id']}/events"

    stream = studio.get(where)
    rest = studio.get(where, headers={"last-event-id": "2"})
    ids = [int(line[4:]) for line in stream.text.splitlines() if line.startswith("id: ")]

    assert stream.headers["content-type"].startswith("text/event-stream")
    assert ids == list(range(1, len(ids) + 1))
    assert "id: 2\n" not in rest.text
    assert "id: 3\n" in rest.text
    assert studio.get(where, headers={"last-event-id": str(ids[-1])}).status_code == 204


def test_a_plan_may_wait_be_changed_under_its_version_and_is_started_once(studio: TestClient) -> None:
    made = studio.post(f"{API}/projects", json=project(planOnly=True)).json()
    place = f"{API}/projects/{made['id']}"
    assert (made["status"], made["tasks"]) == ("planning", {})
    waiting = studio.get(place).json()["plan"]
    assert [task["key"] for task in waiting["tasks"]] == ["sort", "write"]
    fewer = {"goal": "Sorted", "tasks": PLAN[:1]}

    read = {"if-match": f'"{waiting["version"]}"'}
    changed = studio.patch(f"{place}/plan", json=fewer, headers=read)
    assert (changed.status_code, changed.json()["plan"]["goal"]) == (200, "Sorted")
    assert studio.patch(f"{place}/plan", json=fewer, headers=read).status_code == 412
    wrong = studio.post(f"{place}/start", json={"plan": {"tasks": [{"key": "a", "dependsOn": ["b"]}]}})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "plan_invalid")
    assert {one["path"] for one in wrong.json()["details"]} >= {"tasks[0].dependsOn[0]", "tasks[0].role"}

    begun = studio.post(f"{place}/start", json={})
    assert (begun.status_code, list(begun.json()["tasks"])) == (200, ["sort"])
    assert "plan" not in studio.get(place).json()
    again = studio.post(f"{place}/start", json={})
    late = studio.patch(f"{place}/plan", json=fewer)
    assert [(one.status_code, one.json()["code"]) for one in (again, late)] == [(409, "already_started")] * 2
