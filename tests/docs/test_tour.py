"""docs/tour.md, line by line: the services of the compose file as processes, then a skill and a graph of one's own.

Where Docker would run a container, the same command of the same file runs here with the same settings and a real
Redis, in the order in which the file lets its services start.
"""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.stack.processes import Process
from orchestrator.stack.redis_server import free_port
from tests.commands import OFFICINA
from tests.pages import DOCS, ROOT, Block, blocks, matches, parts, terminal
from tests.support import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose" / "compose.yaml").read_text(encoding="utf-8"))
TOUR = DOCS / "tour.md"


class Deployed:
    """The compose file's services on this machine."""

    def __init__(self, folder: Path, database_url: str, redis_url: str, packages: Path) -> None:
        self.folder, self._processes = folder, list[Process]()
        self.port = free_port()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OFFICINA_")}
        here = {
            "OFFICINA_DATABASE_URL": database_url,
            "OFFICINA_BROKER_URL": redis_url,
            "OFFICINA_SECRET_KEY": said("connections", "new-key", folder=folder, environment=kept).strip(),
            "OFFICINA_MODEL_API_KEY": "",
            "OFFICINA_MODELS__STANDARD__NAME": "",
            "OFFICINA_API__HOSTS": "[]",
        }
        named = {name for name in COMPOSE["x-officina"]["environment"] if name.startswith("OFFICINA_")}
        assert set(here) == named, "the file has other settings by now"
        self._environment = (
            kept | here | {"OFFICINA_HOME": str(folder / "home"), "PYTHONPATH": str(packages), "COLUMNS": "200"}
        )

    def up(self) -> "Deployed":
        """Starts what the file starts, each when what it depends on is there."""
        assert list(COMPOSE["services"]["api"]["depends_on"]) == ["migrate", "redis"]
        self.exec(*COMPOSE["services"]["migrate"]["command"])
        self._start("api", "--port", str(self.port))
        self._start("worker")
        eventually(self._answers, 90, 0.2)
        eventually(lambda: " ready." in self.log("worker"), 90, 0.2)
        return self

    def exec(self, *words: str) -> str:
        """What `docker compose exec api officina ...` prints."""
        return said(*words, folder=self.folder, environment=self._environment)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(encoding="utf-8")

    def down(self) -> None:
        for process in reversed(self._processes):
            process.end(10)

    def _start(self, name: str, *more: str) -> None:
        words = [re.sub(r"\$\{\w+:-(\w+)\}", r"\1", word) for word in COMPOSE["services"][name]["command"]]
        self._processes.append(
            Process([OFFICINA, *words, *more], log=self.folder / f"{name}.log", env=self._environment)
        )

    def _answers(self) -> bool:
        import httpx2

        try:
            return httpx2.get(f"http://127.0.0.1:{self.port}/health/ready", timeout=2).status_code == 200
        except httpx2.TransportError:
            return False


def said(*words: str, folder: Path, environment: dict[str, str]) -> str:
    """What the command prints, out and err; it has to end well."""
    done = subprocess.run(
        [OFFICINA, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


#: The long form installs the package with pip, and its database is the one of the compose file.
FORMS = ["short", pytest.param("long", marks=pytest.mark.long)]


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def packages(tmp_path: Path, form: str) -> Path:
    """The package of docs/write-a-skill.md, installed."""
    project, target = tmp_path / "lines", tmp_path / "packages"
    project.mkdir()
    for block in blocks(DOCS / "write-a-skill.md"):
        if block.name is not None:
            (project / block.name).write_text(block.text, encoding="utf-8")
    if form == "long":
        quiet = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(target), "."]
        subprocess.run([sys.executable, "-m", "pip", *quiet], cwd=project, check=True, capture_output=True, timeout=100)
        return target
    # What pip leaves of it, as far as Python looks at it.
    about = target / "officina_lines-0.1.0.dist-info"
    about.mkdir(parents=True)
    (target / "officina_lines.py").write_text((project / "officina_lines.py").read_text())
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: officina-lines\nVersion: 0.1.0\n")
    points = tomllib.loads((project / "pyproject.toml").read_text())["project"]["entry-points"]["officina.skills"]
    (about / "entry_points.txt").write_text("[officina.skills]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()))
    return target


@pytest.fixture
def deployed(
    tmp_path: Path, redis_url: str, packages: Path, form: str, request: pytest.FixtureRequest
) -> Iterator[Deployed]:
    address = request.getfixturevalue("postgres_url") if form == "long" else f"sqlite:///{tmp_path / 'officina.db'}"
    system = Deployed(tmp_path, address, redis_url, packages)
    try:
        yield system.up()
    finally:
        system.down()


def test_the_tour_leads_where_it_says(deployed: Deployed, tmp_path: Path, packages: Path) -> None:
    key = re.findall(r"ofk_\S+", deployed.exec("keys", "add", "tour"))[0]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OFFICINA_")}
    environment = kept | {
        "OFFICINA_HOME": str(elsewhere / "home"),
        "PYTHONPATH": str(packages),
        "COLUMNS": "200",
    }
    visitor = Visitor(
        elsewhere, environment, {"KEY": key, "http://127.0.0.1:4000": f"http://127.0.0.1:{deployed.port}"}
    )

    for block in blocks(TOUR):
        if block.name is not None:
            (elsewhere / block.name).write_text(block.text, encoding="utf-8")
    for block in blocks(TOUR):
        if block.mark is None:
            visitor.follow(block)
    (client,) = [block for block in blocks(DOCS / "api.md") if block.language == "python"]
    (elsewhere / "project.yaml").write_text((elsewhere / "hello.yaml").read_text() + "script: s.yaml\n")
    (elsewhere / "s.yaml").write_text("otherwise: rule\n")
    followed = visitor.execute(
        client.text.replace("http://127.0.0.1:4000", f"http://127.0.0.1:{deployed.port}").replace("ofk_...", key)
    )

    assert visitor.commands == 7
    assert followed.splitlines()[0].endswith("project.planned") and "run.completed" in followed


class Visitor:
    """Follows a page with the installed command, from a folder of its own."""

    def __init__(self, folder: Path, environment: dict[str, str], here: dict[str, str]) -> None:
        self._folder, self._environment, self._here = folder, environment, here
        self._made = ""
        #: Commands that ran and said what the page says.
        self.commands = 0

    def follow(self, block: Block) -> None:
        if block.language == "python":
            self.execute(block.text)
        for line in terminal(block) if block.language == "console" else ():
            ((program, *words),) = parts(line.command)
            if program == "export":
                name, _, value = words[0].partition("=")
                self._environment[name] = self._here[value]
                continue
            assert program == "officina"
            words = [self._made if word == "PROJECT" else word for word in words]
            answer = said(*words, folder=self._folder, environment=self._environment)
            if words[0] == "submit":
                self._made = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", answer)[0]
            assert not line.expected or matches(line.expected, answer), f"{line.command} printed\n{answer}"
            self.commands += 1

    def execute(self, program: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
