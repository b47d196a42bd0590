"""A workspace and the tools of its shell, behind each wall this machine can put up."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.workspaces.jail import JailedWorkspace
from registry.base import Json
from registry.packs import PACKS
from registry.packs.files import FilesSpec
from registry.packs.shell import ShellSpec
from registry.skills.context import Caller, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult
from tests.integration.sandbox.boxes import LINKS, box_of
from workers.sandbox.box import Box
from workers.sandbox.jobs import Allowed, JobKeeper

NAMES = ("files", "shell", "process_poll", "process_kill")
REGISTRY = SkillRegistry(tool for name in NAMES for tool in PACKS[name].tools)


class Desk:
    """One task's calls in one workspace."""

    def __init__(self, root: Path, keeper: JobKeeper, box: Box, *, task: str = "t1", **spec: Json) -> None:
        self.root, self.keeper, self.box = root, keeper, box
        self.context = SkillContext(
            caller=Caller(kind="run", task_id=task, run_id="r1"),
            workspace=JailedWorkspace(root),
            jobs=keeper.of(root),
            specs={ShellSpec: PACKS["shell"].settings(spec), FilesSpec: FilesSpec()},
        )

    def call(self, name: str, **arguments: Json) -> SkillResult:
        return REGISTRY.invoke(name, arguments, self.context)

    def ok(self, name: str, **arguments: Json) -> dict[str, Any]:
        result = self.call(name, **arguments)
        assert result.ok, (result.code, result.error)
        output: dict[str, Any] = result.output
        return output

    def shell(self, command: str, **arguments: Json) -> dict[str, Any]:
        return self.ok("shell", command=command, **arguments)

    def poll(self, job_id: str, **arguments: Json) -> dict[str, Any]:
        return self.ok("process_poll", job_id=job_id, **arguments)

    def until_ended(self, job_id: str) -> dict[str, Any]:
        for _ in range(20):
            seen = self.poll(job_id, since=10**9, wait_ms=1000)
            if seen["status"] != "running":
                return self.poll(job_id)
        raise AssertionError(f"{job_id} goes on")

    def of_task(self, task: str) -> "Desk":
        return Desk(self.root, self.keeper, self.box, task=task)


def wall(variant: str) -> Box:
    found = box_of(variant)
    if isinstance(found, str):
        pytest.skip(f"{variant}: {found}")
    return found


@pytest.fixture(params=[link for link in LINKS if link != "seatbelt"])
def box(request: pytest.FixtureRequest) -> Box:
    return wall(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace that the user of a shell can reach by its path."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        if folder.stat().st_mode & 0o011 != 0o011:
            folder.chmod(folder.stat().st_mode | 0o011)
    made = tmp_path / "project"
    made.mkdir()
    return made


@pytest.fixture
def keeper(box: Box) -> Iterator[JobKeeper]:
    made = JobKeeper(lambda: box, Allowed(job_s=60))
    yield made
    made.close()


@pytest.fixture
def desk(root: Path, keeper: JobKeeper, box: Box) -> Desk:
    return Desk(root, keeper, box)
