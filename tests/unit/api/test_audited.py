"""Every way over HTTP to change something is in the audit log, or stands here with the reason why it is not."""

from typing import Any, Final

import pytest
from fastapi.routing import APIRoute
from sqlalchemy import insert

from orchestrator.api.desk import (
    acts,
    generator_pages,
    inbox_pages,
    keeping_pages,
    login_pages,
    project_pages,
    studio_pages,
    talk_pages,
)
from orchestrator.api.routes import routers
from orchestrator.settings import Settings
from orchestrator.store import audit
from orchestrator.store.database import get_database
from orchestrator.store.kept import memories
from registry.ids import new_id
from tests.studio import API, asked, bearer, key_of, session_of

Way = tuple[str, str]

TRACED: Final = "the project's trace has a line, with who it was"
SAID: Final = "the conversation is the record: what was said, when, and each run of it"

#: Where nothing is written, and why.
NOT_AUDITED: Final[dict[Way, str]] = {
    (
        "POST",
        "/hooks/{hook_id}",
    ): "a sender proves a secret and acts for nobody; what begins names the hook",
    ("PATCH", "/projects/{project_id}/plan"): TRACED,
    ("POST", "/projects/{project_id}/plan"): TRACED,
    ("POST", "/threads"): SAID,
    ("POST", "/threads/{thread_id}/send"): SAID,
    ("POST", "/threads/{thread_id}/compact"): SAID,
    ("POST", "/threads/{thread_id}/stop"): TRACED,
}
#: What is written: of the API and of the desk, whose pages call the same.
AUDITED: Final[dict[Way, str]] = {
    ("POST", "/agents"): "agent.saved",
    ("PATCH", "/agents/{agent_id}"): "agent.changed",
    ("POST", "/agents/{agent_id}/promote"): "agent.promoted",
    ("DELETE", "/agents/{agent_id}"): "agent.removed",
    ("POST", "/citizens/{citizen_id}/adopt"): "agent.saved",
    ("PUT", "/connections/{name}"): "connection.saved",
    ("DELETE", "/connections/{name}"): "connection.removed",
    ("POST", "/connections/{name}/remove"): "connection.removed",
    ("POST", "/generators"): "generator.saved",
    ("POST", "/generators/{generator_id}/run"): "project.submitted",
    ("DELETE", "/generators/{generator_id}"): "generator.removed",
    ("POST", "/generators/{generator_id}/delete"): "generator.removed",
    ("POST", "/hooks"): "hook.made",
    ("PATCH", "/hooks/{hook_id}"): "hook.changed",
    ("POST", "/hooks/{hook_id}/secret"): "hook.secret_shown",
    ("POST", "/hooks/{hook_id}/rotate"): "hook.rotated",
    ("DELETE", "/hooks/{hook_id}"): "hook.removed",
    ("POST", "/keys"): "key.made",
    ("DELETE", "/keys/{key_id}"): "key.revoked",
    ("POST", "/session"): "session.opened",
    ("DELETE", "/session"): "session.closed",
    ("POST", "/knowledge"): "knowledge.added",
    ("DELETE", "/knowledge/{source_id}"): "knowledge.removed",
    ("POST", "/knowledge/{source_id}/remove"): "knowledge.removed",
    ("DELETE", "/memories"): "memory.forgotten",
    ("DELETE", "/memories/{memory_id}"): "memory.forgotten",
    ("POST", "/memories/{memory_id}/forget"): "memory.forgotten",
    ("POST", "/pins/{pin_id}/remove"): "pin.removed",
    ("POST", "/api/plugins"): "plugin.installed",
    ("POST", "/api/plugins/{plugin_id}/disable"): "plugin.disabled",
    ("POST", "/api/plugins/{plugin_id}/enable"): "plugin.enabled",
    ("DELETE", "/api/plugins/{plugin_id}"): "plugin.removed",
    ("POST", "/projects"): "project.submitted",
    ("POST", "/projects/{project_id}/start"): "project.started",
    ("POST", "/projects/{project_id}/cancel"): "project.cancelled",
    ("POST", "/schedules"): "schedule.made",
    ("PATCH", "/schedules/{schedule_id}"): "schedule.changed",
    ("DELETE", "/schedules/{schedule_id}"): "schedule.removed",
    ("POST", "/schedules/{schedule_id}/{what}"): "schedule.changed",
    ("POST", "/signals/{signal_id}/answer"): "signal.answered",
    ("POST", "/signals/{signal_id}/dismiss"): "signal.dismissed",
    ("POST", "/inbox/{signal_id}/choose"): "signal.answered",
    ("POST", "/inbox/{signal_id}/fill"): "signal.answered",
    ("POST", "/inbox/{signal_id}/reject"): "signal.answered",
    ("POST", "/inbox/{signal_id}/dismiss"): "signal.dismissed",
    ("POST", "/skills/invoke"): "skill.called",
    ("PATCH", "/threads/{thread_id}"): "thread.changed",
    ("DELETE", "/threads/{thread_id}"): "thread.removed",
    ("POST", "/threads/{thread_id}/delete"): "thread.removed",
    ("POST", "/tasks/{task_id}/retry"): "task.retried",
    ("POST", "/runs/{run_id}/fork"): "run.forked",
    ("POST", "/runs/{run_id}/wake"): "run.woken",
    ("POST", "/runs/{run_id}/repair"): "run.repaired",
}


