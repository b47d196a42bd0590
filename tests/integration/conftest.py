"""Fixtures that run the command `officina`."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.settings import Settings
from tests.commands import OFFICINA, Ended, Run
from tests.rows import Project, weather


@pytest.fixture
def home_environment(tmp_path: Path) -> dict[str, str]:
    """A home of this test's own, and nothing of the person who runs it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OFFICINA_")}
    return kept | {"OFFICINA_HOME": str(tmp_path / "home"), "TZ": "UTC"}


@pytest.fixture
def installed(home_environment: dict[str, str], tmp_path: Path) -> Run:
    """Runs the installed command in a process of its own."""

    def run(*words: str, **more: str) -> Ended:
        command = [OFFICINA, *words]
        ended = subprocess.run(
            command, capture_output=True, check=False, cwd=tmp_path, env=home_environment | more, timeout=60
        )
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    return run


@pytest.fixture
def officina(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the command's `main` in this process: the same code as the installed command, without its start."""
    from orchestrator.settings import get_settings
    from workers.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OFFICINA_HOME", str(tmp_path / "home"))

    def run(*words: str, given: str = "", **more: str) -> Ended:
        with monkeypatch.context() as patch:
            for name, value in more.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["officina", *words])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
            get_settings.cache_clear()
            with pytest.raises(SystemExit) as left:
                main()
        out, err = capfd.readouterr()
        return Ended(int(left.value.code or 0), out, err)

    return run


@pytest.fixture
def project(settings: Settings) -> Project:
    """The example in the middle of its work, in the home the command looks into."""
    return weather(settings)
