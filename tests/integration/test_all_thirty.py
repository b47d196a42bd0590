"""One agent calls every skill there is: real workers, and a real counterpart of each on loopback.

What reads and writes at home is done unasked; the seven that act on the world wait, all of them, for a person.
"""

import base64
import io
import json
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from orchestrator import connections
from orchestrator.settings import Settings
from orchestrator.signals import answer
from registry.skills import catalogue
from tests import mail_servers, stub_messengers, traps
from tests.certificates import issue
from tests.mail_servers import PASSWORD, USER
from tests.projects import Watched, start, task
from tests.services import ServiceMissing
from tests.stub_messengers import BEARER, NUMBER_ID, TOKEN
from tests.support import eventually

WORLD = {skill.name for skill in catalogue.build() if skill.world_acting}
PAGE = "<html><title>Lighthouse</title><body><main><p>The lighthouse was first lit in 1851.</p></main></body></html>"


def picture() -> str:
    made = io.BytesIO()
    Image.new("RGB", (32, 32), "#336699").save(made, "PNG")
    return base64.b64encode(made.getvalue()).decode()


class Outside:
    """Everything that stands outside of Officina here."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        certificates = issue(folder, "mail.example.com", "127.0.0.1")
        self.trust = str(certificates.root)
        self.site = stack.enter_context(traps.serving())
        self.messenger = stack.enter_context(stub_messengers.serving())
        self.smtp = stack.enter_context(mail_servers.smtp(certificates))
        #: None where there is no Dovecot: it is no Python package, and then one skill of the thirty reads nothing.
        self.imap: mail_servers.ImapServer | None = None
        with suppress(ServiceMissing):
            self.imap = stack.enter_context(mail_servers.dovecot(certificates))
            self.imap.put(b"From: bob@example.com\nTo: ann@example.com\nSubject: Tides\n\nHigh water at noon.\n")
        self.site.page("/lighthouse", PAGE)
        lines = [{"title": "Lighthouse", "url": self.site.url("/lighthouse"), "content": "Lit in 1851."}]
        self._json("/search", {"results": lines})
        self._json("/api", {"ok": True})
        self._json("/v1/images/generations", {"data": [{"b64_json": picture()}]})

    def _json(self, path: str, value: Any) -> None:
        self.site.routes[path] = lambda exchange: exchange.answer(json.dumps(value), kind="application/json")

    @property
    def environment(self) -> dict[str, str]:
        ports = [self.site.port, self.messenger.port, self.smtp.port] + ([self.imap.port] if self.imap else [])
        return {
            "NET_ALLOW": ",".join(f"127.0.0.1:{port}" for port in ports),
            "SEARCH": json.dumps([{"kind": "searxng", "url": self.site.url().rstrip("/")}]),
            "IMAGES__NAME": "painter",
            "IMAGES__BASE_URL": self.site.url("/v1"),
            "IMAGES__PRICE": "0.01",
        }

    def connect(self, settings: Settings) -> None:
        mail = {"kind": "email", "address": USER, "username": USER, "password": PASSWORD}
        mail["smtp"] = {"host": "127.0.0.1", "port": self.smtp.port}  # type: ignore[assignment]
        if self.imap is not None:
            mail["imap"] = {"host": "127.0.0.1", "port": self.imap.port}  # type: ignore[assignment]
        made: dict[str, Any] = {
            "mail": mail,
            "bot": {"kind": "telegram", "chatId": 42, "api": self.messenger.origin, "token": TOKEN},
            "number": {"kind": "whatsapp", "numberId": NUMBER_ID, "api": self.messenger.origin, "token": BEARER},
        }
        for name, connection in made.items():
            connections.save(settings, settings.owner, name, connection)

    @property
    def acted(self) -> list[str]:
        """What reached somebody so far."""
        api = [f"api {asked.method}" for asked in self.site.requests if asked.path == "/api"]
        messages = [str(one.get("text") or one) for one in self.messenger.delivered]
        return api + ["mail" for _ in self.smtp.taken] + messages


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    with ExitStack() as stack:
        made = Outside(stack, tmp_path)
        monkeypatch.setenv("SSL_CERT_FILE", made.trust)
        yield made


def turns(outside: Outside) -> list[dict[str, Any]]:
    examples = json.loads((Path(__file__).parents[2] / "docs/skills/examples.json").read_text(encoding="utf-8"))
    api = outside.site.url("/api")
    own: dict[str, dict[str, Any]] = {
        "web.search": {"query": "lighthouse"},
        "web.fetch": {"url": outside.site.url("/lighthouse")},
        "web.research": {"question": "When was it first lit?", "depth": "quick", "maxSources": 1},
        "email.read": {"limit": 5},
        "files.read": {"path": "notes/a.md"},
        "files.search": {"query": "A"},
        "scene3d.create": {"title": "Table", "prompt": "a table"},
        # The stand-in would fill the blanks of the example: they are templates to it.
        "studio.author_generator": {
            "name": "Weekly note",
            "steps": [{"key": "write", "title": "Write", "role": "writer", "instruction": "Write note.md."}],
        },
        "http.request": {"url": api, "method": "GET"},
        "http.json": {"url": api, "method": "POST", "json": {"n": 1}},
    }
    alone = ["math.evaluate"]  # it has a second, which seven others on a busy machine would use up
    first = ["files.write", "memory.store", "web.search", "web.fetch", "email.read", "signal.raise"]
    names = [skill.name for skill in catalogue.build() if skill.name not in WORLD]
    then = [name for name in names if name not in first + alone]

    def calls(names: list[str]) -> list[dict[str, Any]]:
        return [{"name": name, "args": own.get(name, examples[name])} for name in names]

    return [*({"calls": calls(batch)} for batch in (alone, first, then, sorted(WORLD))), {"say": "all done"}]


@pytest.mark.slow
def test_every_skill_works_for_an_agent_and_the_seven_only_after_an_answer(
    tmp_path: Path, live_settings: Settings, worker_process: Any, outside: Outside
) -> None:
    outside.connect(live_settings)
    worker_process(live_settings, **outside.environment).ready(60)
    script = {
        "tasks": {"a": turns(outside)},
        "skills": {
            "llm.generate": [{"say": "red, green, blue"}],
            "llm.structured": [{"output": {"colour": "red"}}],
            "web.research": [{"say": "It was first lit in 1851 [1]."}],
            "scene3d.create": [{"output": {"objects": [{"kind": "box", "size": [2, 0.1, 1]}]}}],
        },
    }
    plan = [task("a", skills=[skill.name for skill in catalogue.build()])]
    project = Watched(live_settings, start(tmp_path / "p", live_settings, plan, script).project_id)

    def asked() -> list[Any]:
        assert project.status == "running", project.kinds("run.failed")
        return [signal for signal in project.signals if signal.kind == "decision" and signal.status == "open"]

    waiting = eventually(lambda: asked() if len(asked()) == len(WORLD) else None, 90)
    assert {signal.action["skill"] for signal in waiting} == WORLD
    done = {line["name"]: line for line in project.kinds("tool.result")}
    assert {name: line.get("output") for name, line in done.items() if line["isError"]} == {}
    assert set(done) == {skill.name for skill in catalogue.build()} - WORLD
    assert outside.acted == [], "nobody was asked yet, so nothing has happened"

    for signal in waiting:
        answer(live_settings, signal.id, option="Do it", by="the test")
    assert project.ended(90) == "completed"

    results = project.kinds("tool.result")
    assert len(results) == len(project.kinds("tool.call")) == 30
    assert {line["name"]: line["output"] for line in results if line["isError"]} == {}
    outputs = {line["name"]: line["output"] for line in results}
    unwired = [name for name, output in outputs.items() if isinstance(output, dict) and output.get("wired") is False]
    assert unwired == ([] if outside.imap else ["email.read"])
    assert sorted(outside.acted[:2]) == ["api GET", "api POST"] and len(outside.acted) == 5
    assert outputs["code.execute"]["stdout"] == "42\n"
    assert outputs["web.research"]["answer"].startswith("It was first lit in 1851")
    subjects = [message["subject"] for message in outputs["email.read"]["messages"]]
    assert subjects == (["Tides"] if outside.imap else [])
    written = {line["path"] for line in project.kinds("file.written")}
    assert {"docs/weekly-report.pdf", "images/lake.png", "scenes/table.glb", "team-board/package.json"} <= written
    assert project.tasks["a"].output == "all done"
