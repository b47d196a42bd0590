"""docs/write-a-skill.md does what it says: its files are built, installed, tested and used."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from registry.errors import WrongUse
from registry.skills import catalogue

PAGE = Path(__file__).parents[2] / "docs" / "write-a-skill.md"
BIN = Path(sys.executable).parent


def blocks() -> dict[str, str]:
    """Every file of the page: its name stands alone on the line before its block."""
    found = re.findall(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return dict(found)


def commands() -> list[str]:
    (block,) = re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return [line.removeprefix("$ ") for line in block.splitlines()]


def test_the_page_makes_a_skill_that_is_installed_tested_and_used(tmp_path: Path) -> None:
    project, site = tmp_path / "project", tmp_path / "site"
    project.mkdir()
    for name, text in blocks().items():
        (project / name).write_text(text, encoding="utf-8")
    assert set(blocks()) == {"officina_lines.py", "pyproject.toml", "test_officina_lines.py"}
    environment = os.environ | {"PYTHONPATH": str(site), "OFFICINA_HOME": str(tmp_path / "home")}

    def run(*words: str) -> str:
        done = subprocess.run(
            words, cwd=project, env=environment, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    # As `pip install .` does, but into a folder of this test, and with the build tools that are here.
    install, show, invoke = commands()
    assert install == "pip install ."
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        str(site),
        ".",
    )
    tested = run(
        sys.executable, "-m", "pytest", "-q", "-p", "no:valkey", "-p", "no:cacheprovider", "test_officina_lines.py"
    )
    assert "3 passed" in tested
    assert "Counts the lines" in run(str(BIN / "officina"), *show.split()[1:])
    (project / "work" / "notes").mkdir(parents=True)
    (project / "work" / "notes" / "a.txt").write_text("one\ntwo words\n")
    head, given, tail = re.fullmatch(r"officina (.*) --input '(.*)' (.*)", invoke).groups()  # type: ignore[union-attr]
    said = run(str(BIN / "officina"), *head.split(), "--input", given, *tail.split())
    assert json.loads(said)["output"]["lines"] == 2
    listed = {one["name"]: one for one in json.loads(run(str(BIN / "officina"), "skills", "--json"))}
    assert len(listed) == 31 and listed["lines.count"]["operations"] == ["fs.read"]


def offered(monkeypatch: pytest.MonkeyPatch, value: Any, name: str = "lines") -> None:
    """An installed package whose entry point gives this value; an exception is raised."""

    class Point(EntryPoint):
        def load(self) -> Any:
            if isinstance(value, Exception):
                raise value
            return value

    monkeypatch.setattr(catalogue, "points", lambda: [Point(name, "some_package:thing", catalogue.GROUP)])


def renamed(name: str) -> Any:
    from dataclasses import replace

    return replace(next(iter(catalogue.catalogue())), name=name)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (ImportError("no module named x"), "no module named x"),
        ("a text", "neither a skill"),
        ((), "neither a skill"),
        (renamed("files.shred"), "leave the group 'files'"),
        (renamed("math.evaluate"), "leave the group 'math'"),
        (renamed("shred"), "two parts"),
    ],
)
def test_a_package_that_does_not_fit_stops_the_start_and_is_named(
    monkeypatch: pytest.MonkeyPatch, value: Any, words: str
) -> None:
    offered(monkeypatch, value)

    with pytest.raises(WrongUse) as refused:
        catalogue.build()
    assert words in refused.value.message and "some_package:thing" in refused.value.message


def test_a_package_may_bring_several_and_each_name_once(monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, (renamed("lines.a"), renamed("lines.b")))
    assert len(catalogue.build()) == 32

    offered(monkeypatch, (renamed("lines.a"), renamed("lines.a")))
    with pytest.raises(ValueError, match="twice"):
        catalogue.build()
