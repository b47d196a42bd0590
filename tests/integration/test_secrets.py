"""Secrets are found in the secret store and nowhere else, whatever a run does with them (spec: reliability, row 51)."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from orchestrator import connections, control, views
from orchestrator.events import redis_client
from orchestrator.producer import submit
from orchestrator.settings import Model, Settings
from orchestrator.signals import answer
from orchestrator.stack.environment import child_environment
from orchestrator.stack.flower import Flower
from orchestrator.store.database import get_database
from orchestrator.store.tables import metadata
from orchestrator.vault import new_key
from registry.skills import catalogue
from tests import canary_worker
from tests.projects import Watched, task
from tests.stub_model import StubModel
from tests.studio import asked, session_of
from tests.support import eventually
from tests.traps import Exchange, TrapSite, serving
from tests.workers import WorkerProcess

pytestmark = pytest.mark.slow

#: A secret for each way in.
CANARY = {
    name: f"canary{number}{name}7qx93k"
    for number, name in enumerate(("environment", "connection", "header", "query", "fault", "result", "body"))
}


@pytest.fixture
def site() -> Iterator[TrapSite]:
    """Repeats what it was sent, as a careless server does."""

    def repeat(exchange: Exchange) -> None:
        exchange.answer(json.dumps({"got": exchange.asked.headers, "at": exchange.asked.path}), kind="application/json")

    with serving() as found:
        found.routes["/echo"] = repeat
        yield found


@pytest.fixture
def guarded(live_settings: Settings, site: TrapSite, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A whole system with a key of its own, that may reach the site; a connection whose secret is a canary."""
    monkeypatch.setattr(catalogue, "catalogue", canary_worker.more)
    found = live_settings.model_copy(
        update={
            "secret_key": SecretStr(new_key()),
            "model_api_key": SecretStr(CANARY["environment"]),
            "net_allow": f"127.0.0.1:{site.port}",
        }
    )
    bound = {"kind": "http", "hosts": [f"http://127.0.0.1:{site.port}"], "secret": CANARY["connection"]}
    connections.save(found, found.owner, "shop", bound)
    return found


def turns(site: TrapSite) -> list[dict[str, Any]]:
    """What the model does: a call with secrets of every kind, a look at a secret, a fall, and a fault of the API."""
    request = {
        "method": "POST",
        "url": f"http://127.0.0.1:{site.port}/echo?token={CANARY['query']}",
        "headers": {"X-Api-Key": CANARY["header"]},
        "json": {"password": CANARY["body"]},
        "connection": "shop",
    }
    wrong = {"message": f"Incorrect API key provided: {CANARY['environment']}"}
    return [
        {"calls": [{"name": "http__request", "args": request}, {"name": "canary__tell"}, {"name": "canary__fall"}]},
        {"text": "Done.", "fail": {"status": 401, "times": 1, "error": wrong}},
    ]


def test_a_secret_is_found_in_the_secret_store_alone(
    guarded: Settings, site: TrapSite, tmp_path: Path, redis_url: str
) -> None:
    database = get_database(guarded)
    flower = Flower(tmp_path / "flower.log", child_environment(guarded))
    with StubModel(turns(site)) as model:
        watching = flower.start()
        worker = WorkerProcess(
            guarded,
            tmp_path / "worker.log",
            {
                "MODELS__STANDARD__NAME": "stub",
                "MODELS__STANDARD__BASE_URL": model.url,
                "MODEL_API_KEY": CANARY["environment"],
                "SECRET_KEY": guarded.secret_key.get_secret_value() if guarded.secret_key else "",
                "NET_ALLOW": guarded.net_allow,
            },
            module="tests.canary_worker",
            more={"CANARY_RESULT": CANARY["result"], "CANARY_FAULT": CANARY["fault"]},
        ).ready()
        try:
            skills = ["http.request", "canary.tell", "canary.fall"]
            plan = [task("a", skills=skills, retries=0)]
            (tmp_path / "project.json").write_text(json.dumps({"title": "A test", "brief": "b", "tasks": plan}))
            asked = guarded.model_copy(update={"models": {"standard": Model(name="stub", base_url=model.url)}})
            project = Watched(guarded, submit(tmp_path / "project.json", settings=asked).project_id)

            shown = _approved(project, guarded, redis_url)
            assert project.ended() == "failed", "the model's API refuses the key once"
            control.retry(guarded, project.tasks["a"].id, by="ann")
            shown += _approved(project, guarded, redis_url)
            eventually(lambda: project.status == "completed", 30)

            sent = [asked for asked in site.requests if asked.path.startswith("/echo")]
            assert len(sent) == 2, "what was approved ran, with everything that was masked"
            assert all(CANARY["query"] in asked.path and CANARY["header"] in str(asked.headers) for asked in sent)
            assert all(CANARY["connection"] in str(asked.headers) for asked in sent)
            assert all(CANARY["body"] in asked.body.decode() for asked in sent)

            shown += [project.shown, [event.to_json() for event in project.trace], _signals(guarded)]
            shown += [_flower(flower.url)]
            places = {
                "views": json.dumps(shown),
                "pages": _pages(guarded, project),
                "database": _database(database),
                "redis": _redis(redis_url),
                "logs": worker.output + (tmp_path / "flower.log").read_text(),
                "model": json.dumps([*model.latest][1:]),
            }
        finally:
            worker.kill()
            watching.end(5)
            flower.close()
    assert "log has it under" in places["views"], "the fall came to a generic word"
    assert "signal.answered" in places["pages"], "the audit log was looked at as well"
    known = {place: sorted(name for name, secret in CANARY.items() if secret in text) for place, text in places.items()}
    # What the model itself wrote, and what its tools brought it, it sees again; what a connection opened it never saw.
    assert known.pop("model") == ["body", "header", "query", "result"]
    assert known == {place: [] for place in known}


