"""One trace over processes: a producer that ends, a worker that parks and goes on, and what a person answers."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.settings import Settings
from orchestrator.signals import answer
from orchestrator.stack.environment import child_environment
from tests.integration.test_fanout import agent, mapper
from tests.projects import Watched, task
from tests.support import eventually
from tests.telemetry import Receiver, Spans

NODES: dict[str, Any] = {
    "start": {"type": "core:start"},
    "write": {"type": "tool:call", "name": "files.write", "args": {"path": "a.txt", "content": "seven"}},
    "over": {"type": "control:handoff", "agentId": "mapper"},
    "end": {"type": "core:end"},
}
EDGES = [("start", "write"), ("write", "over"), ("over", "end")]
AGENTS = {
    "ada": agent("ada", NODES, EDGES, skills=["files.write"]),
    "mapper": mapper("mapper", ["x", "y"], {"type": "llm:generate", "tools": []}),
    "clerk": {"id": "clerk", "instructions": "Go on.", "skills": ["files.write"], "approvals": "carryOn"},
}
WRITE = {"calls": [{"name": "files.write", "args": {"path": "b.txt", "content": "eight"}}]}
SCRIPT = {"tasks": {"carries": [WRITE, {"say": "went on"}]}, "otherwise": "rule"}


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Receiver:
    found = Receiver()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    return found


def submitted(folder: Path, settings: Settings) -> str:
    """The id of a project that a process of its own submitted."""
    body = {
        "title": "A traced one",
        "brief": "b",
        "tasks": [task("all", agent="ada", retries=0), task("carries", agent="clerk", after=["all"], retries=0)],
        "agents": AGENTS,
        "permissions": {"fs.write": "ask"},
        "script": "script.json",
    }
    folder.mkdir()
    (folder / "script.json").write_text(json.dumps(SCRIPT), encoding="utf-8")
    (folder / "project.json").write_text(json.dumps(body), encoding="utf-8")
    command = [sys.executable, "-m", "orchestrator.producer", str(folder / "project.json")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=child_environment(settings))
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def yes(settings: Settings, project: Watched) -> None:
    answer(settings, project.open_signal().id, payload={"approved": True}, by="nadia")


@pytest.mark.parametrize("pool", ["threads", pytest.param("prefork", marks=pytest.mark.long)])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_one_trace_connects_producer_worker_approval_handoff_and_map(
    tmp_path: Path, receiver: Receiver, live_settings: Settings, worker_process: Any, pool: str
) -> None:
    worker = worker_process(live_settings, WORKER_POOL=pool, WORKER_SLOTS="2").ready()
    project = Watched(live_settings, submitted(tmp_path / "p", live_settings))
    yes(live_settings, project)
    eventually(lambda: project.tasks["carries"].status == "completed")
    yes(live_settings, project)
    assert project.ended() == "completed"
    eventually(lambda: all(signal.execution == "succeeded" for signal in project.signals))
    worker.stop()

    spans = receiver.spans
    assert len({span.trace_id for span in spans}) == 1
    submit = spans.one("submit_project")
    assert (submit.parent, submit.kind, submit.service) == ("", "PRODUCER", "officina")
    assert submit.attributes["officina.project.id"] == project.id
    known = {span.id for span in spans}
    assert [span.name for span in spans if span.parent not in known] == ["submit_project"]
    asking, going_on = spans.named("invoke_agent ada")
    assert asking.parent == going_on.parent == submit.id
    assert (asking.service, asking.attributes["officina.park.on"]) == ("officina-worker", "signals")
    assert going_on.links == {asking.id: "answer"}
    approval = next(span for span in spans.named("approval") if span.parent == asking.id)
    assert asking.begun <= approval.begun <= approval.ended <= going_on.begun + 1_000_000
    mapping, took = spans.named("invoke_agent mapper")[0], spans.named("invoke_agent mapper")[-1]
    assert mapping.links == {going_on.id: "handoff"}
    assert spans.one("handoff mapper").parent == going_on.id
    items = [span for span in spans.named("invoke_agent mapper") if span.attributes["officina.run.kind"] == "item"]
    assert [item.parent for item in items] == [mapping.id] * 2
    assert [spans.below(item) for item in items] == [["chat stand-in"]] * 2
    assert (took.links, spans.one("map").parent) == ({mapping.id: "children"}, mapping.id)
    assert carried_out(spans) == [("clerk", "approval"), ("clerk", "execute_tool files.write")]


def carried_out(spans: Spans) -> list[tuple[str, str]]:
    """What ran outside of the run that asked, after its yes, and whose leg it hangs under."""
    legs = {span.id: span for span in spans.named("invoke_agent clerk")}
    asked = next(span for span in spans.named("approval") if span.parent in legs)
    signal_id = asked.attributes["officina.signal.id"]
    tools = spans.named("execute_tool ")
    ran = [span for span in tools if span.attributes.get("officina.signal.id") == signal_id]
    return [(legs[span.parent].attributes["gen_ai.agent.id"], span.name) for span in [asked, *ran]]


def test_nothing_is_sent_and_nothing_of_the_sdk_is_loaded_where_nobody_asks_for_it(tmp_path: Path) -> None:
    code = (
        "import sys; from orchestrator import tracing\n"
        "with tracing.span('x') as span: assert span is tracing.NOTHING\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr


def test_a_producer_whose_receiver_is_gone_still_submits_and_ends_soon(tmp_path: Path) -> None:
    code = "from orchestrator import tracing\nwith tracing.span('x') as span: assert span.recording\n"
    gone = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "PATH": ""}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, env=gone)
    assert ended.returncode == 0, ended.stderr
