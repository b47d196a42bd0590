"""A project whose agent reads the web and calls an API: real workers, a site on loopback, an answer of a person."""

import json
from pathlib import Path
from typing import Any

from sqlalchemy import select

from orchestrator import connections
from orchestrator.producer import submit
from orchestrator.settings import Settings
from orchestrator.signals import answer
from orchestrator.store.database import get_database
from orchestrator.store.tables import messages
from tests.integration.web.pages import PAGES
from tests.projects import Watched, start, task
from tests.traps import Exchange, TrapSite, serving


def search(site: TrapSite) -> Any:
    def found(exchange: Exchange) -> None:
        lines = [{"title": page.title, "url": site.url(page.path), "content": page.fact} for page in PAGES[:3]]
        exchange.answer(json.dumps({"results": lines}), kind="application/json")

    return found


def test_reading_asks_nobody_acting_asks_once_and_secrets_stay_inside(
    tmp_path: Path, live_settings: Settings, worker_process: Any
) -> None:
    with serving() as site:
        for page in PAGES[:3]:
            site.page(page.path, page.html)
        site.page("/robots.txt", "User-agent: *\nDisallow: /private\n", kind="text/plain")
        site.routes["/search"] = search(site)
        site.routes["/order"] = lambda exchange: exchange.answer(
            json.dumps({"got": exchange.asked.headers.get("authorization")}), kind="application/json"
        )
        settings = live_settings
        shop = {"kind": "http", "hosts": [site.url().rstrip("/")], "secret": "hunter2hunter2"}
        connections.save(settings, settings.owner, "shop", shop)
        providers = json.dumps([{"kind": "searxng", "url": site.url().rstrip("/")}])
        worker_process(settings, NET_ALLOW=f"127.0.0.1:{site.port}", SEARCH=providers).ready()
        order = {"method": "POST", "url": site.url("/order"), "json": {"n": 1}, "connection": "shop"}
        turns = {
            "a": [
                {"calls": [{"name": "web.search", "args": {"query": "lighthouse"}}]},
                {"calls": [{"name": "web__fetch", "args": {"url": "{{ results[0].output.results[0].url }}"}}]},
                {"calls": [{"name": "web.fetch", "args": {"url": site.url("/private/x")}}]},
                {"calls": [{"name": "web.fetch", "args": {"url": "http://169.254.169.254/latest/meta-data/"}}]},
                {"calls": [{"name": "web.research", "args": {"question": "When was it lit?", "depth": "quick"}}]},
                {"calls": [{"name": "http.json", "args": order}]},
                {"say": "{{ results[0].text }}"},
            ]
        }
        skills = ["web.search", "web.fetch", "web.research", "http.json"]
        plan = [task("a", role="researcher", skills=skills)]
        project = Watched(settings, start(tmp_path / "p", settings, plan, {"tasks": turns}).project_id)

        signal = project.open_signal(60)
        assert signal.action["skill"] == "http.json"
        assert [asked.path for asked in site.requests if asked.path == "/order"] == []
        answer(settings, signal.id, option="Do it", by="the test")

        assert project.ended() == "completed"
        results = project.kinds("tool.result")
        assert [(one["name"], one.get("code")) for one in results] == [
            ("web.search", None),
            ("web.fetch", None),
            ("web.fetch", "not_allowed"),
            ("web.fetch", "network_blocked"),
            ("web.research", None),
            ("http.json", None),
        ]
        with get_database(settings).read() as connection:
            query = select(messages.c.body).where(messages.c.run_id == project.runs[0].id).order_by(messages.c.number)
            heard = [body for body in connection.execute(query).scalars() if body["role"] == "tool"]
        assert [body["outside"] > 0 for body in heard] == [True] * 6, "a model reads all of this as data"
        assert PAGES[0].fact in " ".join(results[1]["output"]["content"].split())
        (placed,) = [asked for asked in site.requests if asked.path == "/order"]
        assert (placed.headers["authorization"], json.loads(placed.body)) == ("Bearer hunter2hunter2", {"n": 1})
        assert "/private/x" not in site.paths
        assert "hunter2" not in str([event.data for event in project.trace]) + str(project.tasks["a"].output)


def test_in_a_rehearsal_nothing_is_sent(tmp_path: Path, live_settings: Settings, worker_process: Any) -> None:
    with serving() as site:
        worker_process(live_settings, NET_ALLOW=f"127.0.0.1:{site.port}").ready()
        order = {"method": "POST", "url": site.url("/order")}
        (tmp_path / "script.json").write_text(
            json.dumps({"tasks": {"a": [{"calls": [{"name": "http.request", "args": order}]}, {"say": "done"}]}})
        )
        plan = [task("a", role="researcher", skills=["http.request"])]
        whole = {"title": "A test", "brief": "b", "tasks": plan, "script": "script.json"}
        (tmp_path / "project.json").write_text(json.dumps(whole))
        made = submit(tmp_path / "project.json", settings=live_settings, rehearse=True)
        project = Watched(live_settings, made.project_id)
        answer(live_settings, project.open_signal().id, option="Do it", by="the test")
        assert project.ended() == "completed"
        (result,) = project.kinds("tool.result")
        assert result["output"]["rehearsed"] is True
        assert site.requests == []
