"""The first link: bubblewrap. Namespaces of its own for everything, an empty file system with read-only system folders.

Started by root, bubblewrap needs no user namespace; the keeper then drops to a user that nobody else is, because the
kernel counts processes of root against no limit. Started by anyone else, a user namespace is part of the wall.
"""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from workers.sandbox import seccomp
from workers.sandbox.limits import Limits
from workers.sandbox.link import Command, fresh_uid, keeper_command, threads_of_user
from workers.sandbox.programs import DEVICES, ETC, SYSTEM, Program

SCRATCH = "/scratch"
_INSIDE = "/run/officina/inside"
#: From here on a user namespace counts its processes for itself.
_OWN_COUNT_SINCE = (5, 14)


@dataclass(frozen=True)
class Bubblewrap:
    """Runs programs behind the bubblewrap at `binary`."""

    binary: str
    name: str = "bubblewrap"
    holds: str = (
        "files, network, processes, users: own namespaces, no network device, read-only system folders, "
        "64 MiB of memory as the only writable place"
    )
    scratch_is_mount: bool = field(default=True, init=False)

    @contextmanager
    def prepare(self, program: Program, python: Program, limits: Limits, pipes: tuple[int, ...]) -> Iterator[Command]:
        """The command that runs the keeper behind the wall; `pipes` are what the keeper talks through."""
        uid = fresh_uid()
        # A pipe takes the few kilobytes whole, and works where no file can be written.
        read, write = os.pipe()
        try:
            with os.fdopen(write, "wb") as rules:
                rules.write(seccomp.filter_for(seccomp.NAMESPACED))
            yield Command(
                argv=[
                    self.binary,
                    *_walls(uid),
                    *("--seccomp", str(read)),
                    *_file_system({*program.trees, *python.trees}, limits),
                    "--",
                    *keeper_command(python.path, str(Path(_INSIDE).parent), pipes),
                ],
                scratch=SCRATCH,
                uid=uid,
                pass_fds=(read,),
                others_of_user=0 if uid is not None or _counts_alone() else threads_of_user(),
            )
        finally:
            os.close(read)


def _walls(uid: int | None) -> list[str]:
    # Apart from `--unshare-all`, which takes a user namespace when it can: root's keeper has to change its user.
    walls = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    if uid is None:
        walls += ["--unshare-user"]
    else:
        walls += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    return [*walls, "--die-with-parent", "--as-pid-1", "--clearenv", "--hostname", "sandbox"]


def _file_system(trees: set[str], limits: Limits) -> list[str]:
    mounts: list[str] = []
    for path in (*SYSTEM, *ETC):
        mounts += _shown(path)
    for path in sorted(trees):
        mounts += ["--ro-bind", path, path]
    mounts += ["--ro-bind", str(Path(__file__).parent / "inside"), _INSIDE]
    mounts += ["--proc", "/proc", "--perms", "0755", "--dir", "/dev"]
    for path in DEVICES:
        mounts += ["--dev-bind", path, path]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        mounts += ["--symlink", f"/proc/self/fd/{number}", f"/dev/{name}"]
    # Named semaphores live in `/dev/shm`. One place to write means one place to measure.
    mounts += ["--symlink", "/proc/self/fd", "/dev/fd", "--symlink", SCRATCH, "/dev/shm", "--symlink", SCRATCH, "/tmp"]
    mounts += ["--perms", "0777", "--size", str(limits.scratch), "--tmpfs", SCRATCH]
    # The root itself is a tmpfs without a size: nothing may be left writable in it.
    return [*_parents(mounts), *mounts, "--remount-ro", "/", "--chdir", SCRATCH]


def _shown(path: str) -> list[str]:
    """On most systems `/bin` and its kin are links into `/usr`, and stay links inside."""
    if not Path(path).exists():
        return []
    if path in SYSTEM and Path(path).is_symlink():
        return ["--symlink", str(Path(path).readlink()), path]
    return ["--ro-bind", path, path]


def _parents(mounts: list[str]) -> list[str]:
    """Every folder above a mount, open to all: bubblewrap would give it the closed mode of `/root` outside."""
    folders: set[str] = set()
    for word, path in zip(mounts, mounts[2:], strict=False):
        if word in ("--ro-bind", "--dev-bind"):
            folders |= {str(parent) for parent in Path(path).parents}
    linked = {path for word, path in zip(mounts, mounts[2:], strict=False) if word == "--symlink"}
    wanted = [f for f in sorted(folders - {"/"}) if not any(f == link or f.startswith(link + "/") for link in linked)]
    return [word for folder in wanted for word in ("--perms", "0755", "--dir", folder)]


def _counts_alone() -> bool:
    major, minor = platform.release().split(".")[:2]
    return (int(major), int("".join(filter(str.isdigit, minor)) or 0)) >= _OWN_COUNT_SINCE
