"""`mcp.json`: which servers there are, what is left out, and when the environment is read (spec: engine 18)."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.known import mcp_servers, registries
from orchestrator.settings import Settings
from registry import masking
from registry.mcp import MAX_BYTES, load


def put(folder: Path, servers: Any, name: str = "mcp.json") -> Path:
    file = folder / ".officina" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(servers if isinstance(servers, str) else json.dumps({"mcpServers": servers}))
    return file


def test_the_later_file_wins_by_id_as_a_whole(tmp_path: Path) -> None:
    first = put(
        tmp_path / "a", {"disk": {"command": "x", "env": {"A": "1"}}, "web": {"url": "https://example.org/mcp"}}
    )
    second = put(tmp_path / "b", {"disk": {"command": "y"}})

    found = load([first, second, tmp_path / "nowhere.json"])

    assert list(found) == ["disk", "web"] and found.faults == ()
    assert (found["disk"].config.command, found["disk"].config.env) == ("y", {})
    assert found["disk"].folder == tmp_path / "b" and found["web"].kind == "http"
    assert found["disk"].digest != load([first])["disk"].digest


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "exactly one of command and url"),
        ({"command": "x", "url": "https://a"}, "exactly one of command and url"),
        ({"command": "x", "headers": {"A": "b"}}, "a command goes with"),
        ({"command": "x", "type": "sse"}, "a command goes with"),
        ({"url": "https://a", "args": ["x"]}, "a url goes with"),
        ({"url": "https://a", "type": "stdio"}, "a url goes with"),
        ({"command": "x", "comand": "y"}, "comand"),
        ({"command": 3}, "command"),
        ({"command": "x", "args": "y"}, "args"),
        ({"command": "x", "toolPrefix": "a__b"}, "toolPrefix"),
        ({"command": "x", "toolPrefix": ""}, "toolPrefix"),
        ("x", "valid dictionary"),
    ],
)
def test_a_server_that_cannot_be_used_is_left_out_with_its_reason(tmp_path: Path, entry: Any, words: str) -> None:
    found = load([put(tmp_path, {"bad": entry, "good": {"command": "x"}})])
    assert list(found) == ["good"] and len(found.faults) == 1
    assert "mcpServers.bad" in found.faults[0].path and words in found.faults[0].message


@pytest.mark.parametrize("id_", ["", "has blank", "a__b", "ends_", "9lives", "ä", "a.b", "x" * 33])
def test_an_id_is_the_beginning_of_a_tools_name(tmp_path: Path, id_: str) -> None:
    found = load([put(tmp_path, {id_: {"command": "x"}})])
    assert len(found) == 0 and len(found.faults) == 1


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"servers": {}}', '{"mcpServers": []}', "x" * (MAX_BYTES + 1)])
def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path, text: str) -> None:
    found = load([put(tmp_path / "a", text), put(tmp_path / "b", {"good": {"command": "x"}})])
    assert list(found) == ["good"] and len(found.faults) == 1


def test_references_are_filled_in_when_the_server_starts_and_masked_from_then_on(tmp_path: Path) -> None:
    entry = {"command": "${TOOL}", "args": ["--key=${KEY}", "$HOME", "${not a name}"], "env": {"A": "${KEY}${KEY}"}}
    server = load([put(tmp_path, {"s": entry})])["s"]
    assert server.config.args[0] == "--key=${KEY}"

    filled = server.expanded({"TOOL": "prog", "KEY": "a-long-secret"}).config

    assert (filled.command, filled.args[0], filled.env["A"]) == (
        "prog",
        "--key=a-long-secret",
        "a-long-secreta-long-secret",
    )
    assert filled.args[1:] == ["$HOME", "${not a name}"]
    assert "a-long-secret" not in masking.mask_text("it said a-long-secret")
    with pytest.raises(KeyError, match="KEY"):
        server.expanded({"TOOL": "prog"})


def test_what_was_filled_in_is_not_read_again(tmp_path: Path) -> None:
    server = load([put(tmp_path, {"s": {"command": "x", "args": ["${A}"]}})])["s"]
    assert server.expanded({"A": "${B}", "B": "no"}).config.args == ["${B}"]


def test_the_files_of_an_installation_and_what_definitions_may_name(tmp_path: Path) -> None:
    own = put(tmp_path / "own", {"disk": {"command": "mine"}, "web": {"url": "https://example.org"}})
    put(tmp_path / "here", {"disk": {"command": "theirs"}})
    settings = Settings(home=tmp_path / "here" / ".officina", mcp_file=own, _env_file=None)  # type: ignore[call-arg]

    assert {id_: one.config.command for id_, one in mcp_servers(settings).items()} == {"disk": "theirs", "web": None}
    assert registries(settings, stand_in=True).mcp_servers == {"disk", "web"}
