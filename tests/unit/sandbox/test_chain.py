import sys
from pathlib import Path

import pytest

from registry.errors import SkillError
from workers.sandbox import process, programs
from workers.sandbox.process import LINKS, NoSandbox, describe, find_sandbox
from workers.sandbox.programs import Program, interpreters, resolve
from workers.sandbox.seatbelt import profile

PYTHON = Program("/opt/python/bin/python3.12", ("/opt/python/lib",))


def test_without_a_link_nothing_runs_and_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a machine on which no link works
    monkeypatch.setattr(process, "_probed", lambda name: (None, f"{name} does not work"))
    # Then every execution is refused
    sandbox = find_sandbox()
    assert isinstance(sandbox, NoSandbox)
    with pytest.raises(SkillError) as caught:
        sandbox.execute(["python3", "-c", "pass"], stdin=b"", files={}, timeout_s=1, cancelled=lambda: False)
    assert caught.value.code == "sandbox_unavailable"
    assert "apt install bubblewrap" in caught.value.message
    # And the reasons can be read
    assert [report.why_not for report in describe()] == [f"{name} does not work" for name in LINKS]


def test_a_link_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="'docker' is no link"):
        find_sandbox("docker")


def test_a_forced_link_falls_back_to_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_probed", lambda name: (None, "") if name == "landlock" else (object(), ""))
    assert isinstance(find_sandbox("landlock"), NoSandbox)


def test_the_workers_own_interpreter_comes_first() -> None:
    found = interpreters()
    assert Path(found[0].path).samefile(sys._base_executable)  # type: ignore[attr-defined]
    assert len({python.path for python in found}) == len(found)


def test_an_interpreter_brings_its_libraries_and_never_its_prefix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Given an interpreter that was installed right into somebody's home
    for folder in ("bin", "lib", ".ssh"):
        (tmp_path / folder).mkdir()
    executable = tmp_path / "bin" / "python3"
    executable.touch()
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "base_exec_prefix", str(tmp_path))
    # Then the home itself is not shown
    assert programs._trees(str(executable)) == (str(executable), str(tmp_path / "lib"))


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["python3", "-c", "pass"], [PYTHON.path, "-c", "pass"]),
        (["sh", "-c", "true"], ["/bin/sh", "-c", "true"]),
        (["/usr/bin/env"], ["/usr/bin/env"]),
    ],
)
def test_names_stand_for_the_programs_inside(argv: list[str], expected: list[str]) -> None:
    assert resolve(argv, PYTHON)[1] == expected


@pytest.mark.parametrize("name", ["perl", "./python3", "../bin/sh", ""])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(SkillError) as caught:
        resolve([name], PYTHON)
    assert caught.value.code == "unsupported_type"


def test_without_node_javascript_is_refused_in_plain_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SkillError, match=r"javascript needs Node\.js") as caught:
        resolve(["node"], PYTHON)
    assert caught.value.code == "unsupported_type"


@pytest.mark.parametrize("path", ["/usr/src/app/.env", "/usr/local/etc/app.toml", "/etc/shadow", "/usr/libexecutioner"])
def test_places_where_applications_keep_secrets_are_no_system_folders(path: str) -> None:
    assert not programs.in_system(path)


def test_a_path_cannot_end_its_quotes_in_a_seatbelt_profile() -> None:
    told = profile(['/opt/a") (allow default) ("'], "/private/tmp/scratch")
    assert '(subpath "/opt/a\\") (allow default) (\\"")' in told
    assert "(deny default)" in told
