"""The sandboxes this machine can run, and how a test runs a program in one."""

import contextlib
import os
from collections.abc import Callable, Mapping
from functools import cache

import psutil

from registry.skills.context import Execution
from workers.sandbox import landlock
from workers.sandbox.box import Box
from workers.sandbox.landlock import Landlock
from workers.sandbox.process import LINKS, describe, find_sandbox, probe
from workers.sandbox.programs import interpreters

#: Landlock of Linux 5.13, 6.2 and 6.10: each next one closed a gap that the seccomp filter has to hold before it.
OLDER = tuple(f"landlock-{version}" for version in (1, 3, 5))
VARIANTS = (*LINKS, *OLDER)


@cache
def box_of(variant: str) -> Box | str:
    """The sandbox of a link, or of Landlock as an older kernel has it; a text says why there is none."""
    name, _, abi = variant.partition("-")
    if name == "landlock" and abi:
        if landlock.version() < int(abi):
            return "the kernel's Landlock is older still"
        for python in interpreters():
            box = Box(Landlock(int(abi)), python)
            if not (why_not := probe(box)):
                return box
        return why_not
    found = find_sandbox(variant)
    if isinstance(found, Box):
        return found
    return next(report.why_not for report in describe() if report.name == variant)


def run(
    box: Box,
    code: str,
    *arguments: object,
    stdin: bytes = b"",
    files: Mapping[str, bytes] | None = None,
    seconds: float = 20,
    cancelled: Callable[[], bool] = lambda: False,
    collect: bool = False,
) -> Execution:
    return box.execute(
        ["python3", "-u", "-c", code, *map(str, arguments)],
        stdin=stdin,
        files=files or {},
        timeout_s=seconds,
        cancelled=cancelled,
        collect=collect,
    )


def said(done: Execution) -> str:
    assert done.exit_code == 0, done
    return done.stdout.decode()


def processes_with(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if mark in process.cmdline() and process.pid != os.getpid():
                found.append(process)
    return found
