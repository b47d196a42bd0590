"""The HTTP API as a part of the stack: on a port of loopback that it keeps when it has to be started again."""

import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from orchestrator.stack.processes import Process


class Api:
    """The API's address and how to start it. As with Flower, the listening socket belongs to the owner."""

    def __init__(self, log: Path, environment: Mapping[str, str], port: int) -> None:
        """
        Args:
            log: file that receives what it prints.
            environment: the settings it runs with.
            port: the port wished for; a free one where that is taken.
        """
        self._log = log
        self._environment = environment
        self._socket = _bound(port)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def start(self) -> Process:
        number = self._socket.fileno()
        # -P: a folder of the current directory must not stand in for a package of ours.
        command = [sys.executable, "-P", "-m", "orchestrator.api.server", str(number)]
        return Process(command, log=self._log, env=self._environment, keep_fds=[number])

    def close(self) -> None:
        """Gives the port back."""
        self._socket.close()


def _bound(port: int) -> socket.socket:
    with suppress(OSError):
        return socket.create_server(("127.0.0.1", port), backlog=1024)
    return socket.create_server(("127.0.0.1", 0), backlog=1024)
