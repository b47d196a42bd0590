"""What holds for the house as a whole: directions, weights, names, and what a newcomer needs."""

import ast
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PACKAGES = ("registry", "orchestrator", "workers")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LONGEST_FILE = 450


def run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=100, check=False, **options)  # type: ignore[call-overload,no-any-return]


def files(*patterns: str) -> list[Path]:
    """What the repository holds or is about to hold."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns).stdout.splitlines()
    return [ROOT / line for line in listed if (ROOT / line).is_file()]


def code() -> list[Path]:
    return files(*(f"{package}/**.py" for package in PACKAGES))


def test_imports_go_one_way() -> None:
    checked = run(Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo")

    assert checked.returncode == 0, checked.stdout


IMPORT_ALL = """
import json, pkgutil, socket, sys, threading

opened = []
sys.addaudithook(lambda event, args: opened.append(event) if event in ("socket.__new__", "sqlite3.connect") else None)
skipped = ("orchestrator.store.migrations",)  # Alembic runs these with a connection at hand
names = [
    module.name
    for package in sys.argv[1:]
    for module in pkgutil.walk_packages(__import__(package).__path__, package + ".")
    if not module.name.startswith(skipped) and not module.name.endswith("__main__")
]
before = threading.active_count()
for name in names:
    __import__(name)
print(json.dumps({"modules": len(names), "opened": opened, "threads": threading.active_count() - before}))
"""


def test_importing_everything_opens_no_socket_no_database_and_no_thread() -> None:
    done = run(sys.executable, "-P", "-c", IMPORT_ALL, *PACKAGES)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["modules"] > 50
    assert found["opened"] == []
    assert found["threads"] == 0


SHOW_HELP = """
import sys
from workers.cli import main

sys.argv[1:] = ["--help"]
try:
    main()
finally:
    print(*sys.modules)
"""


def test_help_loads_nothing_heavy() -> None:
    shown = run(sys.executable, "-P", "-c", SHOW_HELP)

    loaded = set(shown.stdout.splitlines()[-1].split())
    assert "typer" in loaded
    assert not loaded & {"openai", "celery", "kombu", "redis", "sqlalchemy", "alembic", "flower", "rich", "docx", "re2"}


def test_a_run_in_process_loads_nothing_it_does_not_use(tmp_path: Path) -> None:
    (tmp_path / "agent.json").write_text('{"id": "ada", "instructions": "Work."}')
    (tmp_path / "script.json").write_text('{"input": "hello", "model": [{"text": "Done."}]}')
    words = ["graph", "run", str(tmp_path / "agent.json"), "--script", str(tmp_path / "script.json")]

    done = run(sys.executable, "-P", "-c", SHOW_HELP.replace('["--help"]', repr(words)))

    assert done.stdout.splitlines()[0] == "Done."
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "sqlalchemy" in loaded
    assert not loaded & {"openai", "celery", "kombu", "redis", "alembic", "jsonschema", "psycopg", "sqlalchemy.orm"}
    assert "sqlalchemy.dialects.postgresql" not in loaded


def test_no_file_of_code_is_long() -> None:
    written = [path for path in code() if "migrations" not in path.parts]  # those are generated from the tables
    lengths = {path.relative_to(ROOT): len(path.read_text(encoding="utf-8").splitlines()) for path in written}

    assert lengths
    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def test_nothing_names_the_machine_it_was_written_on() -> None:
    places = {str(ROOT), sys.base_prefix, str(Path.home())} - {"/", "/usr", "/root"}

    def named(path: Path) -> list[str]:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return []
        return [place for place in places if f"{place}/" in text]

    assert {path: found for path in files() if (found := named(path))} == {}


def locked(name: str) -> dict[str, str]:
    """Package -> version of a lock file."""
    pins = re.findall(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==([^ ;\\]+)", (ROOT / name).read_text(encoding="utf-8"), re.M)
    return {canonicalize_name(package): version for package, version in pins}


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_names_versions_and_hashes_and_no_place(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")

    assert "://" not in text
    assert not re.search(r"^\s*(-i|-f|-e|--(index|extra|find|trusted))|file:|\s@\s", text, re.M)
    assert text.count("--hash=sha256:") >= len(locked(name)) > 60


def declared(*extras: str) -> list[Requirement]:
    listed = [*PROJECT["project"]["dependencies"]]
    for extra in extras:
        listed += PROJECT["project"]["optional-dependencies"][extra]
    return [Requirement(line) for line in listed]


@pytest.mark.parametrize(
    ("name", "extras"), [("requirements.lock", ["skills"]), ("requirements-dev.lock", ["skills", "dev"])]
)
def test_a_lock_holds_what_the_project_declares(name: str, extras: list[str]) -> None:
    pins = locked(name)

    for requirement in declared(*extras):
        version = pins.get(canonicalize_name(requirement.name))
        assert version, f"{requirement} is not in {name}: make lock"
        assert requirement.specifier.contains(version, prereleases=True), f"{requirement}, but {name} has {version}"


def test_both_locks_agree() -> None:
    small, large = locked("requirements.lock"), locked("requirements-dev.lock")

    assert small.items() <= large.items()


def imported(path: Path) -> Iterator[str]:
    """Top names of the modules a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize(("folder", "extras"), [("code", ["skills"]), ("tests", ["skills", "dev"])])
