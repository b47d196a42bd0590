"""studio.author_skill_bundle: a proposal in plain files, and nothing more (spec: skills 7.29)."""

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.workspaces.jail import JailedWorkspace
from registry.skills.authoring import SKILLS
from registry.skills.context import Caller, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult
from registry.skills.reviews import findings

REGISTRY = SkillRegistry(SKILLS)
CODE = "import subprocess\n\n\ndef run(x):\n    return eval(x)\n"
SKILL = {
    "name": "weather.today",
    "description": "Tells the weather.",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object"},
    "worldActing": False,
}
BUNDLE: dict[str, Any] = {
    "id": "weather",
    "name": "Weather",
    "version": "0.1.0",
    "skills": [SKILL],
    "files": [{"path": "weather.py", "content": CODE}, {"path": "docs/notes.md", "content": "# Notes\n"}],
    "capabilities": ["net:api.example.com", "secret:key"],
}


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder, self.events = folder, []  # type: ignore[var-annotated]
        self.workspace = JailedWorkspace(folder)

    def call(self, **arguments: Any) -> SkillResult:
        about = SkillContext(
            Caller("run"), workspace=self.workspace, emit=lambda kind, data: self.events.append((kind, data))
        )
        return REGISTRY.invoke("studio.author_skill_bundle", BUNDLE | arguments, about)

    def files(self) -> list[str]:
        return [e.path for e in self.workspace.entries(".", recursive=True) if e.type == "file"]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_proposal_is_written_as_plain_files_and_nothing_is_installed(desk: Desk) -> None:
    modules, path = set(sys.modules), list(sys.path)
    made = desk.call().output

    assert (made["dir"], made["installed"]) == ("plugins-proposed/weather", False)
    assert sorted(desk.files()) == [
        "plugins-proposed/weather/REVIEW.md",
        "plugins-proposed/weather/docs/notes.md",
        "plugins-proposed/weather/manifest.json",
        "plugins-proposed/weather/weather.py",
    ]
    assert (desk.folder / "plugins-proposed/weather/weather.py").read_text() == CODE
    assert len([kind for kind, _ in desk.events if kind == "file.written"]) == 4
    assert "weather" not in set(sys.modules) - modules and sys.path == path
    assert not any(os.access(desk.folder / one, os.X_OK) for one in desk.files() if os.geteuid() != 0)


def test_the_manifest_grants_nothing_whatever_was_sent(desk: Desk) -> None:
    made = desk.call().output

    manifest = json.loads((desk.folder / made["manifestPath"]).read_text())
    assert (manifest["installed"], manifest["granted"], manifest["entry"]) == (False, [], "weather.py")
    assert manifest["capabilities"] == ["net:api.example.com", "secret:key"]
    assert manifest["files"]["weather.py"] == hashlib.sha256(CODE.encode()).hexdigest()
    assert desk.call(id="other", granted=["llm"]).code == "invalid_input"
    assert desk.call(id="other", installed=True).code == "invalid_input"


def test_the_review_tells_facts_and_no_words_of_the_author_as_ours(desk: Desk) -> None:
    made = desk.call(name="Safe` # Approved by Officina | **ok**").output

    review = (desk.folder / made["reviewPath"]).read_text()
    assert "weather.py" in review and hashlib.sha256(CODE.encode()).hexdigest() in review
    assert "imports subprocess: starts programs" in review and "calls eval" in review
    assert "net:api.example.com" in review
    assert "`Safe  # Approved by Officina   **ok**`" in review
    assert {f["what"] for f in made["findings"]} == {
        "imports subprocess: starts programs",
        "calls eval: runs text as code",
    }
    assert [f["line"] for f in made["findings"]] == [1, 5]


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("exec('1')", "calls exec"),
        ("compile('1', '', 'eval')", "calls compile"),
        ("__import__('os')", "calls __import__"),
        ("from os import system", "imports os"),
        ("import socket as s", "opens network"),
        ("open('x')", "opens a file"),
        ("getattr(x, 'e' + 'val')", "made at run time"),
        ("getattr(x, name)", "made at run time"),
        ("().__class__.__bases__[0].__subclasses__()", "__subclasses__"),
        ("__builtins__['eval']", "__builtins__"),
        ("def f(:", "is no Python"),
        ("x = '\0'", "Python"),
        ("(" * 5000 + ")" * 5000, "pars"),
        ("x = " + "-" * 100_000 + "1", "pars"),
        ("# \u202e evil", "U+202E"),
    ],
)
def test_what_a_reviewer_should_see_is_found(code: str, what: str) -> None:
    told = [line for _, _, line in findings({"a.py": code})]

    assert any(what in line or "is no Python" in line for line in told), told


