"""MCP servers at addresses: over both transports, through the guard, and never past it (spec: engine 18, skills 4)."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from registry import mcp
from registry.packs.names import taken
from registry.skills.context import Caller, SkillContext
from registry.skills.registry import SkillRegistry
from tests.support import eventually
from workers.mcp.servers import McpServers, Timing
from workers.net.guard import Guard

SCRIPT = str(Path(__file__).parents[2] / "mcp_http_server.py")


@pytest.fixture
def address() -> Iterator[Callable[[str], int]]:
    """Starts a server of a transport; gives its port."""
    made: list[subprocess.Popen[bytes]] = []

    def start(kind: str) -> int:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        made.append(subprocess.Popen([sys.executable, SCRIPT, str(port), kind]))
        eventually(lambda: _answers(port), 60)
        return port

    yield start
    for process in made:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., tuple[SkillRegistry, list[Any]]]]:
    """The tools of one configured address, and what was left out."""
    made: list[McpServers] = []

    def serve(guard: Guard, **config: Any) -> tuple[SkillRegistry, list[Any]]:
        file = tmp_path / ".officina" / "mcp.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"mcpServers": {"board": config}}))
        made.append(McpServers(lambda: mcp.load([file]), guard, taken([]), Timing(30.0, 60.0, 300.0)))
        left_out: list[Any] = []
        return SkillRegistry(made[-1].skills(["board"], lambda *about: left_out.append(about))), left_out

    yield serve
    for one in made:
        one.close()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "path"), [("http", "/mcp"), ("sse", "/sse")])
def test_a_server_at_an_address_is_listed_and_called(address: Any, served: Any, kind: str, path: str) -> None:
    port = address(kind)

    registry, left_out = served(Guard(allow={("127.0.0.1", port)}), url=f"http://127.0.0.1:{port}{path}", type=kind)

    assert not left_out and registry.find("board__shout").input.schema["required"] == ["text"]
    said = registry.invoke("board__shout", {"text": "oak"}, SkillContext(Caller("run")))
    assert "OAK" in str(said.output)
    flooded = registry.invoke("board__flood", {}, SkillContext(Caller("run")))
    assert not flooded.ok and flooded.code in ("tool_failed", "too_large", "timeout")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/mcp",
        "http://localhost:{port}/mcp",
        "http://[::1]:{port}/mcp",
        "http://0.0.0.0:{port}/mcp",
    ],
)
def test_an_address_inside_is_never_reached_unless_the_operator_says_so(
    served: Any, httpserver: HTTPServer, url: str
) -> None:
    registry, left_out = served(Guard(), url=url.format(port=httpserver.port))

    assert len(registry) == 0 and left_out[0][:2] == ("board", None)
    assert "may not be reached" in left_out[0][2] or "not public" in left_out[0][2]
    assert httpserver.log == []


def test_a_redirect_does_not_lead_past_the_guard(served: Any, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/mcp").respond_with_data("", status=307, headers={"Location": "http://127.0.0.1:1/x"})

    registry, left_out = served(Guard(allow={("localhost", httpserver.port)}), url=httpserver.url_for("/mcp"))

    assert len(registry) == 0 and left_out and {request.path for request, _ in httpserver.log} == {"/mcp"}


def test_headers_go_to_the_address_and_are_not_shown(
    served: Any, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOARD_TOKEN", "board-token-of-the-owner")
    httpserver.expect_request("/mcp").respond_with_data("no", status=401)

    _, left_out = served(
        Guard(allow={("localhost", httpserver.port)}),
        url=httpserver.url_for("/mcp"),
        headers={"Authorization": "Bearer ${BOARD_TOKEN}"},
    )

    assert left_out and "board-token" not in str(left_out)
    assert httpserver.log[0][0].headers["Authorization"] == "Bearer board-token-of-the-owner"
    assert httpserver.log[0][0].headers["Accept-Encoding"] == "identity"
