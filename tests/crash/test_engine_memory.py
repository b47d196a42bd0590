"""What the engine remembers beside state and messages survives its worker: counts, changed inputs, summaries."""

import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from orchestrator.settings import Settings
from orchestrator.signals import answer
from orchestrator.store.database import get_database
from orchestrator.store.tables import messages
from tests.projects import Watched, start, task
from tests.stub_model import StubModel
from tests.support import eventually

#: Recovery within a lease and a tick, both short here.
QUICK = {"LIMITS__LEASE_S": "2", "LIMITS__RENEW_S": "0.5", "LIMITS__CLOCK_TICK_S": "0.2"}


def history(settings: Settings, run_id: str) -> list[dict[str, Any]]:
    query = select(messages.c.body).where(messages.c.run_id == run_id).order_by(messages.c.number)
    with get_database(settings).read() as connection:
        return list(connection.execute(query).scalars())


@pytest.mark.long
def test_a_loop_is_counted_over_the_death_of_a_worker(tmp_path: Path, live_settings, worker_process) -> None:
    first = worker_process(live_settings, **QUICK).ready()
    same = {"calls": [{"name": "files.list", "args": {}}]}
    made = start(tmp_path / "p", live_settings, [task("a")], {"delayMs": 150, "tasks": {"a": [same] * 9}})
    project = Watched(live_settings, made.project_id)
    eventually(lambda: len(project.kinds("tool.result")) >= 2, 20)

    first.kill()
    worker_process(live_settings, **QUICK).ready()
    eventually(lambda: project.kinds("run.failed"), 20)

    assert project.kinds("run.failed")[0]["code"] == "loop_detected"
    run = next(run for run in project.runs if run.status == "failed")
    said = [m["content"] for m in history(live_settings, run.id) if m["role"] == "tool"]
    assert ["times running" in text for text in said] == [False, False, True, True, False]


def test_an_approved_call_runs_as_a_hook_made_it_though_its_worker_died(
    tmp_path: Path, live_settings, worker_process
) -> None:
    code = "import json, sys; p = json.load(sys.stdin); p['input']['path'] = 'safe.txt'; print(json.dumps("
    code += "{'updateInput': {'path': 'safe.txt', 'content': p['toolCallId']}}))"
    hook = {"event": "PreToolUse", "matcher": "files.write", "handler": {"command": ["python3", "-c", code]}}
    agent = {
        "id": "clerk",
        "instructions": "Write.",
        "skills": ["files.write"],
        "permissions": {"fs.write": "ask"},
        "hooks": [hook],
    }
    write = {"calls": [{"id": "w1", "name": "files.write", "args": {"path": "a.txt", "content": "x"}}]}
    first = worker_process(live_settings, **QUICK).ready()
    turns = {"tasks": {"a": [write, {"say": "done"}]}}
    made = start(tmp_path / "p", live_settings, [task("a", agent="clerk")], turns, agents={"clerk": agent})
    project = Watched(live_settings, made.project_id)
    asked = project.open_signal()

    first.kill()
    answer(live_settings, asked.id, option="Do it", by="the test")
    worker_process(live_settings, **QUICK).ready()

    assert project.ended(30) == "completed"
    assert asked.action["input"]["path"] == "safe.txt"
    assert [f["path"] for f in project.kinds("file.written")] == ["safe.txt"]
    folder = next(live_settings.workspaces.iterdir())
    call_id = project.kinds("tool.call")[0]["toolCallId"]
    assert (folder / "safe.txt").read_text() == call_id, "asked once, and with the id of the call"


class Forgetful(StubModel):
    """A model that looks around in every answer until it is told to end, and sums up when it is asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.summaries = 0
        self.slow, self.enough = threading.Event(), threading.Event()

    def take(self, body: dict[str, Any]) -> tuple[int, dict[str, Any], bool]:
        number, _, _ = super().take(body)
        if "history has become too long" in body["messages"][0]["content"]:
            self.summaries += 1
            self.slow.set()
            return number, {"text": f"Summary {self.summaries}."}, False
        if self.enough.is_set():
            return number, {"text": "Done."}, False
        wait = 5_000 if self.slow.is_set() else 0
        call = {"name": "files.read", "args": {"path": f"facts-{number}.txt"}}
        return number, {"text": "I look on. " * 100, "calls": [call], "delayMs": wait}, False


@pytest.mark.long
def test_a_summary_is_not_made_twice_when_its_worker_dies_right_after(
    tmp_path: Path, live_settings, worker_process
) -> None:
    with Forgetful() as model:
        window = {"NAME": "small", "BASE_URL": model.url, "CONTEXT_TOKENS": "3000", "MAX_TOKENS": "200"}
        small = {f"MODELS__STANDARD__{name}": value for name, value in window.items()} | QUICK
        graph = {
            "nodes": {
                "start": {"type": "core:start"},
                "think": {"type": "llm:generate"},
                "act": {"type": "tool:call", "calls": "$output.toolCalls"},
                "end": {"type": "core:end"},
            },
            "edges": [
                {"from": "start", "to": "think"},
                {"from": "think", "to": "act", "when": '$output.finishReason = "tool-calls"'},
                {"from": "think", "to": "end"},
                {"from": "act", "to": "think"},
            ],
        }
        agent = {
            "id": "reader",
            "instructions": "Read. " * 200,
            "skills": ["files.read"],
            "graph": graph,
            "budget": {"maxSteps": 100},
        }
        first = worker_process(live_settings, **small).ready()
        script = {"tasks": {"a": [{"say": "unused"}]}}
        made = start(tmp_path / "p", live_settings, [task("a", agent="reader")], script, agents={"reader": agent})
        project = Watched(live_settings, made.project_id)
        eventually(lambda: project.kinds("compaction.completed"), 20)

        first.kill()
        before = model.requests
        model.enough.set()
        worker_process(live_settings, **small).ready()

        assert project.ended(30) == "completed"
        assert model.summaries == 1
        assert model.requests == before + 1, "the only call made again is the one that had no answer"
        sent = model.latest[-1]["messages"]
        assert "Summary 1." in sent[0]["content"]
        (run,) = project.runs
        stored = history(live_settings, run.id)
        (summary,) = (m for m in stored if m.get("kind") == "compaction")
        assert len(sent) - 2 <= len(stored) - summary["coveredUntil"]
        assert stored[0]["role"] == "user", "what it covers is still stored"
