"""One agent calls every skill of the catalogue: real workers, counterparts on loopback, a person's answers.

The stand-in plays the model. What reads or writes its own workspace runs at once; the seven skills that act on the
world run only after their answer.
"""

import base64
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from orchestrator import connections
from orchestrator.settings import Settings
from orchestrator.signals import answer
from registry.skills import catalogue
from tests import stub_messengers
from tests.integration.comms.conftest import mailbox
from tests.integration.web.pages import PAGES
from tests.mail_servers import PASSWORD, ImapServer, SmtpServer
from tests.projects import Watched, start, task
from tests.stub_messengers import BEARER, NUMBER_ID, TOKEN, Messenger
from tests.support import eventually
from tests.traps import Exchange, TrapSite, serving

WORLD = {
    *("code.execute", "code.scaffold_react_node", "email.send", "http.json", "http.request"),
    *("telegram.send", "whatsapp.send"),
}
PAGE = PAGES[0]


@pytest.fixture
def site() -> Iterator[TrapSite]:
    """A page, a search engine, an API and a maker of pictures."""
    with serving() as found:
        found.page(PAGE.path, PAGE.html)
        hits = [{"title": PAGE.title, "url": found.url(PAGE.path), "content": PAGE.fact}]
        found.routes["/search"] = as_json({"results": hits})
        found.routes["/order"] = as_json({"placed": True})
        drawn = io.BytesIO()
        Image.new("RGB", (1024, 1024), "teal").save(drawn, "PNG")
        picture = base64.b64encode(drawn.getvalue()).decode()
        found.routes["/v1/images/generations"] = as_json({"data": [{"b64_json": picture}]})
        yield found


def as_json(body: Any) -> Callable[[Exchange], None]:
    return lambda exchange: exchange.answer(json.dumps(body), kind="application/json")


@pytest.fixture
def messenger() -> Iterator[Messenger]:
    with stub_messengers.serving() as found:
        yield found


def calls_of(site: TrapSite) -> list[dict[str, dict[str, Any]]]:
    """What the agent calls, turn by turn: skill -> its input."""
    prompt = {"kind": "prompt", "text": "Look at the lighthouse again."}
    step = {"key": "look", "title": "Look", "role": "writer", "instruction": "Describe {{ '{{place}}' }}."}
    part = {
        "name": "weather.tell",
        "description": "Tells the weather.",
        "worldActing": False,
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object"},
    }
    return [
        {
            "files.write": {"path": "notes.txt", "content": "The lamp turns.\n"},
            "files.list": {},
            "math.evaluate": {"expression": "sqrt(3^2 + 4^2)"},
            "docs.write_markdown": {"title": "Lamp", "markdown": "It turns."},
            "docs.write_docx": {"title": "Lamp", "markdown": "It turns."},
            "docs.write_pdf": {"title": "Lamp", "markdown": "It turns."},
            "scene3d.create": {"title": "Lamp", "objects": [{"kind": "sphere"}]},
            "image.generate": {"prompt": "a lighthouse"},
            "memory.store": {"content": "The lamp was lit in 1801."},
            "signal.raise": {"title": "The lamp is lit"},
            "schedule.create": {"title": "Look again", "everyMinutes": 60, "action": prompt},
        },
        {
            "files.read": {"path": "notes.txt"},
            "files.search": {"query": "lamp"},
            "memory.recall": {"query": "lamp"},
            "llm.generate": {"prompt": "Say a word."},
            "llm.structured": {
                "prompt": "Give a year.",
                "schema": {"type": "object", "required": ["year"], "properties": {"year": {"type": "integer"}}},
            },
            "web.search": {"query": "lighthouse"},
            "web.fetch": {"url": site.url(PAGE.path)},
            "web.research": {"question": "When was it lit?", "depth": "quick"},
            "email.read": {},
            "studio.author_agent": {"name": "Keeper", "role": "analyst", "skills": ["web.fetch"]},
            "studio.author_generator": {
                "name": "Describe a place",
                "inputs": [{"key": "place", "label": "Place", "type": "text"}],
                "steps": [step],
            },
            "studio.author_skill_bundle": {
                "id": "weather",
                "name": "Weather",
                "version": "1.0.0",
                "capabilities": [],
                "skills": [part],
                "files": [{"path": "weather.py", "content": "def tell():\n    return 'wind'\n"}],
            },
        },
        {
            "http.request": {"url": site.url("/order"), "method": "POST", "json": {"lamps": 1}},
            "http.json": {"url": site.url("/order"), "method": "POST", "json": {"lamps": 2}},
            "code.execute": {"code": "print(6 * 7)"},
            "code.scaffold_react_node": {"name": "lamp-site"},
            "email.send": {"to": ["keeper@example.com"], "subject": "Lamp", "text": "It turns."},
            "telegram.send": {"text": "It turns."},
            "whatsapp.send": {"to": "+48600700800", "text": "It turns."},
        },
    ]


