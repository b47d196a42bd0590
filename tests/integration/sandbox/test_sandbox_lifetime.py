"""Programs in the sandbox that try to stay: none outlives its call, its deadline, its cancel or its worker."""

import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from registry.errors import SkillError
from tests.integration.sandbox.boxes import VARIANTS, box_of, processes_with, run, said
from tests.support import eventually
from workers.sandbox.box import Box


def test_a_daemon_is_gone_when_the_call_is(box: Box) -> None:
    if box.link.name == "seatbelt":
        pytest.skip("macOS has no reaper of orphans")
    mark = secrets.token_hex(8)
    leave = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open("/dev/null", os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            time.sleep(300)
        os._exit(0)
    os.wait()
print("left")
"""
    began = time.monotonic()
    assert said(run(box, leave, mark)) == "left\n"
    assert time.monotonic() - began < 5
    assert processes_with(mark) == []


def test_a_daemon_that_holds_the_output_holds_nobody_up(box: Box) -> None:
    mark = secrets.token_hex(8)
    began = time.monotonic()
    leave = "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(300)\nprint('left')"
    assert said(run(box, leave, mark)) == "left\n"
    assert time.monotonic() - began < 5
    assert processes_with(mark) == []


def test_the_deadline_ends_a_program_that_ignores_signals(box: Box) -> None:
    mark = secrets.token_hex(8)
    stubborn = """
import signal
for number in range(1, 32):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
print("ready")
while True:
    pass
"""
    began = time.monotonic()
    done = run(box, stubborn, mark, seconds=1)
    assert time.monotonic() - began < 4
    assert (done.timed_out, done.exit_code, done.signal) == (True, None, "SIGKILL")
    assert done.stdout == b"ready\n"
    assert processes_with(mark) == []


def test_cancel_ends_it_within_two_seconds(box: Box) -> None:
    mark = secrets.token_hex(8)
    at: list[float] = []

    def cancelled() -> bool:
        if processes_with(mark):
            at.append(time.monotonic())
            return True
        return False

    with pytest.raises(SkillError) as caught:
        run(box, "import os, time\nos.fork()\ntime.sleep(300)", mark, cancelled=cancelled)
    assert caught.value.code == "cancelled"
    assert time.monotonic() - at[0] < 2
    assert processes_with(mark) == []


def test_a_cancel_flag_that_fails_leaves_nothing_behind(box: Box) -> None:
    mark = secrets.token_hex(8)

    def broken() -> bool:
        raise RuntimeError("the database went away")

    with pytest.raises(RuntimeError):
        run(box, "import time; time.sleep(300)", mark, cancelled=broken)
    assert processes_with(mark) == []


def test_closing_the_output_changes_nothing(box: Box) -> None:
    quiet = "import os, sys, time\nprint('before')\nos.close(1); os.close(2); os.close(0)\ntime.sleep(0.5)\nos._exit(7)"
    done = run(box, quiet)
    assert (done.exit_code, done.stdout) == (7, b"before\n")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_worker_takes_the_program_along(box: Box, how: signal.Signals, open_folder: Path) -> None:
    mark = secrets.token_hex(8)
    worker_code = """
import sys
sys.path[:0] = sys.argv[1].split(":")
from tests.integration.sandbox.boxes import box_of, run
run(box_of(sys.argv[2]), "import os, time\\nif os.fork() == 0: os.setsid()\\ntime.sleep(300)", sys.argv[3])
"""
    variant = next(v for v in VARIANTS if box_of(v) is box)
    worker = subprocess.Popen(
        [sys.executable, "-c", worker_code, ":".join(p for p in sys.path if p), variant, mark + "-worker"],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "TMPDIR": str(open_folder)},
    )
    eventually(lambda: len(processes_with(mark + "-worker")) >= 3, 20)
    worker.send_signal(how)
    worker.wait()
    eventually(lambda: not processes_with(mark + "-worker"))
    eventually(lambda: not list(open_folder.iterdir()))
