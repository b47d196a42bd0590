"""The files of `deploy/compose` are what Docker Compose would take, and what they should be."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.deployed import DEPLOY, ROOT, Document, compose, documents


def compose_schema() -> Document:
    found = importlib.util.find_spec("check_jsonschema")
    assert found is not None and found.origin is not None
    path = Path(found.origin).parent / "builtin_schemas" / "vendor" / "compose-spec.json"
    schema: Document = json.loads(path.read_text(encoding="utf-8"))
    return schema


COMPOSE = sorted((DEPLOY / "compose").glob("*.yaml"))


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_a_compose_file_keeps_the_compose_specification(path: Path) -> None:
    faults = Draft202012Validator(compose_schema()).iter_errors(documents(path)[0])

    assert [(fault.json_path, fault.message[:200]) for fault in faults] == []


def test_the_validator_of_compose_files_would_see_a_fault() -> None:
    wrong = {"services": {"api": {"image": "officina", "comand": ["api"]}}}

    assert list(Draft202012Validator(compose_schema()).iter_errors(wrong))


def test_what_a_compose_file_names_is_there() -> None:
    both: Document = {"services": {}, "volumes": {}, "networks": {}, "configs": {}}
    for path in COMPOSE:
        for section in both:
            both[section] |= documents(path)[0].get(section) or {}
    for path in COMPOSE:
        for name, service in documents(path)[0]["services"].items():
            assert set(service.get("depends_on", ())) <= set(both["services"]), name
            assert set(service.get("networks", ())) <= set(both["networks"]), name
            assert {volume.split(":")[0] for volume in service.get("volumes", ())} <= set(both["volumes"]), name
            assert {one["source"] for one in service.get("configs", ())} <= set(both["configs"]), name


def filled_in() -> str:
    """The example as a newcomer fills it in: what has to be said and nothing else."""
    example = (DEPLOY / "compose" / "example.env").read_text(encoding="utf-8")
    texts = "".join(path.read_text(encoding="utf-8") for path in COMPOSE)
    for name in set(re.findall(r"\$\{([A-Z_]+):\?\}", texts)):
        example = re.sub(rf"^{name}=$", f"{name}=ann:said", example, flags=re.M)
    return example


def docker_compose() -> list[str] | None:
    """The program, as a plugin of Docker or by itself."""
    if (alone := shutil.which("docker-compose")) is not None:
        return [alone]
    docker = shutil.which("docker")
    if docker is not None and subprocess.run([docker, "compose", "version"], capture_output=True).returncode == 0:
        return [docker, "compose"]
    return None


@pytest.mark.parametrize("more", [[], ["rabbitmq.yaml"]], ids=["redis", "rabbitmq"])
def test_docker_compose_takes_the_files(more: list[str], tmp_path: Path) -> None:
    """By the program itself, which needs no engine for it."""
    if (command := docker_compose()) is None:
        pytest.skip("docker compose is not here; as `docker-compose` on the path it would do, too")
    (tmp_path / "filled.env").write_text(filled_in())
    files = [word for name in ("compose.yaml", *more) for word in ("--file", str(DEPLOY / "compose" / name))]

    done = subprocess.run(
        [*command, "--env-file", tmp_path / "filled.env", *files, "config", "--quiet"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_what_docker_compose_refuses_beyond_its_schema_is_not_there() -> None:
    """Found with the program itself; not everybody who changes these files has it."""
    twice = {"pids_limit": "pids", "mem_limit": "memory", "cpus": "cpus"}
    for path in COMPOSE:
        document = documents(path)[0]
        written = {
            (kind, name)
            for kind in ("configs", "secrets")
            for name, one in (document.get(kind) or {}).items()
            if "file" not in one and not one.get("external")
        }
        for name, service in document["services"].items():
            limits = service.get("deploy", {}).get("resources", {}).get("limits")
            assert limits is None or not set(twice) & set(service), f"{name}: a limit has one place, and that is deploy"
            used = {
                (k, s if isinstance(s, str) else s["source"])
                for k in ("configs", "secrets")
                for s in service.get(k, ())
            }
            assert not service.get("read_only") or not used & written, f"{name}: Compose writes into no read-only root"


def test_no_more_has_to_be_filled_in_than_the_tour_says() -> None:
    needed = set(re.findall(r"\$\{([A-Z_]+):\?\}", (DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8")))
    (told,) = re.findall(r"^Fill in (.*?)\.$", (ROOT / "docs" / "tour.md").read_text(encoding="utf-8"), re.M | re.S)

    assert needed == set(re.findall(r"`([A-Z_]+)`", told))


def test_every_variable_of_the_compose_files_is_in_the_example_and_the_other_way_round() -> None:
    example = (DEPLOY / "compose" / "example.env").read_text(encoding="utf-8")
    texts = "".join(path.read_text(encoding="utf-8") for path in COMPOSE)

    assert set(re.findall(r"^([A-Z_]+)=", example, re.M)) == set(re.findall(r"\$\{([A-Z_]+)", texts))


def test_nobody_starts_before_the_schema_is_there() -> None:
    services = compose()["services"]

    assert services["migrate"]["command"] == ["db", "upgrade"]
    for name in ("api", "worker"):
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


def test_only_loopback_is_published_and_flower_asks_who_is_there() -> None:
    services = compose()["services"]
    published = [port for service in services.values() for port in service.get("ports", ())]

    assert published
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []
    assert services["flower"]["environment"]["FLOWER_BASIC_AUTH"] == "${FLOWER_BASIC_AUTH:?}"
    assert {"--read_only", "--persistent"} <= set(services["flower"]["command"])


def test_ours_run_on_a_read_only_root_without_capabilities() -> None:
    for name in ("migrate", "api", "worker", "flower"):
        service = compose()["services"][name]
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
