"""What an agent carries stays with its run: loaded tools, documents as they were, over a park and a dead worker."""

import json
import sys
from pathlib import Path

import psutil
import pytest

from orchestrator.settings import Settings
from orchestrator.signals import answer
from tests.projects import Watched, start, task
from tests.support import alive, eventually

SERVER = str(Path(__file__).parents[2] / "mcp_server.py")


def write(home: Path, text: str) -> None:
    folder = home / "skills" / "house-style"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(f"---\nname: house-style\ndescription: How we sound.\n---\n{text}\n")


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_run_goes_on_with_its_tools_and_documents_on_another_worker(
    tmp_path: Path, live_settings: Settings, worker_process
) -> None:
    home = live_settings.home
    write(home, "first version")
    entry = {"command": sys.executable, "args": ["-I", "-S", SERVER, "plain"]}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"box": entry}}))
    agent = {
        "instructions": "Use what you have.",
        "mcpServers": ["box"],
        "skills": ["house-style"],
        "permissions": {"mcp": "allow", "process": "ask"},
        "disallowedTools": ["box__crash"],
    }
    turns = [
        {"calls": [{"name": "load_tools", "args": {"names": ["box__pid", "box__echo", "box__crash"]}}]},
        {"calls": [{"name": "box__pid", "args": {}}]},
        {"calls": [{"name": "ask_user", "args": {"prompt": "Shall I go on?"}}]},
        {
            "calls": [
                {"name": "box__echo", "args": {"text": "after"}},
                {"name": "load_skill", "args": {"name": "house-style"}},
            ]
        },
        {"say": "done"},
    ]
    first = worker_process(live_settings, MCP_START_S="90").ready()
    plan = [task("a", agent="carrier")]
    made = start(tmp_path / "p", live_settings, plan, {"tasks": {"a": turns}}, agents={"carrier": agent})
    project = Watched(live_settings, made.project_id)

    signal = project.open_signal(100)
    results = {event["name"]: event["output"] for event in project.kinds("tool.result")}
    assert results["load_tools"]["loaded"] == ["box__pid", "box__echo"]
    assert results["load_tools"]["unknown"] == ["box__crash"]
    server = int(results["box__pid"])
    assert alive(server)

    first.kill()
    eventually(lambda: not psutil.pid_exists(server) or not alive(server), 20)
    write(home, "second version")
    worker_process(live_settings, MCP_START_S="90").ready()
    answer(live_settings, signal.id, payload={"text": "yes"}, by="a person")

    assert project.ended(120) == "completed"
    results = {event["name"]: event["output"] for event in project.kinds("tool.result")}
    assert results["box__echo"] == "echo: after"
    assert results["load_skill"] == {"instructions": "first version\n", "files": []}
    assert not project.kinds("mcp.skipped")
