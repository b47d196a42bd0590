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
from workers.sandbox.link import Command, keeper_command, threads_of_user
from workers.sandbox.programs import DEVICES, ETC, NAMES_OF_HOSTS, SYSTEM, Program
from workers.sandbox.room import Room, fresh_uid

SCRATCH = "/scratch"
WORKSPACE = "/workspace"
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
    def prepare(
        self, program: Program, python: Program, limits: Limits, pipes: tuple[int, ...], room: Room | None = None
    ) -> Iterator[Command]:
        """The command that runs the keeper behind the wall; `pipes` are what the keeper talks through."""
        uid = room.uid if room else fresh_uid()
        # A pipe takes the few kilobytes whole, and works where no file can be written.
        read, write = os.pipe()
        try:
            with os.fdopen(write, "wb") as rules:
                network = room is not None and room.network
                rules.write(seccomp.filter_for(seccomp.NAMESPACED_WITH_NETWORK if network else seccomp.NAMESPACED))
            yield Command(
                argv=[
                    self.binary,
                    *_walls(uid, network=network),
                    *("--seccomp", str(read)),
                    *_file_system({*program.trees, *python.trees}, limits, room),
                    "--",
                    *keeper_command(python.path, str(Path(_INSIDE).parent), pipes),
                ],
                scratch=SCRATCH,
                start=WORKSPACE if room else SCRATCH,
                uid=uid,
                pass_fds=(read,),
                others_of_user=_others(uid, shared=room is not None),
            )
        finally:
            os.close(read)


def _others(uid: int | None, *, shared: bool) -> int:
    """Threads that count against the limit beside the program's own: of a workspace's user, those of its other jobs."""
    if uid is not None:
        return threads_of_user(uid) if shared else 0
    return 0 if _counts_alone() else threads_of_user()


def _walls(uid: int | None, *, network: bool) -> list[str]:
    # Apart from `--unshare-all`, which takes a user namespace when it can: root's keeper has to change its user.
    walls = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    if not network:
        walls += ["--unshare-net"]
    if uid is None:
        walls += ["--unshare-user"]
    else:
        walls += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    return [*walls, "--die-with-parent", "--as-pid-1", "--clearenv", "--hostname", "sandbox"]


def _file_system(trees: set[str], limits: Limits, room: Room | None) -> list[str]:
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
    if room is not None:
        mounts += _opened(room)
    # The root itself is a tmpfs without a size: nothing may be left writable in it.
    return [*_parents(mounts), *mounts, "--remount-ro", "/", "--chdir", SCRATCH]


def _opened(room: Room) -> list[str]:
    """The workspace to be written, with what is hidden covered: a folder by an empty one, a file by a closed device."""
    mounts = ["--bind", room.path, WORKSPACE]
    for path in room.hidden:
        place = f"{WORKSPACE}/{path}"
        if Path(room.path, path).is_dir():
            mounts += ["--perms", "0755", "--tmpfs", place, "--remount-ro", place]
        else:
            mounts += ["--ro-bind", "/dev/null", place]
    for path in NAMES_OF_HOSTS if room.network else ():
        if Path(path).exists():
            mounts += ["--ro-bind", os.path.realpath(path), path]
    return mounts


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
