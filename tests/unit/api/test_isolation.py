"""Nothing of one owner is there for another, on any route of the document (spec: skills 20): 404, and no trace of it.

The routes come from the OpenAPI document, so a new one is tested by being there. A parameter in a path that names no
kind of thing known here fails the test: it has to be given two owners' things first.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import insert, select

from orchestrator import keys, plugins
from orchestrator.api.app import create_app
from orchestrator.settings import Settings
from orchestrator.store import requests
from orchestrator.store.database import get_database, now_ms
from orchestrator.store.kept import memories
from orchestrator.store.tables import runs, signals
from registry.ids import new_id
from tests.studio import API, asked, bearer, key_of, session_of

#: Routes without anything of an owner's in their path, or that belong to nobody.
PUBLIC = {"/health", "/health/ready"}
#: What is delivered there is nobody's request: it proves itself by the secret of the hook.
SIGNED = f"{API}/hooks/{{hook_id}}"
#: What stands in a path and belongs to everybody: it is there for each, with what is each one's own beside it.
SHARED = {"citizen_id"}
#: Words that make a thing of the owner recognisable wherever it shows.
MARK = "mark-of-ann"

Things = dict[str, str]


def things_of(settings: Settings, client: TestClient, owner: str) -> Things:
    """One of each thing that has an id in a path."""
    mark = MARK if owner == "ann" else "of-bob"
    plan = [{"key": "t", "role": "writer", "instruction": mark}]
    body = {"title": mark, "brief": "b", "tasks": plan, "rehearse": True, "inputs": ["a.txt"]}
    made = client.post(f"{API}/projects", json=body | {"files": [{"path": "a.txt", "text": mark}]}).json()
    agent = client.post(f"{API}/agents", json={"name": mark, "instructions": "Work."}).json()
    schedule = client.post(
        f"{API}/schedules", json={"title": mark, "everyMinutes": 5, "action": {"kind": "prompt", "text": mark}}
    ).json()
    steps = [{"key": "a", "title": mark, "role": "writer", "instruction": "w"}]
    generator = client.post(f"{API}/generators", json={"name": mark, "steps": steps}).json()
    name = f"c-{owner}"
    connection = {"kind": "telegram", "token": "123456:" + "A" * 35}
    assert client.put(f"{API}/connections/{name}", json=connection).status_code == 201
    thread = client.post(f"{API}/threads", json={"agent": agent["id"], "title": mark}).json()
    within = settings.workspaces / thread["id"] / "inputs"
    within.mkdir(parents=True)
    (within / "a.txt").write_text(mark)  # the path that stands for a file of the project as well
    source = client.post(f"{API}/knowledge", json={"name": f"{mark}.md", "text": mark}).json()
    key = keys.add(settings, mark, owner=owner)[0]
    plugin = plugin_of(settings, owner, mark)
    signal_id, memory_id, call_id = new_id(), new_id(), new_id()
    call = {"id": call_id, "owner_id": owner, "skill": "files.read", "input": {"path": mark}}
    row = {"id": signal_id, "owner_id": owner, "kind": "notice", "status": "open", "title": mark, "options": []}
    memory = {"id": memory_id, "owner_id": owner, "namespace": "owner", "kind": "fact", "content": mark}
    rest = {"content_hash": mark, "tags": [], "importance": 0.5, "words": 1}

    def write(connection: Any) -> str:
        more = {"priority": "normal", "schema": {}, "created_at": now_ms(), "expires_at": now_ms() + 10**9}
        connection.execute(insert(signals).values(row | more))
        assert requests.put(connection, call, 1)
        connection.execute(insert(memories).values(memory | rest | {"created_at": now_ms()}))
        return str(connection.execute(select(runs.c.id).where(runs.c.project_id == made["id"])).scalar_one())

    run_id = get_database(settings).write(write)
    return {
        "project_id": made["id"],
        "path": "inputs/a.txt",
        "task_id": made["tasks"]["t"],
        "run_id": run_id,
        "call_id": call_id,
        "thread_id": thread["id"],
        "source_id": source["id"],
        "signal_id": signal_id,
        "agent_id": agent["id"],
        "schedule_id": schedule["id"],
        "generator_id": generator["id"],
        "memory_id": memory_id,
        "plugin_id": plugin,
        "key_id": key["id"],
        "name": name,
        "citizen_id": citizen_of(client, mark),
        "hook_id": client.post(f"{API}/hooks", json={"name": mark, "agentId": agent["id"]}).json()["id"],
    }


def citizen_of(client: TestClient, mark: str) -> str:
    """The id of a citizen whose copy this owner has given a name of its own."""
    copy = client.post(f"{API}/citizens/ansel-brook/adopt").json()["id"]
    assert client.patch(f"{API}/agents/{copy}", json={"name": f"{mark} copy"}).status_code == 200
    return "ansel-brook"


def plugin_of(settings: Settings, owner: str, mark: str) -> str:
    """The id of a plugin this owner has installed."""
    about = [{"id": f"{owner}plug-a", "name": mark, "instructions": "Work."}]
    bundle = {"id": f"{owner}plug", "name": mark, "version": "1.0.0", "agents": about}
    source = settings.home / f"source-{owner}"
    source.mkdir(parents=True)
    (source / "manifest.json").write_text(json.dumps(bundle))
    mine = settings.model_copy(update={"owner": owner})
    return str(plugins.install(mine, source, [], taken=frozenset())["id"])


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    operation: dict[str, Any]

    @property
    def parameters(self) -> list[str]:
        return [one["name"] for one in self.operation.get("parameters", []) if one["in"] == "path"]

    def url(self, things: Things) -> str:
        path = self.path
        for name in self.parameters:
            assert name in things, f"{self.method} {self.path}: give both owners a {name} in things_of"
            path = path.replace(f"{{{name}}}", things[name])
        return path


def routes(settings: Settings) -> list[Route]:
    document = create_app(settings).openapi()
    every = [Route(m.upper(), path, one) for path, all_ in document["paths"].items() for m, one in all_.items()]
    return [one for one in every if (one.method, one.path) != ("POST", SIGNED)]


#: Bodies with which a route would move something of its owner's.
BODIES: dict[str, Any] = {
    "/answer": {"payload": None},
    "/hooks/{hook_id}": {"name": "taken"},
    "/fork": {"at": 1},
    "/repair": {"how": "skip"},
    "/run": {"rehearse": True},
    "/start": {},
    "/plan": {"note": "taken"},
    "/send": {"text": "taken"},
}


def body_of(route: Route) -> Any:
    if "requestBody" not in route.operation:
        return None
    return next((body for end, body in BODIES.items() if route.path.endswith(end)), {"title": "taken"})


@pytest.fixture
def two(settings: Settings) -> Iterator[tuple[TestClient, Things, Things]]:
    """The API, and what Ann and Bob have."""
    with asked(settings) as client:
        things = {}
        for owner in ("ann", "bob"):
            client.headers.update(bearer(key_of(settings, owner)))
            things[owner] = things_of(settings, client, owner)
        del client.headers["authorization"]
        yield client, things["ann"], things["bob"]


def everything(client: TestClient, headers: dict[str, str]) -> dict[str, Any]:
    """All an owner sees of what is theirs."""
    lists = ("projects", "agents", "schedules", "generators", "memories", "connections", "threads", "knowledge")
    lists += ("signals?status=all",)
    return {one: client.get(f"{API}/{one}", headers=headers).json()["items"] for one in lists}


@pytest.mark.parametrize(
    "as_who", [lambda s: bearer(key_of(s, "bob")), lambda s: session_of(s, "bob")], ids=["key", "person"]
)
def test_what_is_anothers_is_not_there(
    settings: Settings, two: tuple[TestClient, Things, Things], as_who: Callable[[Settings], dict[str, str]]
) -> None:
    client, hers, _ = two
    ann, bob = session_of(settings, "ann"), as_who(settings)
    before = everything(client, ann)
    assert all(MARK in str(seen) or "c-ann" in str(seen) for seen in before.values()), before
    owned = [route for route in routes(settings) if route.parameters]

    found = {}
    for route in owned:
        answer = client.request(
            route.method,
            route.url(hers),
            json=body_of(route),
            headers=bob | {"accept": "application/json"},
        )
        person_only = answer.status_code == 403 and answer.json()["code"] == "not_a_person"
        saving = route.method == "PUT"  # a name of one's own: it makes a thing of Bob's, or is refused for its body
        shared = set(route.parameters) <= SHARED
        if not person_only and not saving and not shared and answer.status_code != 404:
            found[f"{route.method} {route.path}"] = (answer.status_code, answer.text[:200])
        assert MARK not in answer.text

    assert len(owned) >= 20
    assert found == {}
    assert everything(client, ann) == before


def test_the_same_routes_find_what_is_ones_own(settings: Settings, two: tuple[TestClient, Things, Things]) -> None:
    """So that the walk above means something: with one's own ids none of them is 404."""
    client, hers, _ = two
    ann = session_of(settings, "ann") | {"accept": "application/json"}
    order = {"GET": 0, "POST": 1, "PUT": 1, "PATCH": 1, "DELETE": 2}
    owned = sorted((one for one in routes(settings) if one.parameters), key=lambda one: order[one.method])

    missing = [
        f"{route.method} {route.path}"
        for route in owned
        if client.request(route.method, route.url(hers), json=body_of(route), headers=ann).status_code == 404
    ]

    assert missing == []