def ways() -> set[Way]:
    """Method and path, without its prefix, of every route that is there to change something."""
    desk = (acts, generator_pages, inbox_pages, keeping_pages, login_pages, project_pages, studio_pages, talk_pages)
    routes = [route for router in (*routers(), *(page.router for page in desk)) for route in router.routes]
    found = {(method, route.path) for route in routes if isinstance(route, APIRoute) for method in route.methods}
    return {(method, path.removeprefix(API)) for method, path in found if method not in ("GET", "HEAD")}


def test_every_way_to_change_something_is_audited_or_said_not_to_be() -> None:
    assert ways() == {*AUDITED, *NOT_AUDITED}
    assert {*AUDITED} & {*NOT_AUDITED} == set()


def test_what_is_said_of_a_way_is_what_it_writes(settings: Settings) -> None:
    """A course through the studio: each request writes what is promised for its way, and nothing where nothing is."""
    got: dict[str, Any] = {}
    step = {"key": "a", "title": "A", "role": "writer", "instruction": "w"}
    task = {"key": "t", "role": "writer", "instruction": "w"}
    course: list[tuple[str, str, Any]] = [
        ("POST", "/agents", {"name": "Ada", "instructions": "Work."}),
        ("POST", "/agents/{agent_id}/promote", None),
        ("POST", "/generators", {"name": "G", "steps": [step]}),
        ("POST", "/generators/{generator_id}/run", {"inputs": {}, "rehearse": True}),
        ("DELETE", "/generators/{generator_id}", None),
        ("POST", "/hooks", {"name": "H", "agentId": "{agent_id}"}),
        ("PATCH", "/hooks/{hook_id}", {"name": "I"}),
        ("POST", "/hooks/{hook_id}/rotate", None),
        ("DELETE", "/hooks/{hook_id}", None),
        ("POST", "/knowledge", {"name": "k.md", "text": "The tram runs."}),
        ("DELETE", "/knowledge/{source_id}", None),
        ("POST", "/projects", {"title": "P", "brief": "b", "tasks": [task], "rehearse": True}),
        ("POST", "/projects/{project_id}/cancel", None),
        ("POST", "/skills/invoke", {"name": "math.evaluate", "input": {"expression": "2^10"}}),
        ("DELETE", "/memories?all=true", None),
        ("POST", "/threads", {"agent": "{agent_id}"}),
        ("PATCH", "/threads/{thread_id}", {"mode": "plan"}),
        ("DELETE", "/threads/{thread_id}", None),
        ("DELETE", "/agents/{agent_id}", None),
    ]
    fact = {"id": new_id(), "owner_id": settings.owner, "namespace": "owner", "kind": "fact", "content": "Fridays."}
    rest = {"content_hash": "f", "tags": [], "importance": 0.5, "words": 1, "created_at": 1}
    get_database(settings).write(lambda c: c.execute(insert(memories).values(fact | rest)))
    with asked(settings, bearer(key_of(settings))) as client:
        for method, path, body in course:
            filled = {k: v.format(**got) if isinstance(v, str) else v for k, v in body.items()} if body else body
            before = len(lines(settings))
            reply = client.request(method, API + path.format(**got), json=filled)
            assert reply.status_code < 300, (method, path, reply.text)
            if method == "POST" and path.count("/") == 1:
                noun = {"knowledge": "source"}.get(path[1:], path[1:].removesuffix("s"))
                got[f"{noun}_id"] = reply.json()["id"]
            way = (method, path.partition("?")[0])
            new = lines(settings)[before:]
            assert (AUDITED[way] in [act for act, _ in new]) if way in AUDITED else not new, (way, new)
            assert {by for _, by in new} <= {"key of local"}, way


@pytest.mark.parametrize("way", [("DELETE", "/session")])
def test_the_end_of_a_session_is_on_record(settings: Settings, way: Way) -> None:
    with asked(settings, session_of(settings)) as client:
        assert client.request(way[0], API + way[1]).status_code == 204
    assert lines(settings)[-1] == (AUDITED[way], "local")


def lines(settings: Settings) -> list[tuple[str, str]]:
    """Acts and who did them, in their order."""
    with get_database(settings).read() as connection:
        rows = audit.page(connection, settings.owner, 1_000)
    return [(row.act, row.by) for row in reversed(rows)]