def test_every_package_that_is_imported_is_declared(folder: str, extras: list[str]) -> None:
    names = {canonicalize_name(requirement.name) for requirement in declared(*extras)}
    known = packages_distributions()
    own = {*PACKAGES, "tests", "benchmarks", *sys.stdlib_module_names}
    own.add("inside")  # workers/sandbox/inside, as keepers that run by their path import it

    undeclared = {
        (str(path.relative_to(ROOT)), module)
        for path in (code() if folder == "code" else files("tests/**.py"))
        for module in imported(path)
        if module not in own and not {canonicalize_name(name) for name in known.get(module, ())} & names
    }

    assert undeclared == set()


def test_help_lists_every_target_that_is_documented() -> None:
    listed = {line.split()[0] for line in run("make").stdout.splitlines()}
    pages = [ROOT / "README.md", *files("docs/**.md")]
    documented = {name for page in pages for name in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.M)}

    assert {"run", "test", "quick", "lint", "types", "up", "lock", "clean", "help"} <= listed
    assert documented <= listed


@pytest.mark.parametrize(("given", "answered"), [("YES=1", True), ("YES=", False)])
def test_make_run_answers_the_approval_only_when_told(given: str, answered: bool) -> None:
    would = run("make", "--dry-run", "run", given).stdout

    assert "officina up --run examples/seattle-weather/project.yaml" in would
    assert ("--yes" in would) is answered


@pytest.fixture
def only(tmp_path: Path) -> dict[str, str]:
    """An environment whose path holds the few programs a script needs, and no Python."""
    for name in ("sh", "uname", "dirname", "env"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    return {"PATH": str(tmp_path)}


def a_python(folder: str, name: str, *, good: bool) -> None:
    path = Path(folder, name)
    path.write_text(f"#!/bin/sh\nexit {0 if good else 1}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_without_a_usable_python_one_line_says_how_to_get_one(only: dict[str, str]) -> None:
    a_python(only["PATH"], "python3", good=False)

    found = run("deploy/find-python", env=only)

    assert found.returncode == 1
    assert found.stdout == ""
    assert len(found.stderr.splitlines()) == 1
    assert "3.11 to 3.14" in found.stderr
    assert "uv" in found.stderr


def test_a_usable_python_is_found_behind_an_old_one(only: dict[str, str]) -> None:
    a_python(only["PATH"], "python3", good=False)
    a_python(only["PATH"], "python3.12", good=True)

    assert run("deploy/find-python", env=only).stdout == "python3.12\n"


def test_uv_will_do_where_no_python_does(only: dict[str, str]) -> None:
    a_python(only["PATH"], "uv", good=True)

    assert run("deploy/find-python", env=only).stdout == "uv\n"


def test_a_python_that_is_named_must_do(only: dict[str, str]) -> None:
    a_python(only["PATH"], "python3", good=True)

    found = run("deploy/find-python", env={**only, "OFFICINA_PYTHON": "python2"})

    assert found.returncode == 1
    assert "OFFICINA_PYTHON=python2" in found.stderr


def test_the_python_that_runs_the_tests_is_a_usable_one() -> None:
    assert (
        run("deploy/find-python", env={**os.environ, "OFFICINA_PYTHON": sys.executable}).stdout.strip()
        == sys.executable
    )