def _approved(project: Watched, settings: Settings, redis_url: str) -> list[Any]:
    """Says yes to what is asked; what was shown of it."""
    signal = project.open_signal(30)
    with get_database(settings).read() as connection:
        seen = views.signal(connection, signal.id)
    assert seen["action"]["input"]["headers"] == {"X-Api-Key": "***"}
    assert seen["action"]["input"]["url"].endswith("token=***")
    card = eventually(lambda: signal.id in (found := _redis(redis_url)) and found, 10)
    answer(settings, signal.id, option="Do it", by="ann")
    return [seen, card]


def _pages(settings: Settings, project: Watched) -> str:
    """What the desk and the API show of everything, and the metrics: every route that needs no more than a project, a
    task, a run or a signal."""
    own = {"project_id": project.id, "key": "a", "run_id": project.runs[0].id, "signal_id": project.signals[0].id}
    own |= {"seq": "3", "task_id": project.tasks["a"].id}
    desk = ["/", "/inbox", "/inbox/{signal_id}", "/agents", "/schedules", "/workers"]
    parts = ("", "/tasks/{key}", "/runs", "/timeline", "/trace", "/events/{seq}", "/cost", "/files")
    desk += [f"/projects/{{project_id}}{part}" for part in parts]
    found = []
    with asked(settings, session_of(settings)) as client:
        for path in sorted({*client.get("/openapi.json").json()["paths"], *desk}):
            with suppress(KeyError):
                url = path.format(**own)
                if not url.endswith("/stream"):
                    found.append(f"{url} {client.get(url).text}")
    assert len(found) > 30
    assert any(one.startswith(f"/projects/{project.id}/trace ") and "http.request" in one for one in found)
    return "\n".join(found)


def _signals(settings: Settings) -> Any:
    with get_database(settings).read() as connection:
        return views.signal_list(connection, settings.owner, status=None)


def _database(database: Any) -> str:
    """Everything in every table, as it lies there."""
    with database.read() as connection:
        rows = [tuple(row) for table in metadata.tables for row in connection.execute(text(f'SELECT * FROM "{table}"'))]
    assert any("sealed:" in str(row) for row in rows), "calls that hold a secret are encrypted"
    return repr(rows)


def _redis(url: str) -> str:
    client = redis_client(url.replace("redis+socket://", "unix://"))
    found: list[Any] = []
    for key in client.keys("*"):  # type: ignore[union-attr]
        read = {
            "string": client.get,
            "hash": client.hgetall,
            "list": lambda k: client.lrange(k, 0, -1),
            "set": client.smembers,
            "zset": lambda k: client.zrange(k, 0, -1),
            "stream": client.xrange,
        }[str(client.type(key))]
        found.append((key, read(key)))
    return repr(found)


def _flower(url: str) -> str:
    def tasks() -> str:
        with urllib.request.urlopen(f"{url}/api/tasks", timeout=5) as answered:
            return str(answered.read().decode())

    return str(eventually(lambda: (found := tasks()) != "{}" and found, 20, 0.2))
