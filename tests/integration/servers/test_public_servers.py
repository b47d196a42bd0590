"""Servers that other people wrote and published, driven through an agent by the command line (spec: engine 18)."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from tests.commands import Run
from tests.services import ServiceMissing, needed

#: Published by the protocol's own project; the version the tests were written against.
FILESYSTEM = "@modelcontextprotocol/server-filesystem@2026.8.31"
GRAPH = {
    "nodes": {
        "start": {"type": "core:start"},
        "think": {"type": "llm:generate"},
        "act": {"type": "tool:call", "calls": "$output.toolCalls", "concurrency": "sequential"},
        "end": {"type": "core:end"},
    },
    "edges": [
        {"from": "start", "to": "think"},
        {"from": "think", "to": "act", "when": '$output.finishReason = "tool-calls"'},
        {"from": "think", "to": "end"},
        {"from": "act", "to": "think"},
    ],
}


def drive(
    officina: Run, folder: Path, servers: Mapping[str, Any], turns: list[list[tuple[str, dict[str, Any]]]], **more: Any
) -> dict[str, Any]:
    """An agent with these servers makes these calls, turn after turn; the report of `graph run`."""
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    agent = {"id": "ada", "instructions": "Use your servers.", "mcpServers": list(servers), "graph": GRAPH}
    agent |= {"permissions": {"mcp": "allow"}, "budget": {"maxSteps": 30}} | more
    model = [{"calls": [{"name": name, "args": args} for name, args in turn]} for turn in turns]
    (folder / "agent.json").write_text(json.dumps(agent))
    (folder / "script.json").write_text(json.dumps({"model": [*model, {"text": "done"}]}))
    words = ("graph", "run", str(folder / "agent.json"), "--script", str(folder / "script.json"), "--json")
    ended = officina(*words, OFFICINA_MCP_FILE=str(folder / "mcp.json"), OFFICINA_MCP_START_S="90")
    report: dict[str, Any] = json.loads(ended.stdout)
    return report


def results(report: Mapping[str, Any]) -> list[Any]:
    return [event["data"]["output"] for event in report["events"] if event["kind"] == "tool.result"]


def module(name: str, *words: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-m", name, *words]}


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_published_time_and_fetch_servers_serve_one_agent(
    officina: Run, tmp_path: Path, httpserver: HTTPServer
) -> None:
    httpserver.expect_request("/page").respond_with_data("<h1>Oak</h1><p>A hard wood.</p>", content_type="text/html")
    servers = {"time": module("mcp_server_time", "--local-timezone", "UTC")}
    servers["fetch"] = module("mcp_server_fetch", "--ignore-robots-txt", "--allow-private-ips")
    turns = [
        [("load_tools", {"names": ["time__get_current_time", "time__convert_time", "fetch__fetch"]})],
        [("time__get_current_time", {"timezone": "Europe/Warsaw"}), ("time__get_current_time", {"timezone": 7})],
        [
            ("fetch__fetch", {"url": httpserver.url_for("/page"), "raw": True}),
            ("time__get_current_time", {"timezone": "X/Y"}),
        ],
    ]

    report = drive(officina, tmp_path, servers, turns)

    loaded, now, wrong, page, refused = results(report)
    assert report["status"] == "completed", report["events"][-1]
    assert len(loaded["loaded"]) == 3 and loaded["tools"][0]["input"]["properties"]
    assert now["timezone"] == "Europe/Warsaw" if isinstance(now, dict) else "Europe/Warsaw" in now
    assert "invalid_input" in wrong and "hard wood" in str(page) and "tool_failed" in refused
    assert report["state"]["loadedTools"] == ["time__get_current_time", "time__convert_time", "fetch__fetch"]


@pytest.fixture(scope="session")
def filesystem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published filesystem server, installed for these tests; they are skipped where there is no npm."""

    def install() -> Path:
        npm = str(shutil.which("npm"))
        folder = tmp_path_factory.mktemp("npm")
        words = [npm, "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(folder), FILESYSTEM]
        done = subprocess.run(words, capture_output=True, text=True, timeout=180, check=False)
        program = folder / "node_modules" / ".bin" / "mcp-server-filesystem"
        if done.returncode != 0 or not program.exists():
            raise ServiceMissing(f"{FILESYSTEM} cannot be installed: {done.stderr[-300:]}")
        return program

    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    return needed(install)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_published_filesystem_server_writes_and_reads_for_an_agent(
    officina: Run, tmp_path: Path, filesystem: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    servers = {"disk": {"command": str(filesystem), "args": [str(data)]}}
    path = str(data / "note.txt")
    turns = [
        [("load_tools", {"names": ["disk__write_file", "disk__read_text_file"]})],
        [("disk__write_file", {"path": path, "content": "measure twice"}), ("disk__read_text_file", {"path": path})],
        [("disk__read_text_file", {"path": "/etc/passwd"}), ("disk__write_file", {"path": path})],
    ]

    report = drive(officina, tmp_path, servers, turns)

    _, wrote, read, outside, shapeless = results(report)
    assert report["status"] == "completed" and (data / "note.txt").read_text() == "measure twice"
    assert "rote" in str(wrote) and "measure twice" in str(read)
    assert outside.startswith("tool_failed") and shapeless.startswith("invalid_input")


@pytest.mark.slow
def test_a_call_waits_for_a_yes_and_a_server_that_is_missing_is_told(officina: Run, tmp_path: Path) -> None:
    servers = {"gone": {"command": "no-such-program-here"}}
    servers["box"] = {"command": sys.executable, "args": ["-I", "-S", str(Path(__file__).parents[2] / "mcp_server.py")]}
    turns = [[("load_tools", {"names": ["box__send"]})], [("box__send", {"text": "x"})]]

    report = drive(officina, tmp_path, servers, turns, permissions={})

    assert report["status"] == "needs_input" and report["interrupts"][0]["action"]["skill"] == "box__send"
    (skipped, *_) = [event["data"] for event in report["events"] if event["kind"] == "mcp.skipped"]
    assert skipped["server"] == "gone" and "no such program" in skipped["reason"]
