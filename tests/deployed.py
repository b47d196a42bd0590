"""What stands in `deploy/`, read."""

import copy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"

Document = dict[str, Any]


def documents(path: Path) -> list[Document]:
    """What a file of YAML holds; the caller's own, to be changed at will."""
    return copy.deepcopy(_documents(path))


@cache
def _documents(path: Path) -> list[Document]:
    return [one for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one is not None]


def compose() -> Document:
    return documents(DEPLOY / "compose" / "compose.yaml")[0]


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


def worker_deployments() -> dict[str, Document]:
    """The deployments of workers, each by the queue it serves."""
    found = {}
    for one in of_kind("Deployment").values():
        words = one["spec"]["template"]["spec"]["containers"][0]["args"]
        if words[0] == "worker":
            assert words[1] == "--queues"
            found[words[2]] = one
    return found
