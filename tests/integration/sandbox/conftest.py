"""Sandboxes by link. `box` is each link as it is; `wall` is also Landlock as older kernels have it."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.sandbox.boxes import LINKS, OLDER, box_of
from workers.sandbox.box import Box


def _wanted(variant: str) -> Box:
    found = box_of(variant)
    if isinstance(found, str):
        pytest.skip(f"{variant}: {found}")
    return found


@pytest.fixture(params=LINKS)
def box(request: pytest.FixtureRequest) -> Box:
    return _wanted(request.param)


@pytest.fixture(params=(*LINKS, *OLDER))
def wall(request: pytest.FixtureRequest) -> Box:
    return _wanted(request.param)


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """A folder that file modes alone would let anyone write to."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        with contextlib.suppress(PermissionError):
            folder.chmod(0o777)
    return tmp_path


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the same user, outside, with a secret in its environment."""
    with subprocess.Popen(["/bin/sleep", "300"], env={"SECRET": "canary-in-the-environment"}) as process:
        yield process
        process.kill()
