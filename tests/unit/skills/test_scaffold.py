"""code.scaffold_react_node: a project whole or not at all, in which every text stays a text (spec: skills 7.11)."""

import html.parser
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orchestrator.workspaces.jail import JailedWorkspace
from registry.skills.context import Authority, Caller, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult
from registry.skills.scaffold import SKILLS
from registry.skills.scaffolding import rendering

REGISTRY = SkillRegistry(SKILLS)
EVIL = "</script><script>alert(1)</script> {boom()} ${x} `y` \" ' \\ <!-- */ {{ 7*7 }} {% if %}"


class Desk:
    def __init__(self, folder: Path, **limits: int) -> None:
        self.folder = folder
        self.workspace = JailedWorkspace(folder, **limits)
        self.events: list[Any] = []

    def call(self, **arguments: Any) -> SkillResult:
        about = SkillContext(
            Caller("person"), workspace=self.workspace, emit=lambda kind, data: self.events.append((kind, data))
        )
        given = {"name": "demo-app"} | arguments
        return REGISTRY.invoke("code.scaffold_react_node", given, about, Authority(None))

    def made(self, **arguments: Any) -> dict[str, Any]:
        result = self.call(**arguments)
        assert result.ok, result.error
        return result.output  # type: ignore[no-any-return]

    def read(self, path: str) -> str:
        return (self.folder / path).read_text(encoding="utf-8")

    def files(self) -> list[str]:
        return [e.path for e in self.workspace.entries(".", recursive=True) if e.type == "file"]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


ALL = {
    "title": EVIL[:80],
    "description": EVIL,
    "pages": [
        {"name": EVIL[:40], "path": "/"},
        {"name": "About", "path": "/about"},
        {"name": "about", "path": "/a/:id"},
    ],
    "apiRoutes": [{"method": "GET", "path": "/health"}, {"method": "POST", "path": "/notes/:id", "summary": EVIL}],
    "features": ["router", "tests", "sqlite", "docker"],
    "port": 4321,
}


def test_a_project_is_written_and_told(desk: Desk) -> None:
    made = desk.made()

    assert made["root"] == "demo-app"
    assert {one["path"] for one in made["files"]} == set(desk.files())
    assert {
        "demo-app/package.json",
        "demo-app/src/App.jsx",
        "demo-app/server/app.js",
        "demo-app/src/pages/HomePage.jsx",
    } <= set(desk.files())
    assert made["scripts"] == ["build", "dev:client", "dev:server", "start"]
    assert made["nextSteps"][0] == "cd demo-app" and made["warnings"] == []
    assert len(desk.events) == len(made["files"])
    package = json.loads(desk.read("demo-app/package.json"))
    assert package["name"] == "demo-app" and package["private"] is True
    pins = package["dependencies"] | package["devDependencies"]
    assert {"react", "express", "vite", "react-router"} <= set(pins)
    assert all(pin[0].isdigit() for pin in pins.values()), "versions are pinned"


def test_what_a_person_shall_type_does_no_more_than_it_says(desk: Desk) -> None:
    folder = "it's $(touch pwned); touch pwned"
    step = desk.made(dir=folder)["nextSteps"][0]
    told = subprocess.run(["sh", "-c", f"{step} && pwd"], cwd=desk.folder, capture_output=True, text=True, check=True)
    assert told.stdout.strip().endswith(folder)
    assert not list(desk.folder.rglob("pwned"))


def test_features_add_their_files(desk: Desk) -> None:
    made = desk.made(**ALL)

    names = {one["path"].removeprefix("demo-app/") for one in made["files"]}
    assert {"tests/app.test.js", "server/database.js", "Dockerfile", ".dockerignore"} <= names
    assert "EXPOSE 4321" in desk.read("demo-app/Dockerfile")
    assert "test" in made["scripts"] and len(made["files"]) <= 60
    bare = desk.made(name="bare", features=[])
    assert "react-router" not in desk.read("bare/package.json") + desk.read("bare/src/App.jsx")
    assert len(bare["files"]) < len(made["files"])


def test_every_text_stays_a_text_in_the_language_it_lands_in(desk: Desk) -> None:
    desk.made(**ALL)

    page = desk.read("demo-app/index.html")
    assert page.count("<script") == 1 and "alert(1)</" not in page
    tags: list[str] = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(page)
    assert tags.count("script") == 1
    for path in desk.files():
        text = desk.read(path)
        assert path.endswith("package.json") or "<script>alert" not in text, path
        assert "49" not in text, "no template in a text is run"
        if path.endswith((".js", ".jsx")):
            for line in text.splitlines():
                assert "boom()" not in line or '"' in line.split("boom()")[0], (path, line)
    readme = desk.read("demo-app/README.md")
    assert "\\<script\\>" in readme and "\\{\\{ 7" in readme