@pytest.mark.slow
def test_every_skill_runs_and_the_seven_that_act_wait_for_their_answer(
    tmp_path: Path,
    live_settings: Settings,
    worker_process: Any,
    site: TrapSite,
    messenger: Messenger,
    smtp_server: Callable[..., SmtpServer],
    imap_server: ImapServer,
) -> None:
    smtp = smtp_server()
    owner = live_settings.owner
    servers = mailbox(smtp=smtp, imap=imap_server).to_json() | {"password": PASSWORD}
    bot = {"kind": "telegram", "chatId": 42, "api": messenger.origin, "token": TOKEN}
    number = {"kind": "whatsapp", "numberId": NUMBER_ID, "api": messenger.origin, "token": BEARER}
    for name, one in {"mail": servers, "bot": bot, "number": number}.items():
        connections.save(live_settings, owner, name, one)
    places = [site.port, messenger.port, smtp.port, imap_server.port]
    base = site.url().rstrip("/")
    worker_process(
        live_settings,
        NET_ALLOW=",".join(f"127.0.0.1:{port}" for port in places),
        SEARCH=json.dumps([{"kind": "searxng", "url": base}]),
        IMAGES=json.dumps({"name": "painter", "base_url": f"{base}/v1", "key": "k"}),
    ).ready()
    turns = calls_of(site)
    script = {
        "tasks": {"all": [*({"calls": named(calls)} for calls in turns), {"say": "all done"}]},
        "skills": {
            "llm.generate": [{"say": "lamp"}],
            "llm.structured": [{"output": {"year": 1801}}],
            "web.research": [{"say": "In 1801 [1]."}],
        },
    }
    skills = sorted(skill.name for skill in catalogue.build())
    plan = [task("all", role="generalist", skills=skills)]
    project = Watched(live_settings, start(tmp_path / "p", live_settings, plan, script).project_id)

    eventually(lambda: project.tasks["all"].status in ("needs_input", "failed", "completed"), 90)
    assert project.tasks["all"].status == "needs_input", project.tasks["all"].error
    decisions = [signal for signal in project.signals if signal.kind == "decision"]
    assert {signal.action["skill"] for signal in decisions} == WORLD
    done = project.kinds("tool.result")
    assert not WORLD & {one["name"] for one in done}
    assert "/order" not in site.paths and not messenger.delivered and not smtp.taken
    for signal in decisions:
        answer(live_settings, signal.id, option="Do it", by="the test")

    assert project.ended(90) == "completed"
    results = {one["name"]: one for one in project.kinds("tool.result")}
    assert sorted(results) == skills and len(skills) == 30
    assert {name: one["output"] for name, one in results.items() if one.get("code")} == {}
    assert [name for name, one in results.items() if (one["output"] or {}).get("wired") is False] == []
    assert site.paths.count("/order") == 2 and len(messenger.delivered) == 2 and len(smtp.taken) == 1
    assert results["math.evaluate"]["output"] == {"result": "5", "value": 5, "type": "number"}
    assert results["code.execute"]["output"]["stdout"] == "42\n"
    assert PAGE.fact in " ".join(results["web.fetch"]["output"]["content"].split())
    assert [one["content"] for one in results["memory.recall"]["output"]["memories"]] == ["The lamp was lit in 1801."]


def named(calls: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"name": name, "args": arguments} for name, arguments in calls.items()]