def test_no_list_shows_what_is_anothers(settings: Settings, two: tuple[TestClient, Things, Things]) -> None:
    client, _, _ = two
    headers = session_of(settings, "bob") | {"accept": "application/json"}
    lists = [one for one in routes(settings) if one.method == "GET" and not one.parameters]

    for route in lists:
        answer = client.get(route.path, params={"q": MARK} if route.path.endswith("/search") else {}, headers=headers)
        assert answer.status_code == 200, route.path
        assert MARK not in answer.text, route.path
        assert "c-ann" not in answer.text, route.path


def test_every_route_needs_a_key_or_a_session(settings: Settings, two: tuple[TestClient, Things, Things]) -> None:
    client, hers, _ = two
    client.cookies.clear()

    open_ = [
        f"{route.method} {route.path}"
        for route in routes(settings)
        if client.request(route.method, route.url(hers), json=body_of(route)).status_code != 401
    ]

    assert set(open_) == {f"GET {path}" for path in PUBLIC & {one.path for one in routes(settings)}} | {
        f"POST {API}/session"
    }


@pytest.mark.parametrize(
    ("foreign", "refusal"),
    [
        ({"origin": "https://evil.example"}, (403, "foreign_origin")),
        ({"sec-fetch-site": "cross-site"}, (403, "foreign_origin")),
        ({"host": "evil.example"}, (403, "foreign_host")),
        ({"content-type": "text/plain"}, (415, "unsupported_type")),
    ],
)
def test_no_page_of_somebody_else_moves_anything_on_any_route(
    settings: Settings,
    two: tuple[TestClient, Things, Things],
    foreign: dict[str, str],
    refusal: tuple[int, str],
) -> None:
    client, hers, _ = two
    ann = session_of(settings, "ann") | {"accept": "application/json", "content-type": "application/json"}
    before = everything(client, ann)
    moving = [one for one in routes(settings) if one.method != "GET"]

    let_in = {}
    for route in moving:
        body = json.dumps(body_of(route) or {})
        answer = client.request(route.method, route.url(hers), content=body, headers=ann | foreign)
        if (answer.status_code, answer.json()["code"]) != refusal:
            let_in[f"{route.method} {route.path}"] = (answer.status_code, answer.text[:200])

    assert len(moving) >= 40
    assert let_in == {}
    assert everything(client, ann) == before
