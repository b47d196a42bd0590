"""mcp list: the MCP servers that are configured, each started once to see how it fares and what it offers."""

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.commands.output import note, say_json
from registry.base import Json

if TYPE_CHECKING:
    from workers.mcp.servers import Listed

app = typer.Typer(help="Servers whose tools agents can use.", no_args_is_help=True)


@app.callback()
def servers() -> None:
    """Servers whose tools agents can use."""


@app.command("list")
def list_servers(
    as_json: Annotated[bool, typer.Option("--json", help="{servers, faults} as one JSON object.")] = False,
) -> None:
    """Start every configured server, and list its tools; exits with 1 when one of them fails."""
    from orchestrator.known import mcp_servers
    from orchestrator.settings import get_settings
    from workers.mcp.wiring import Lazily

    settings = get_settings()
    lazily = Lazily(settings)
    configured = mcp_servers(settings)
    try:
        found = lazily.made().look() if configured else []
    finally:
        lazily.close()
    rows = [_row(one) for one in found]
    if as_json:
        faults: list[Json] = [{"path": f.path, "code": f.code, "message": f.message} for f in configured.faults]
        say_json({"servers": rows, "faults": faults})
    else:
        from orchestrator.terminal.pages import print_servers

        print_servers(rows)
        for fault in configured.faults:
            note(f"left out: {fault}")
    if any(one.state == "failed" for one in found) or configured.faults:
        raise typer.Exit(1)


def _row(one: "Listed") -> dict[str, Json]:
    """A server for people; nothing of its environment or headers, which may hold secrets."""
    config = one.server.config
    return {
        "id": one.server.id,
        "kind": one.server.kind,
        "where": config.url if config.url is not None else " ".join([str(config.command), *config.args]),
        "state": one.state,
        "reason": one.reason or None,
        "tools": [{"name": s.name, "description": s.description, "effect": s.effect} for s in one.tools],
        "leftOut": [{"tool": tool, "reason": reason} for tool, reason in one.left_out],
        "path": str(one.server.path),
    }
