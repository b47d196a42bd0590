"""What is streamed to somebody ends when their key is revoked or their session ends, and nobody else's with it."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from orchestrator import keys
from orchestrator.api import standing
from orchestrator.settings import Settings
from orchestrator.store import projects
from orchestrator.store.database import get_database
from tests.projects import start
from tests.studio import API, asked, bearer, key_of
from tests.support import eventually

TASK = {"key": "t", "role": "writer", "instruction": "w"}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "LOOK_S", 0.05)


class Listener:
    """A stream that is read until it ends."""

    def __init__(self, anyone: TestClient, path: str, headers: dict[str, str]) -> None:
        self.text: str | None = None
        self._ask: Callable[[], Any] = lambda: anyone.get(path, headers=headers)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        return self.text is not None

    def _read(self) -> None:
        self.text = self._ask().text


def readers(app: Any) -> int:
    assert isinstance(app, FastAPI)
    return int(app.state.feed.readers)


def test_a_stream_ends_with_the_key_it_was_asked_with_and_no_other(settings: Settings, tmp_path: Path) -> None:
    project_id = start(tmp_path, settings, [TASK], {"tasks": {}}).project_id
    made, text = keys.add(settings, "ci")
    path = f"{API}/projects/{project_id}/events"
    with asked(settings) as anyone:
        mine, others = Listener(anyone, path, bearer(text)), Listener(anyone, path, bearer(key_of(settings)))
        eventually(lambda: readers(anyone.app) == 2, 10)

        keys.revoke(settings, "local", made["id"])

        eventually(lambda: mine.over, 10)
        assert not others.over
        assert '"cancelled"' not in str(mine.text)
        get_database(settings).write(lambda c: projects.cancel(c, project_id, "over"))
        eventually(lambda: others.over, 10)
        assert '"cancelled"' in str(others.text)


@pytest.mark.parametrize("where", ["events", "pulse"])
def test_whoever_signs_out_hears_no_more(settings: Settings, tmp_path: Path, where: str) -> None:
    project_id = start(tmp_path, settings, [TASK], {"tasks": {}}).project_id
    token, _ = keys.redeem(settings, keys.make_code(settings))
    path = "/pulse" if where == "pulse" else f"{API}/projects/{project_id}/events"
    with asked(settings) as anyone:
        mine = Listener(anyone, path, {"cookie": f"officina_session={token}"})
        eventually(lambda: readers(anyone.app) == 1, 10)

        keys.end(settings, token)

        eventually(lambda: mine.over, 10)
        assert str(mine.text).startswith(": officina")
