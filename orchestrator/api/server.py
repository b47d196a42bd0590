"""The API as a process: `officina api`, or `python -m orchestrator.api.server DESCRIPTOR` as a part of the stack."""

import logging
import socket
import sys

import uvicorn
from fastapi import FastAPI

from orchestrator import tracing
from orchestrator.api.app import create_app
from orchestrator.logs import Masked
from orchestrator.settings import Settings, get_settings


def serve(settings: Settings, listening: socket.socket) -> None:
    """Answers on a socket until the process is asked to end; then streams are cut off after the settings' grace."""
    tracing.start("api")
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(settings.api.grace_s)),
        ws="none",
    )
    _Server(config, app).run(sockets=[listening])


class _Server(uvicorn.Server):
    """Ends streams first: they would be waited for, and their clients go on elsewhere."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.feed.close()
        self._app.state.waiting.close()
        await super().shutdown(sockets)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 is a free one.

    Raises:
        OSError: the address is taken, or not ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=1024)


def log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(Masked("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO)


def main() -> None:
    log_to_stderr()
    serve(get_settings(), socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
