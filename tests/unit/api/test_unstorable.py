"""A NUL in whatever a request brings: PostgreSQL keeps none in a text, so each is refused at its place or kept as JSON.

SQLite takes any text. Here it is made as strict, so that what would be a 500 on the other database is one here.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import DataError

from orchestrator.api.replies import of_database
from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from registry.base import Json
from tests.studio import API, asked, session_of

STEP = {"key": "a", "title": "A", "role": "writer", "instruction": "Write {{on}}."}
TASK = {"key": "t", "title": "T", "role": "writer", "instruction": "w", "expectedOutput": "A page.", "agent": "Ada"}
SMALL = {"key": "t", "role": "writer", "instruction": "w"}
#: Bodies that are taken as they are; each is sent with a NUL in each of its texts before.
COURSE: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/agents", {"name": "Ada", "role": "writer", "instructions": "Work."}),
    ("PATCH", "/agents/{agent}", {"name": "Ada", "description": "Works."}),
    ("POST", "/generators", {"name": "G", "inputs": [{"key": "on", "label": "On", "type": "text"}], "steps": [STEP]}),
    ("POST", "/generators/{generator}/run", {"inputs": {"on": "bees"}, "rehearse": True}),
    ("POST", "/hooks", {"name": "H", "agentId": "{agent}", "detail": "Look."}),
    ("PATCH", "/hooks/{hook}", {"name": "I", "detail": "Look again."}),
    ("POST", "/knowledge", {"name": "k.md", "text": "The tram runs.", "agentId": "{agent}"}),
    ("POST", "/projects", {"title": "P", "brief": "b", "tasks": [SMALL], "rehearse": True, "planOnly": True}),
    ("PATCH", "/projects/{project}/plan", {"goal": "g", "summary": "s", "tasks": [TASK]}),
    ("POST", "/projects/{project}/start", {"plan": {"tasks": [SMALL]}}),
    ("POST", "/projects", {"title": "Q", "brief": "b", "tasks": [SMALL], "rehearse": True, "planOnly": True}),
    ("POST", "/projects/{project}/plan", {"note": "Fewer."}),
    ("POST", "/schedules", {"title": "S", "everyMinutes": 5, "action": {"kind": "prompt", "text": "Hello"}}),
    ("PATCH", "/schedules/{schedule}", {"title": "R"}),
    ("POST", "/skills/invoke", {"name": "memory.store", "input": {"content": "Bees dance.", "tags": ["bees"]}}),
    ("POST", "/threads", {"agent": "{agent}", "title": "T", "mode": "ask"}),
    ("PATCH", "/threads/{thread}", {"title": "U", "speaker": "{agent}", "mode": "plan"}),
    ("POST", "/threads/{thread}/send", {"text": "Hello", "attachments": [{"name": "a.md", "text": "x"}]}),
    ("POST", "/keys", {"name": "K", "scopes": ["read"]}),
    ("PUT", "/connections/bot", {"kind": "telegram", "token": "123456:" + "A" * 35, "chatId": "@bees"}),
]


#: Those in which most texts become a column of their own.
SHORT = [one for one in COURSE if one[0] == "POST" and one[1] in ("/agents", "/hooks", "/schedules", "/threads")]
#: What else an agent is made of.
MORE: dict[str, Any] = {
    "instructions": "Work.",
    "prompts": {"other": {"instructions": "Rest."}},
    "skills": ["math.evaluate"],
    "packs": {"files": {"spec": {}, "disabledTools": ["grep"]}},
    "permissions": {"fs.read": "ask"},
    "budget": {"maxSteps": 5, "policy": "error"},
    "models": {"a": {"model": "m", "effort": "low"}},
    "state": {"initial": {"n": 1}, "reducers": {"n": "replace"}},
    "hooks": [{"event": "Stop", "matcher": "failed", "handler": {"command": ["true"]}, "when": {"mode": "ask"}}],
    "graph": {
        "nodes": {"s": {"type": "core:start"}, "t": {"type": "llm:generate"}, "e": {"type": "core:end"}},
        "edges": [{"from": "s", "to": "t"}, {"from": "t", "to": "e", "when": "$state.n == 1"}],
    },
}
#: One of each kind, and what is hard to take.
ODD: list[Any] = [None, True, 5, -(2**70), 1e300, "", "x", "\u202e" * 200, [], [[]], ["x"], {}, {"a": {"b": 1}}]


def with_a_nul(value: Json) -> list[Json]:
    return [value + "\0x"] if isinstance(value, str) else []


def of_another_kind(value: Json) -> list[Json]:
    return [odd for odd in ODD if odd != value]


def changed(value: Json, change: Callable[[Json], list[Json]]) -> Iterator[Json]:
    """The value with one part of it changed, in each way, for each part."""
    yield from change(value)
    if isinstance(value, (dict, list)):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            for other in changed(one, change):
                whole = copy.copy(value)
                whole[key] = other  # type: ignore[index]
                yield whole


@contextmanager
def strict(settings: Settings) -> Iterator[None]:
    """The database takes no text with a NUL, as PostgreSQL does."""
    engine = get_database(settings).engine

    def look(_c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        for row in parameters if many else [parameters]:
            values = row.values() if isinstance(row, dict) else row
            assert not any(isinstance(one, str) and "\0" in one for one in values), statement

    event.listen(engine, "before_cursor_execute", look)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", look)


def filled(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: filled(one, ids) for key, one in value.items()}
    return value.format(**ids) if isinstance(value, str) and value in {f"{{{name}}}" for name in ids} else value


@pytest.mark.parametrize("course", [SHORT, pytest.param(COURSE, marks=pytest.mark.long)], ids=["short", "whole"])
def test_no_text_of_a_request_comes_to_a_database_with_a_nul(
    settings: Settings, course: list[tuple[str, str, dict[str, Any]]]
) -> None:
    ids: dict[str, str] = {}
    person = session_of(settings)
    with asked(settings, person, raise_server_exceptions=False) as client, strict(settings):
        for method, path, body in course:
            where, good = API + path.format(**ids), filled(body, ids)
            for bad in changed(good, with_a_nul):
                reply = client.request(method, where, json=bad)
                assert reply.status_code < 500, (method, path, bad, reply.text)
            made = client.request(method, where, json=good)
            # What a model is told is kept as JSON, and may have begun a run.
            assert made.status_code < 300 or made.json()["code"] == "thread_busy", (method, path, made.text)
            if method == "POST" and path.count("/") == 1 and "id" in made.json():
                ids[path[1:].removesuffix("s")] = made.json()["id"]


@pytest.mark.long
def test_a_part_of_another_kind_is_never_a_fault_of_ours(settings: Settings) -> None:
    """What the document of the API says nothing of: what an agent, a plan or an input is made of."""
    ids, wrong = dict[str, str](), list[str]()
    with asked(settings, session_of(settings), raise_server_exceptions=False) as client:
        for method, path, body in [*COURSE, ("PATCH", "/agents/{agent}", MORE)]:
            where, good = API + path.format(**ids), filled(body, ids)
            makes = method == "POST" and path.count("/") == 1
            made = client.request(method, where, json=good) if makes else None
            if made is not None and "id" in made.json():
                ids[path[1:].removesuffix("s")] = made.json()["id"]
            for bad in changed(good, of_another_kind):
                reply = client.request(method, where, json=bad)
                if reply.status_code >= 500 and reply.json()["code"] != "no_broker":
                    wrong.append(f"{method} {path} {bad}: {reply.text}")
            if not makes:
                client.request(method, where, json=good)
    assert wrong == []


def test_nothing_is_found_at_an_address_with_a_nul(settings: Settings) -> None:
    with asked(settings, session_of(settings), raise_server_exceptions=False) as client, strict(settings):
        found = {
            where: client.request("POST" if "hooks" in where else "GET", API + where).json()["code"]
            for where in (
                "/agents/a%00b",
                "/projects/x/files/a%00b",
                "/hooks/%00",
                "/memories?kind=%00",
                "/audit?of=%00",
            )
        }

    assert list(found.values()) == ["not_found"] * 3 + ["malformed"] * 2


def test_what_comes_to_postgres_all_the_same_is_the_callers_fault() -> None:
    error = DataError("INSERT", {}, Exception("PostgreSQL text fields cannot contain NUL (0x00) bytes"))

    assert of_database(error).status_code == 400
    assert of_database(DataError("INSERT", {}, Exception("integer out of range"))).status_code == 500
