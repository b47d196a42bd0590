"""The files of `deploy/kubernetes` are what a cluster with KEDA would take, and what they should be."""

import copy
import json
import re
import shutil
import subprocess
from typing import Any

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft202012Validator

from orchestrator.settings import Settings
from registry import queues
from tests.deployed import DEPLOY, Document, containers, documents, manifests, of_kind, pods, worker_deployments

KUBERNETES = "1.37"


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


TEXT, NUMBER = {"type": "string"}, {"type": "integer", "minimum": 0}
TEXTS = {"type": "object", "additionalProperties": TEXT}


def closed(*needed: str, **fields: Any) -> Document:
    """The schema of an object with these fields and no others."""
    return {"type": "object", "properties": fields, "required": list(needed), "additionalProperties": False}


#: What KEDA 2 takes, of the parts in use; a `behavior` is Kubernetes' own, and compared with its schema.
KEDA = {
    "ScaledObject": closed(
        "scaleTargetRef",
        "triggers",
        scaleTargetRef=closed("name", apiVersion=TEXT, kind=TEXT, name=TEXT, envSourceContainerName=TEXT),
        **dict.fromkeys(("pollingInterval", "cooldownPeriod", "initialCooldownPeriod"), NUMBER),
        **dict.fromkeys(("idleReplicaCount", "minReplicaCount", "maxReplicaCount"), NUMBER),
        fallback=closed("failureThreshold", "replicas", failureThreshold=NUMBER, replicas=NUMBER, behavior=TEXT),
        advanced=closed(horizontalPodAutoscalerConfig=closed(name=TEXT, behavior={"type": "object"})),
        triggers={
            "type": "array",
            "minItems": 1,
            "items": closed(
                "type",
                "metadata",
                type={"const": "postgresql"},
                name=TEXT,
                metricType={"enum": ["AverageValue", "Value"]},
                metadata=closed(
                    "query", "targetQueryValue", query=TEXT, targetQueryValue=TEXT, activationTargetQueryValue=TEXT
                ),
                authenticationRef=closed("name", name=TEXT, kind=TEXT),
            ),
        },
    ),
    "TriggerAuthentication": closed(
        secretTargetRef={
            "type": "array",
            "items": closed("parameter", "name", "key", parameter=TEXT, name=TEXT, key=TEXT),
        }
    ),
}
OF_KEDA = [one for one in manifests() if one["apiVersion"].startswith("keda.sh/")]


def keda_faults(one: Document) -> list[str]:
    """What KEDA would refuse in one of its objects."""
    faults = [] if set(one) == {"apiVersion", "kind", "metadata", "spec"} else [f"fields {sorted(one)}"]
    if one["apiVersion"] != "keda.sh/v1alpha1":
        faults.append(one["apiVersion"])
    spec = Draft202012Validator(KEDA[one["kind"]]).iter_errors(one["spec"])
    faults += [f"{fault.json_path}: {fault.message}" for fault in spec]
    behavior = one["spec"].get("advanced", {}).get("horizontalPodAutoscalerConfig", {}).get("behavior", {})
    try:
        kubernetes_validate.validate(
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "of-keda"},
                "spec": {
                    "scaleTargetRef": {"kind": "Deployment", "name": "worker"},
                    "maxReplicas": 1,
                    "behavior": behavior,
                },
            },
            KUBERNETES,
            strict=True,
        )
    except kubernetes_validate.ValidationError as error:
        faults.append(f"behavior: {error.message}")
    return faults


@pytest.mark.parametrize("one", OF_KEDA, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_an_object_of_keda_has_fields_that_keda_knows(one: Document) -> None:
    assert keda_faults(one) == []


def test_a_fault_in_an_object_of_keda_would_be_seen() -> None:
    right = of_kind("ScaledObject")["worker"]
    for place, wrong in [
        (("minReplicas",), 2),
        (("maxReplicaCount",), "40"),
        (("triggers", 0, "metadata", "targetQueryValue"), 48),  # KEDA takes texts there, and YAML makes a number of it
        (("advanced", "horizontalPodAutoscalerConfig", "behavior", "scaleDown", "stabilizationWindow"), 300),
    ]:
        spec = changed = copy.deepcopy(right["spec"])
        for step in place[:-1]:
            changed = changed[step]
        changed[place[-1]] = wrong
        assert keda_faults(right | {"spec": spec}), place


def test_kustomize_renders_all_of_it_as_it_is_written() -> None:
    if (program := shutil.which("kubectl")) is None:
        pytest.skip("kubectl is not here")

    done = subprocess.run(
        [program, "kustomize", DEPLOY / "kubernetes"], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 0, done.stderr
    rendered = {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(done.stdout)}
    assert set(rendered) == {(one["kind"], one["metadata"]["name"]) for one in manifests()}
    for (kind, name), one in rendered.items():
        assert one["metadata"].get("namespace") == ("officina" if kind != "Namespace" else None), (kind, name)


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


def test_pods_reach_the_ports_that_the_pages_name() -> None:
    (rule,) = [one for one in of_kind("NetworkPolicy")["out"]["spec"]["egress"] if "to" not in one]
    addresses = (DEPLOY / "redis" / "sentinel.conf").read_text() + (DEPLOY / "rabbitmq" / "README.md").read_text()
    named = {int(port) for port in re.findall(r"(?:internal:|tls-port )(\d+)", addresses)}

    assert named > {26379, 5671}
    assert named | {5432} <= {port["port"] for port in rule["ports"]}


def test_workers_of_every_queue_may_go_out_to_the_web() -> None:
    (rule,) = of_kind("NetworkPolicy")["web-out"]["spec"]["podSelector"]["matchExpressions"]

    assert {one["metadata"]["name"] for one in worker_deployments().values()} <= set(rule["values"])
