"""The model client against a server that we did not write: llmock, from the package registries (`make test-models`)."""

import json
import re
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from orchestrator.settings import Model, Settings
from tests.support import eventually
from workers.models import client as client_module
from workers.models import pools
from workers.models.client import OpenAIClient
from workers.models.model import ModelFault, Request, Tool
from workers.models.turns import turns_at

PROGRAM = Path(__file__).parents[2] / ".llmock" / "bin" / "llmock"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM.exists(), reason="llmock is not installed; `make test-models` does it"),
]
WEATHER = Tool(
    "weather.get",
    "Tells the weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
ANSWER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Foreign:
    def __init__(self, url):
        self.url = url

    def will(self, *behaviors):
        """The next answers, in order."""
        self._send("POST", "scenario", {"behaviors": list(behaviors)})

    def reset(self):
        self._send("POST", "reset")

    @property
    def requests(self):
        found = self._send("GET", "requests")
        return found["requests"] if isinstance(found, dict) else found

    def _send(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/_llmock/{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.loads(answer.read() or b"null")


def served(tmp_path, *options):
    log = tmp_path / "llmock.log"
    with log.open("w") as out:
        process = subprocess.Popen([PROGRAM, "serve", "--port", "0", *options], stdout=out, stderr=out, cwd=tmp_path)

    def address():
        assert process.poll() is None, log.read_text()
        found = re.search(r"running on (http://[0-9.]+:[0-9]+)", log.read_text())
        return found and found.group(1)

    return process, eventually(address, 30)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    process, url = served(tmp_path_factory.mktemp("llmock"))
    yield Foreign(url)
    process.terminate()
    process.wait(10)


@pytest.fixture
def server(running, monkeypatch):
    running.reset()
    monkeypatch.setattr(client_module, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(pools, "_pools", pools._Pools())
    turns_at.cache_clear()
    return running


def ask(server, **more):
    model = Model(name="gpt-4o-mini", base_url=f"{server.url}/v1", key="sk-of-the-test-1234", max_tokens=200)
    request = {"tier": "standard", "messages": [{"role": "user", "content": "What is the weather in Oslo?"}], **more}
    return OpenAIClient(Settings(_env_file=None, models={"standard": model})).generate(Request(**request))


def test_it_talks(server):
    said = ask(server, system="Be brief.")
    assert said.text.strip()
    assert (said.finish_reason, said.calls, said.usage.estimated) == ("stop", [], False)


def test_it_calls_tools_and_goes_on_with_their_results(server):
    first = ask(server, tools=[WEATHER])
    (call,) = first.calls
    assert (call.name, first.finish_reason, list(call.arguments)) == ("weather.get", "tool-calls", ["city"])
    asked = {"role": "user", "content": "What is the weather in Oslo?"}
    called = {
        "role": "assistant",
        "content": "",
        "toolCalls": [{"id": call.id, "name": call.name, "args": {"city": "Oslo"}}],
    }
    brought = {"role": "tool", "toolCallId": call.id, "name": call.name, "content": "Rain."}
    assert ask(server, tools=[WEATHER], messages=[asked, called, brought]).text.strip()


@pytest.mark.parametrize("tools", [[], [WEATHER]], ids=["words", "calls"])
def test_it_streams(server, tools):
    heard = []
    said = ask(server, tools=tools, hear=lambda piece, text: heard.append((piece, text)))
    assert "".join(text for piece, text in heard if piece == "text") == said.text
    assert (bool(said.calls), said.usage.estimated) == (bool(tools), False)
    assert heard[0] == ("again", "")


def test_a_structured_answer_is_json(server):
    server.will({"type": "reply", "text": '{"city": "Oslo"}'})
    assert json.loads(ask(server, output=ANSWER).text) == {"city": "Oslo"}
    server.reset()
    assert isinstance(json.loads(ask(server, output=ANSWER).text), dict), "json_object is asked for, and given"


@pytest.mark.parametrize(
    ("status", "passing"), [(400, False), (401, False), (403, False), (404, False), (500, True), (503, True)]
)
def test_its_refusals_are_told_apart(server, status, passing):
    server.will({"type": "fail", "status": status, "times": None})
    with pytest.raises(ModelFault) as caught:
        ask(server)
    assert (caught.value.status, caught.value.passing) == (status, passing)
    assert len(server.requests) == (3 if passing else 1)


def test_a_short_failure_is_tried_over_and_a_long_wait_is_handed_on(server):
    server.will({"type": "fail", "status": 503})
    assert ask(server).text
    server.will({"type": "fail", "status": 429, "retry_after": 30})
    with pytest.raises(ModelFault) as caught:
        ask(server)
    assert (caught.value.status, caught.value.retry_after) == (429, 30)
    with pytest.raises(ModelFault) as held:
        ask(server)
    assert held.value.held, "nobody calls before the time it said"


@pytest.mark.parametrize("kind", ["disconnect", "truncate", "malformed"])
def test_a_stream_that_breaks_is_never_taken_for_an_answer(server, kind):
    server.will({"type": "stream_fault", "kind": kind, "after_chunks": 3})
    heard = []
    said = ask(server, hear=lambda piece, text: heard.append((piece, text)))
    assert said.text and [piece for piece, _ in heard].count("again") == 2
    assert len(server.requests) == 2


@pytest.mark.parametrize("kind", ["malformed_arguments", "unknown_tool"])
def test_broken_calls_come_back_as_they_were_written(server, kind):
    server.will({"type": "tool_fault", "kind": kind})
    (call,) = ask(server, tools=[WEATHER]).calls
    assert call.name != "weather.get" if kind == "unknown_tool" else isinstance(call.arguments, str)


def test_its_quota_is_kept_to(tmp_path, server):
    process, url = served(tmp_path, "--rpm", "3")
    try:
        limited = Foreign(url)
        begun = time.monotonic()
        faults = []
        for _ in range(5):
            try:
                ask(limited, timeout_s=8)
            except ModelFault as fault:
                faults.append(fault)
        assert faults and all(fault.passing and fault.retry_after for fault in faults)
        refused = [one for one in limited.requests if one.get("status") == 429]
        assert len(refused) <= 1, "after one refusal, or a counter at nought, the time it says is waited for"
        assert time.monotonic() - begun < 60
    finally:
        process.terminate()
        process.wait(10)
