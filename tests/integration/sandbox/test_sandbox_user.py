"""The tests of this folder and of the shell again as an ordinary user: without root walls are built in another way."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

#: A user nobody else is: the kernel counts the processes of a user together, whoever started them.
ORDINARY = 61_000 + os.getpid() % 1_000


@pytest.mark.long
@pytest.mark.timeout(600)
def test_all_of_this_holds_for_an_ordinary_user(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("this is an ordinary user")
    python = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    if not Path(python).exists():
        pytest.skip("there is no interpreter of this version that an ordinary user may read")
    for folder in (tmp_path, *tmp_path.parents[:3]):
        with contextlib.suppress(PermissionError):
            folder.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, ORDINARY, ORDINARY)
    short = tempfile.mkdtemp(prefix="o-")
    os.chown(short, ORDINARY, ORDINARY)
    done = subprocess.run(
        [
            python,
            "-m",
            "pytest",
            str(Path(__file__).parent),
            # The shell's tests; those with workers need services, and are no others for an ordinary user.
            str(Path(__file__).parents[1] / "packs"),
            f"--ignore={Path(__file__).parents[1] / 'packs' / 'test_workers.py'}",
            "-q",
            "-n0",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
            # Not the folder in /tmp that pytest names after the user: an earlier run's belongs to another one. Short,
            # because sockets are made in it.
            "--basetemp",
            f"{short}/t",
        ],
        user=ORDINARY,
        group=ORDINARY,
        extra_groups=[],
        cwd=Path(__file__).parents[3],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "USER": "ordinary",
            "PYTHONPATH": ":".join(path for path in sys.path if "site-" in path),
        },
        capture_output=True,
        text=True,
        timeout=600,
    )
    shutil.rmtree(short, ignore_errors=True)
    if "No module named" in done.stderr:
        pytest.skip("an ordinary user cannot read the packages of this environment")
    assert done.returncode == 0, done.stdout[-5000:]
    assert "passed" in done.stdout