def test_ordinary_code_has_no_findings() -> None:
    code = "import math\n\n\ndef area(r: float) -> float:\n    return math.pi * r ** 2\n"
    assert findings({"a.py": code}) == [("a.py", 1, "imports math")]


def test_a_folder_that_is_there_is_a_conflict_and_stays(desk: Desk) -> None:
    desk.call()
    again = desk.call(files=[{"path": "weather.py", "content": "changed"}])

    assert again.code == "conflict"
    assert (desk.folder / "plugins-proposed/weather/weather.py").read_text() == CODE


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"id": "w"}, "id"),
        ({"id": "Weather"}, "id"),
        ({"id": "a" * 32}, "id"),
        ({"id": "../up"}, "id"),
        ({"id": "files"}, "built-in"),
        ({"id": "studio"}, "built-in"),
        ({"version": "1"}, "version"),
        ({"version": "1.0.0 "}, "version"),
        ({"skills": []}, "skills"),
        ({"skills": [SKILL] * 6}, "skills"),
        ({"skills": [SKILL, SKILL]}, "twice"),
        ({"skills": [SKILL | {"name": "files.read"}]}, "files.read"),
        ({"skills": [SKILL | {"name": "weather.a__b"}]}, "a__b"),
        ({"skills": [SKILL | {"name": "weatherx.a"}]}, "weatherx.a"),
        ({"files": []}, "files"),
        ({"files": [{"path": f"f{n}.py", "content": ""} for n in range(11)]}, "files"),
        ({"files": [{"path": "a.py", "content": "x" * 65_537}]}, "65537"),
        ({"files": [{"path": "a.sh", "content": ""}]}, ".py"),
        ({"files": [{"path": "a", "content": ""}]}, ".py"),
        ({"files": [{"path": "manifest.json", "content": "{}"}]}, "manifest.json"),
        ({"files": [{"path": "Review.MD", "content": ""}]}, ".py"),
        ({"files": [{"path": "review.md", "content": ""}]}, "review.md"),
        ({"files": [{"path": "a.py", "content": ""}, {"path": "A.py", "content": ""}]}, "twice"),
        ({"capabilities": ["root"]}, "capabilities"),
        ({"capabilities": ["net:"]}, "capabilities"),
    ],
)
def test_a_bad_bundle_is_refused_and_nothing_is_written(desk: Desk, arguments: dict[str, Any], word: str) -> None:
    refused = desk.call(**arguments)

    assert refused.code == "invalid_input" and word in str(refused.error), refused
    assert desk.files() == []


@pytest.mark.parametrize("path", ["../a.py", "/etc/a.py", "a/../../b.py", ".officina/a.py", "~/a.py", "C:\\a.py"])
def test_a_path_out_of_its_folder_is_an_escape(desk: Desk, path: str) -> None:
    assert desk.call(files=[{"path": path, "content": ""}]).code == "path_escape"
    assert desk.files() == []


def test_without_a_workspace_nothing_is_claimed() -> None:
    result = REGISTRY.invoke("studio.author_skill_bundle", BUNDLE, SkillContext(Caller("person")))

    assert result.ok
    assert (result.output["wired"], result.output["files"], result.output["installed"]) == (False, [], False)


def test_a_new_tree_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    small = JailedWorkspace(tmp_path, max_bytes=10)
    with pytest.raises(Exception, match="10 is the most"):
        small.write_tree("a/b", {"one.txt": b"123456", "two/three.txt": b"7890123"})
    assert [e.path for e in small.entries(".", recursive=True) if e.type == "file"] == []

    whole = JailedWorkspace(tmp_path)
    stored = whole.write_tree("a/b", {"one.txt": b"1", "two/three.txt": b"3"})
    assert [one.path for one in stored] == ["a/b/one.txt", "a/b/two/three.txt"]
    with pytest.raises(Exception, match="holds something"):
        whole.write_tree("a/b", {"one.txt": b"2"})
    whole.write_tree("a/b", {"one.txt": b"2"}, overwrite=True)
    assert (tmp_path / "a/b/one.txt").read_bytes() == b"2"
    assert (tmp_path / "a/b/two/three.txt").read_bytes() == b"3"
    (tmp_path / "empty").mkdir()
    whole.write_tree("empty", {"x.txt": b""})
    (tmp_path / "file").write_text("x")
    with pytest.raises(Exception, match="file"):
        whole.write_tree("file", {"x.txt": b""})
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(Exception, match="link"):
        whole.write_tree("link/c", {"x.txt": b""})
    with pytest.raises(Exception, match="link"):
        whole.write_tree("link", {"x.txt": b""})
    assert not list(tmp_path.rglob(".officina-tmp*"))
