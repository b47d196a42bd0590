"""The API as tests ask it: in this process, or as a process of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from fastapi.testclient import TestClient

from orchestrator import keys
from orchestrator.api.app import create_app
from orchestrator.api.server import bind
from orchestrator.settings import Settings
from orchestrator.stack.environment import child_environment
from orchestrator.stack.processes import Process
from tests.support import eventually

API = "/api/studio"


def key_of(settings: Settings, owner: str = "local", scopes: list[str] | None = None) -> str:
    """A key of an owner, with every scope when none is named."""
    return keys.add(settings, f"of {owner}", scopes or list(keys.SCOPES), owner=owner)[1]


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def session_of(settings: Settings, owner: str = "local") -> dict[str, str]:
    """The cookie of a person."""
    token, _ = keys.redeem(settings, keys.make_code(settings, owner))
    return {"cookie": f"officina_session={token}"}


@contextmanager
def asked(settings: Settings, headers: dict[str, str] | None = None, **options: Any) -> Iterator[TestClient]:
    """The API in this process; every request carries the headers."""
    app = create_app(settings)
    with TestClient(app, base_url="http://localhost", headers=headers or {}, **options) as client:
        yield client


class ApiProcess:
    """The API as a process on a port that it keeps, however often it is started."""

    def __init__(self, settings: Settings, log: Path, **changed: str) -> None:
        self._environment = child_environment(settings) | {f"OFFICINA_{k}": v for k, v in changed.items()}
        self._log = log
        self._socket = bind("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._process: Process | None = None

    def start(self) -> "ApiProcess":
        import sys

        number = self._socket.fileno()
        command = [sys.executable, "-P", "-m", "orchestrator.api.server", str(number)]
        self._process = Process(command, log=self._log, env=self._environment, keep_fds=[number])
        eventually(self._answers, 120, 0.1)
        return self

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def ask_to_end(self) -> None:
        assert self._process is not None
        self._process.ask()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    def close(self) -> None:
        self.kill()
        self._socket.close()

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.running, self._log.read_text(encoding="utf-8")
        try:
            return httpx2.get(f"{self.url}/health", timeout=2).status_code == 200
        except httpx2.TransportError:
            return False