@pytest.mark.skipif(shutil.which("node") is None, reason="reads JavaScript with Node")
def test_node_reads_every_file_of_the_server(desk: Desk) -> None:
    desk.made(**ALL)

    for path in desk.files():
        if path.endswith(".js"):
            checked = subprocess.run(
                ["node", "--check", desk.folder / path], capture_output=True, text=True, check=False
            )
            assert checked.returncode == 0, (path, checked.stderr)
    program = "import('./demo-app/server/routes.js').then((m) => console.log(JSON.stringify(m.routes)))"
    shown = subprocess.run(["node", "-e", program], cwd=desk.folder, capture_output=True, text=True, check=True)
    assert json.loads(shown.stdout)[1]["summary"] == " ".join(EVIL.split())


def test_a_value_without_a_filter_never_gets_into_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.j2").write_text("{{ title }}")
    (tmp_path / "undefined.j2").write_text("{{ nothing | js }}")
    monkeypatch.setattr(rendering, "_TEMPLATES", tmp_path)
    rendering._environment.cache_clear()
    try:
        with pytest.raises(TypeError, match="without a filter"):
            rendering.render("bad", title="x")
        with pytest.raises(Exception, match="Undefined"):
            rendering.render("undefined")
    finally:
        rendering._environment.cache_clear()


def test_a_folder_that_holds_something_is_a_conflict_and_stays(desk: Desk) -> None:
    desk.workspace.write("demo-app/mine.txt", b"mine", max_bytes=10)

    assert desk.call().code == "conflict"
    assert desk.files() == ["demo-app/mine.txt"]
    desk.made(overwrite=True)
    assert desk.read("demo-app/mine.txt") == "mine"
    desk.made(name="other", dir="deep/er/place")
    assert (desk.folder / "deep/er/place/package.json").is_file()


def test_where_there_is_no_room_nothing_is_written(tmp_path: Path) -> None:
    small = Desk(tmp_path, max_files=5)

    assert small.call().code == "quota"
    assert small.files() == []


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"name": "a"}, "name"),
        ({"name": "Demo"}, "name"),
        ({"name": "a" * 40}, "name"),
        ({"name": "fs"}, "Node"),
        ({"name": "node-modules"}, "Node"),
        ({"name": "child-process"}, "Node"),
        ({"title": "x" * 81}, "title"),
        ({"description": "x" * 501}, "description"),
        ({"pages": []}, "pages"),
        ({"pages": [{"name": "a", "path": f"/{n}"} for n in range(13)]}, "pages"),
        ({"pages": [{"name": "a", "path": "/"}, {"name": "b", "path": "/"}]}, "twice"),
        ({"pages": [{"name": "a", "path": "about"}]}, "path"),
        ({"pages": [{"name": "a", "path": "/a b"}]}, "path"),
        ({"pages": [{"name": "a", "path": "/:"}]}, "path"),
        ({"pages": [{"name": "a", "path": '/"x'}]}, "path"),
        ({"pages": [{"name": "", "path": "/"}]}, "name"),
        ({"apiRoutes": [{"method": "GET", "path": f"/{n}"} for n in range(21)]}, "apiRoutes"),
        ({"apiRoutes": [{"method": "GET", "path": "/a"}] * 2}, "twice"),
        ({"apiRoutes": [{"method": "TRACE", "path": "/a"}]}, "method"),
        ({"apiRoutes": [{"method": "GET", "path": "/_routes"}]}, "_routes"),
        ({"features": ["redux"]}, "features"),
        ({"features": ["router", "router"]}, "twice"),
        ({"port": 80}, "port"),
        ({"port": 65_536}, "port"),
        ({"approved": True}, "approved"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(desk: Desk, arguments: dict[str, Any], word: str) -> None:
    refused = desk.call(**arguments)

    assert refused.code == "invalid_input" and word in str(refused.error), refused
    assert desk.files() == []


def test_a_folder_outside_is_an_escape(desk: Desk) -> None:
    assert desk.call(dir="../out").code == "path_escape"


def test_without_a_workspace_nothing_is_claimed() -> None:
    answer = REGISTRY.invoke(
        "code.scaffold_react_node", {"name": "demo"}, SkillContext(Caller("person")), Authority(None)
    )

    assert answer.ok and (answer.output["wired"], answer.output["files"]) == (False, [])


def test_it_acts_on_the_world_and_asks() -> None:
    (skill,) = SKILLS
    assert skill.world_acting and skill.effect == "once"
    assert (
        REGISTRY.invoke("code.scaffold_react_node", {"name": "demo"}, SkillContext(Caller("plugin"))).code == "denied"
    )
