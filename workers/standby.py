"""The fork server of this process, made while next to nothing is imported: it is small until a worker has died."""

from typing import Any

from workers.forkserver import ForkServer

_server: ForkServer | None = None


def open_server() -> None:
    """Makes it, where there is none yet and this process has one thread."""
    global _server
    if _server is None:
        _server = ForkServer(_live, _get_ready)


def server() -> ForkServer | None:
    """What `open_server` made; none in a process whose runs have no neighbours."""
    return _server


def _live(*arguments: Any) -> None:
    from workers import alone

    alone.live(*arguments)


def _get_ready() -> None:
    from orchestrator.settings import get_settings
    from workers import alone

    alone.get_ready(get_settings())
