"""A project that is submitted over HTTP is a part of the trace of whoever asks."""

from fastapi.testclient import TestClient

from tests.studio import API
from tests.telemetry import remembered

ASKING = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PLAN = [{"key": "sort", "role": "analyst", "instruction": "Sort the secret."}]


def test_a_submit_hangs_under_the_request_and_the_request_under_its_caller(studio: TestClient) -> None:
    body = {"title": "Notes", "brief": "the secret", "tasks": PLAN, "rehearse": True}
    with remembered() as memory:
        made = studio.post(f"{API}/projects", json=body, headers={"traceparent": ASKING})

    assert made.status_code == 201
    submit = memory.spans.one("submit_project")
    known = {span.id: span for span in memory.spans}
    top = submit
    while top.parent in known:
        top = known[top.parent]
    assert (top.kind, f"00-{top.trace_id}-{top.parent}-01") == ("SERVER", ASKING)
    assert submit.attributes == {"officina.project.id": made.json()["id"], "officina.project.tasks": 1}
    assert "secret" not in str([span.attributes for span in memory.spans])
