"""An MCP server at an address, made with the protocol's own library: `mcp_http_server.py PORT http|sse`."""

import sys

import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("board")


@server.tool()
def shout(text: str) -> str:
    """Says it louder."""
    return text.upper()


@server.tool()
def flood() -> str:
    """Says more than anybody takes."""
    return "f" * 20_000_000


if __name__ == "__main__":
    app = server.sse_app() if sys.argv[2] == "sse" else server.streamable_http_app()
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
