"""What `officina up` refuses before anything is started."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from registry.errors import Refused, WrongUse
from workers.commands import up
from workers.sandbox import process


@pytest.fixture
def no_sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which no code may run."""
    monkeypatch.setattr(process, "find_sandbox", lambda: process.NoSandbox(f"none works: {process.REMEDY}"))
    monkeypatch.setenv("OFFICINA_HOME", str(tmp_path / "home"))


def start(*words: str) -> Result:
    return CliRunner().invoke(up.app, list(words))


def test_a_project_that_runs_code_needs_a_sandbox(no_sandbox: None, tmp_path: Path) -> None:
    file = tmp_path / "project.yaml"
    file.write_text("title: T\ntasks:\n  - {key: a, role: engineer, instruction: x, skills: [code.execute]}\n")

    ended = start("--run", str(file), "--yes", "--rehearse")

    assert isinstance(ended.exception, Refused)
    assert ended.exception.code == "sandbox_unavailable"
    assert "bubblewrap" in ended.exception.message
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("title: T\ntasks: [{key: a, role: r, instruction: x, dependsOn: [b]}]\n", "unknown_dependency"),
        ("title: [", "invalid_yaml"),
        ("title: T\ntasks: [{key: a, role: r, instruction: x}]\n", "no_model"),
        (None, "missing"),
    ],
)
def test_a_project_that_submit_would_refuse_starts_no_stack(no_sandbox, content, code, tmp_path) -> None:
    file = tmp_path / "project.yaml"
    if content is not None:
        file.write_text(content)

    ended = start("--run", str(file), "--yes")

    assert isinstance(ended.exception, WrongUse)
    assert code in [fault.code for fault in ended.exception.faults]
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("word", ["--yes", "--rehearse"])
def test_words_about_a_project_need_one(no_sandbox: None, word: str, tmp_path: Path) -> None:
    ended = start(word)

    assert ended.exit_code == 2
    assert "--run" in ended.output
    assert not (tmp_path / "home").exists()
