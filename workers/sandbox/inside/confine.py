"""What the keeper and the program give up before the program runs."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Iterator
from typing import Any

LINUX = sys.platform == "linux"


def keeper(orders: dict[str, Any]) -> None:
    """The keeper itself: alone behind the wall it becomes the user of the program, else the reaper of every orphan.

    Outside the wall a keeper of root stays root: a program that is somebody else cannot signal it.
    """
    if keeper_is_alone():
        become(orders["uid"])
    if LINUX:
        from . import kernel

        if not keeper_is_alone():
            kernel.become_reaper()
            kernel.signal_when_parent_dies(signal.SIGTERM)
        kernel.close_to_others()


def keeper_is_alone() -> bool:
    """Whether this is the first process of a namespace of its own."""
    return os.getpid() == 1


def become(uid: int | None) -> None:
    """Gives up being root, for good; None: nothing to give up."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


@contextlib.contextmanager
def seen_as(uid: int | None) -> Iterator[None]:
    """A keeper of root looks at the program's handles as the program's user: root in a container may not.

    The real user stays root, so the program can no more signal or trace the keeper than before.
    """
    if uid is None or os.geteuid() != 0:
        yield
        return
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def program(orders: dict[str, Any]) -> None:
    """The child, right before it becomes the program. Raises when any part fails: then nothing may run."""
    os.setsid()
    os.chdir(orders["start"])
    os.umask(0o022)
    # Sixty-four busy processes shall not keep the worker from its turn.
    os.nice(10)
    _reset_signals()
    _limit(orders["limits"], orders["addressSpace"])
    if LINUX and orders["landlock"]:
        from . import kernel

        become(orders["uid"])
        # After the change of user, which clears it.
        kernel.signal_when_parent_dies(signal.SIGKILL)
        kernel.no_new_privileges()
        kernel.landlock(orders["landlock"], orders["scratch"])
        kernel.seccomp(bytes.fromhex(orders["seccomp"]))


def _reset_signals() -> None:
    """The interpreter of the keeper ignores two signals and catches others; a program starts with none of that."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _limit(limits: dict[str, int], address_space: bool) -> None:
    wanted = {
        # One byte, and not none: the kernel hands a dump to a program outside unless the limit is exactly this.
        "CORE": (1, 1),
        # The soft limit gives a signal that can be told from a kill.
        "CPU": (limits["cpu"], limits["cpu"] + 1),
        "FSIZE": (limits["file"], limits["file"]),
        "NOFILE": (limits["handles"], limits["handles"]),
        "NPROC": (limits["processes"], limits["processes"]),
        "DATA": (limits["memory"], limits["memory"]),
    }
    if address_space:
        wanted["AS"] = (limits["memory"], limits["memory"])
    for name, (soft, hard) in wanted.items():
        kind = getattr(resource, "RLIMIT_" + name)
        ceiling = resource.getrlimit(kind)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        try:
            resource.setrlimit(kind, (soft, hard))
        except (OSError, ValueError):
            # macOS knows the memory limits by name only.
            if LINUX or name not in ("AS", "DATA"):
                raise
