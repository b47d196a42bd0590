"""Flower as a part of the stack: on a free port of loopback, which it keeps when it has to be started again."""

import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from orchestrator.stack.processes import Process


class Flower:
    """The monitor's address and how to start it.

    The listening socket belongs to the owner and is handed down, so that nobody can take the port in between and a
    browser that asks while Flower starts waits instead of failing.
    """

    def __init__(self, log: Path, environment: Mapping[str, str]) -> None:
        """
        Args:
            log: file that receives what it prints.
            environment: holds `OFFICINA_BROKER_URL`, the broker it watches, and `OFFICINA_HOME`, where it keeps what
                it has seen.
        """
        self._log = log
        self._environment = environment
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def start(self) -> Process:
        number = self._socket.fileno()
        # -P: a folder of the current directory must not stand in for a package of ours.
        command = [sys.executable, "-P", "-m", "orchestrator.stack.flower_server", str(number)]
        return Process(command, log=self._log, env=self._environment, keep_fds=[number])

    def close(self) -> None:
        """Gives the port back."""
        self._socket.close()
