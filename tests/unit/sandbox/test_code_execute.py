"""The skill over a sandbox that only writes down what it is asked (the real ones have tests of their own)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from orchestrator.workspaces.jail import JailedWorkspace
from registry.errors import SkillError
from registry.skills.code import SKILLS
from registry.skills.context import Authority, Caller, Execution, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult


@dataclass
class Recorder:
    """A sandbox that keeps the last request and gives the execution it was made with."""

    files: list[tuple[str, bytes]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    exit_code: int | None = 0
    stderr: bytes = b""
    asked: dict[str, Any] = field(default_factory=dict)

    def execute(
        self,
        argv: list[str],
        *,
        stdin: bytes,
        files: Mapping[str, bytes],
        timeout_s: float,
        cancelled: Callable[[], bool],
        max_output_bytes: int = 65_536,
        collect: bool = False,
    ) -> Execution:
        self.asked = {"argv": argv, "stdin": stdin, "files": files, "timeout_s": timeout_s, "collect": collect}
        return Execution(
            exit_code=self.exit_code,
            signal=None if self.exit_code is not None else "SIGKILL",
            stdout=b"\xff ok",
            stderr=self.stderr,
            stdout_truncated=False,
            stderr_truncated=False,
            timed_out=False,
            duration_ms=5,
            files=self.files,
            warnings=self.warnings,
        )


class Desk:
    def __init__(self, root: Path) -> None:
        self.workspace = JailedWorkspace(root)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.registry = SkillRegistry(SKILLS)

    def call(self, sandbox: Recorder | None, **arguments: Any) -> SkillResult:
        context = SkillContext(
            Caller("person"),
            workspace=self.workspace,
            sandbox=sandbox,
            emit=lambda kind, data: self.events.append((kind, data)),
        )
        return self.registry.invoke("code.execute", arguments, context, Authority(None))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "workspace")


def test_the_skill_acts_on_the_world_once() -> None:
    (skill,) = SKILLS
    assert skill.operations_of(None) == ["process", "world"]
    assert (skill.effect, skill.world_acting, skill.timeout_s) == ("once", True, 60)
    assert skill.needs == {"sandbox", "workspace"}
    assert "in/" in skill.description and "out/" in skill.description


def test_the_program_and_its_files_lie_under_in(desk: Desk) -> None:
    desk.workspace.write("data/a.csv", b"1,2", max_bytes=10)
    sandbox = Recorder()
    result = desk.call(sandbox, code="print(1)", args=["a b"], stdin="é", inputFiles=["./data//a.csv"], timeoutMs=500)
    assert result.ok
    assert sandbox.asked == {
        "argv": ["python3", "-B", "-u", "in/.officina-program.py", "a b"],
        "stdin": "é".encode(),
        "files": {"data/a.csv": b"1,2", ".officina-program.py": b"print(1)"},
        "timeout_s": 0.5,
        "collect": False,
    }


@pytest.mark.parametrize(("language", "word"), [("python", "python3"), ("javascript", "node"), ("shell", "sh")])
def test_each_language_has_its_program(desk: Desk, language: str, word: str) -> None:
    sandbox = Recorder()
    desk.call(sandbox, code="x", language=language)
    assert sandbox.asked["argv"][0] == word


def test_a_failing_program_is_a_result(desk: Desk) -> None:
    result = desk.call(Recorder(exit_code=3, stderr=b"oh no"), code="x")
    assert result.ok
    assert result.output["exitCode"] == 3
    assert result.output["stderr"] == "oh no"
    assert result.output["stdout"] == "\ufffd ok"


def test_what_the_sandbox_did_is_told_in_stderr(desk: Desk) -> None:
    result = desk.call(Recorder(exit_code=None, stderr=b"cut", warnings=["ended: too much"]), code="x")
    assert (result.output["exitCode"], result.output["signal"]) == (None, "SIGKILL")
    assert result.output["stderr"] == "cut\n[sandbox] ended: too much\n"


def test_outputs_go_to_the_workspace_and_into_the_trace(desk: Desk) -> None:
    desk.workspace.write("report/a.txt", b"older", max_bytes=10)
    result = desk.call(Recorder(files=[("report/a.txt", b"new")]), code="x", saveOutputs=True)
    assert result.output["files"] == [{"path": "report/a.txt", "bytes": 3}]
    assert desk.workspace.read("report/a.txt", max_bytes=10) == b"new"
    ((kind, data),) = desk.events
    assert (kind, data["path"], data["bytes"], data["skill"]) == ("file.written", "report/a.txt", 3, "code.execute")
    assert len(data["sha256"]) == 64


@pytest.mark.parametrize("path", [".officina/outputs/x", "bad\u202ename", "a/.officinA"])
def test_an_output_the_workspace_refuses_is_told_and_the_others_stay(desk: Desk, path: str) -> None:
    result = desk.call(Recorder(files=[(path, b"x"), ("good", b"y")]), code="x", saveOutputs=True)
    assert result.ok
    assert result.output["files"] == [{"path": "good", "bytes": 1}]
    assert "was not saved" in result.output["stderr"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"code": ""}, "invalid_input"),
        ({"code": "é" * 32_769}, "invalid_input"),
        ({"code": "x", "stdin": "é" * 32_769}, "invalid_input"),
        ({"code": "x", "args": ["a\0b"]}, "invalid_input"),
        ({"code": "x", "args": ["é" * 129]}, "invalid_input"),
        ({"code": "x", "args": ["a"] * 17}, "invalid_input"),
        ({"code": "x", "language": "perl"}, "invalid_input"),
        ({"code": "x", "timeoutMs": 499}, "invalid_input"),
        ({"code": "x", "timeoutMs": 60_001}, "invalid_input"),
        ({"code": "x", "timeoutMs": "1000"}, "invalid_input"),
        ({"code": "x", "approved": True}, "invalid_input"),
        ({"code": "x", "inputFiles": ["a"] * 21}, "invalid_input"),
        ({"code": "x", "inputFiles": ["../a"]}, "path_escape"),
        ({"code": "x", "inputFiles": ["/etc/passwd"]}, "path_escape"),
        ({"code": "x", "inputFiles": ["missing"]}, "not_found"),
    ],
)
def test_bad_input_runs_nothing(desk: Desk, arguments: dict[str, Any], code: str) -> None:
    sandbox = Recorder()
    result = desk.call(sandbox, **arguments)
    assert (result.ok, result.code) == (False, code)
    assert sandbox.asked == {}


def test_the_bounds_themselves_are_fine(desk: Desk) -> None:
    result = desk.call(Recorder(), code="é" * 32_768, stdin="é" * 32_768, args=["é" * 128] * 16, timeoutMs=60_000)
    assert result.ok


def test_without_a_sandbox_nothing_runs(desk: Desk) -> None:
    assert desk.call(None, code="x").code == "sandbox_unavailable"


def test_a_refusal_of_the_sandbox_keeps_its_code(desk: Desk) -> None:
    class Refusing(Recorder):
        def execute(self, *_arguments: Any, **_options: Any) -> Execution:
            raise SkillError("unsupported_type", "javascript needs Node.js")

    assert desk.call(Refusing(), code="x", language="javascript").code == "unsupported_type"
