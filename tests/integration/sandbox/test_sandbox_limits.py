"""Programs in the sandbox that try to use the machine up."""

import contextlib
import os
import secrets
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from registry.errors import SkillError
from tests.integration.sandbox.boxes import processes_with, run, said
from workers.sandbox.box import Box

FORK = """
import os, sys, time
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.001)
"""


def test_a_fork_bomb_is_contained_and_gone(box: Box) -> None:
    mark = secrets.token_hex(8)
    seen: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            seen.append(len(processes_with(mark)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    done = run(box, FORK, mark, seconds=2)
    over.set()
    watcher.join()
    assert done.timed_out or done.warnings
    # bubblewrap and the keeper carry the mark of nobody; what is counted is the bomb.
    assert 0 < max(seen) <= box.limits.processes + 2
    assert processes_with(mark) == []


def test_a_fork_bomb_of_the_shell_is_contained_and_gone(box: Box) -> None:
    mark = secrets.token_hex(8)
    done = box.execute(
        ["sh", "-c", "bomb() { bomb | bomb & }; bomb; sleep 60", mark],
        stdin=b"",
        files={},
        timeout_s=1.5,
        cancelled=lambda: False,
    )
    assert done.exit_code != 0 or done.stderr
    assert processes_with(mark) == []


@pytest.mark.parametrize(
    "allocate", ["bytearray(10**11)", "__import__('mmap').mmap(-1, 10**11)", "[bytearray(10**7) for _ in range(10**4)]"]
)
def test_an_allocation_of_a_hundred_gigabytes_fails_inside(box: Box, allocate: str) -> None:
    done = run(box, f"x = {allocate}")
    assert done.exit_code == 1
    assert b"MemoryError" in done.stderr or b"Cannot allocate" in done.stderr


def test_many_processes_share_one_allowance_of_memory(box: Box) -> None:
    mark = secrets.token_hex(8)
    hold = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        held = bytearray(300 * 2**20)
        for at in range(0, len(held), 4096):
            held[at] = 1
        time.sleep(60)
time.sleep(60)
"""
    done = run(box, hold, mark, seconds=20)
    assert not done.timed_out
    assert done.signal == "SIGKILL"
    assert "memory" in done.warnings[0]
    assert processes_with(mark) == []


def test_javascript_has_no_more_memory_than_python(box: Box) -> None:
    hoard = "const kept = []; while (true) kept.push(Buffer.alloc(10 ** 7, 1));"
    try:
        done = box.execute(["node", "-e", hoard], stdin=b"", files={}, timeout_s=20, cancelled=lambda: False)
    except SkillError as error:
        assert error.code == "unsupported_type"
        pytest.skip("no node")
    assert not done.timed_out
    assert done.exit_code != 0


def test_endless_output_is_read_and_dropped(box: Box) -> None:
    before = psutil.Process().memory_info().rss
    done = run(box, "import os\nwhile True: os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)", seconds=1.5)
    assert done.timed_out
    assert (len(done.stdout), len(done.stderr)) == (65_536, 65_536)
    assert done.stdout_truncated and done.stderr_truncated
    assert psutil.Process().memory_info().rss - before < 50 * 2**20


def test_the_disk_cannot_be_filled(box: Box) -> None:
    fill = """
import itertools
for number in itertools.count():
    with open(f"fill-{number}", "wb", buffering=0) as file:
        for _ in range(15):
            file.write(bytes(2**20))
            print(number)
"""
    done = run(box, fill)
    assert not done.timed_out
    assert b"No space left" in done.stderr or "folder held more" in "".join(done.warnings)


@pytest.mark.parametrize("keep", ["handles.append(file)", "maps.append(mmap.mmap(file.fileno(), 15 * 2**20))"])
def test_removed_files_that_are_still_held_count_too(box: Box, keep: str) -> None:
    hold = f"""
import itertools, mmap, os, time
handles, maps = [], []
for number in range(12):
    file = open("held", "w+b", buffering=0)
    os.unlink("held")
    for _ in range(15):
        file.write(bytes(2**20))
    {keep}
time.sleep(30)
"""
    done = run(box, hold)
    assert not done.timed_out
    assert b"No space left" in done.stderr or "folder held more" in "".join(done.warnings)


def test_a_folder_that_hides_its_content_hides_nothing(box: Box) -> None:
    if os.geteuid() == 0:
        pytest.skip("the keeper of root looks into every folder")
    hide = """
import os, time
os.mkdir("hidden", 0o300)
for number in range(12):
    open(f"hidden/{number}", "wb").write(bytes(15 * 2**20))
time.sleep(30)
"""
    done = run(box, hide)
    assert not done.timed_out
    assert b"No space left" in done.stderr or "folder" in "".join(done.warnings)


def test_one_file_is_no_larger_than_sixteen_mebibytes(box: Box) -> None:
    grow = """
import os
with open("large", "wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(2**20))
    except OSError as fault:
        print(fault.strerror, os.path.getsize("large"))
"""
    assert said(run(box, grow)) == f"File too large {16 * 2**20}\n"


def test_files_without_number_end_the_program(box: Box) -> None:
    many = """
import itertools, os
for number in itertools.count():
    os.mkdir(f"d{number}")
    for inner in range(1000):
        open(f"d{number}/{inner}", "w").close()
"""
    done = run(replace(box, limits=replace(box.limits, scratch_entries=1500)), many)
    assert not done.timed_out
    assert "files" in done.warnings[0]


def test_a_tree_without_end_is_cleared_away(box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a temporary folder of our own, to see what stays in it
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents[:3]:
        with contextlib.suppress(PermissionError):
            folder.chmod(0o755)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    deep = """
import os
os.chdir("out")
for _ in range(1200):
    os.mkdir("d")
    os.chdir("d")
open("bottom", "w").close()
os.chdir("/"), os.mkdir(os.environ["HOME"] + "/closed", 0o000)
"""
    done = run(box, deep, collect=True)
    # A folder nobody may look into can end the program before it ends itself.
    assert done.exit_code in (0, None), done
    assert done.files == []
    assert list(tmp_path.iterdir()) == []
