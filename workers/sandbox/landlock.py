"""The second link: Landlock and seccomp, for machines and containers that allow no namespaces. Linux 5.13 and later.

The keeper stays outside as the reaper of all orphans; the program inside may read the system's folders, write its
scratch folder, and open no socket. The scratch folder is a temporary folder of the machine, measured while it runs.
"""

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from registry.base import Json
from workers.sandbox import seccomp
from workers.sandbox.limits import Limits
from workers.sandbox.link import Command, keeper_command, temporary_scratch, threads_of_user
from workers.sandbox.programs import DEVICES, ETC, NAMES_OF_HOSTS, SYSTEM, Program
from workers.sandbox.room import Room, fresh_uid

_CREATE_RULESET, _ASK_VERSION = 444, 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHARACTER, _MAKE_SOCKET, _MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 11
#: Version of Landlock -> how many file rights it knows.
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
#: Since when it restricts TCP, and abstract sockets and signals.
_NET_SINCE, _SCOPED_SINCE, _TRUNCATE_SINCE = 4, 6, 3


@functools.cache
def version() -> int:
    """The version of Landlock the kernel has switched on; 0: none."""
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_ASK_VERSION))))


@dataclass(frozen=True)
class Landlock:
    """Runs programs confined by version `abi` of Landlock, or a lower one on purpose."""

    abi: int
    name: str = "landlock"
    holds: str = (
        "files and network: reads the system folders only, no sockets at all; names, sizes and dates of files outside "
        "can be seen, processes share the machine's process table"
    )
    scratch_is_mount: bool = field(default=False, init=False)

    @contextmanager
    def prepare(
        self, program: Program, python: Program, limits: Limits, pipes: tuple[int, ...], room: Room | None = None
    ) -> Iterator[Command]:
        """The command that runs the keeper; the scratch folder lives as long as this context."""
        uid = room.uid if room else fresh_uid()
        with temporary_scratch() as scratch:
            yield Command(
                argv=keeper_command(python.path, str(Path(__file__).parent), pipes),
                scratch=scratch,
                start=room.path if room else scratch,
                uid=uid,
                others_of_user=threads_of_user(uid) if uid is None or room else 0,
                landlock=self.rules({*program.trees, *python.trees}, room),
                seccomp=seccomp.filter_for(
                    self.refusals(same_user=uid is None, network=room is not None and room.network)
                ),
            )

    def rules(self, trees: set[str], room: Room | None = None) -> dict[str, Json]:
        """What `kernel.landlock` takes: the system's folders and these trees to be read, devices that hold nothing."""
        all_rights = (1 << _FILE_RIGHTS[min(self.abi, 5)]) - 1
        see = _EXECUTE | _READ_FILE | _READ_FOLDER
        paths = dict.fromkeys([*SYSTEM, *ETC, *sorted(trees)], see)
        paths |= dict.fromkeys(DEVICES, _READ_FILE | _WRITE_FILE)
        own = all_rights & ~(_MAKE_CHARACTER | _MAKE_SOCKET | _MAKE_BLOCK)
        network = room is not None and room.network
        if room is not None:
            paths |= {room.path: own} | dict.fromkeys(NAMES_OF_HOSTS if network else (), see)
        return {
            "handled": {
                "fs": all_rights,
                "net": 0b11 if self.abi >= _NET_SINCE and not network else 0,
                "scoped": 0b11 if self.abi >= _SCOPED_SINCE else 0,
            },
            "paths": paths,
            "scratchRights": own,
        }

    def refusals(self, *, same_user: bool, network: bool = False) -> list[seccomp.Refuse]:
        return [
            *(seccomp.SHARED_WITH_NETWORK if network else seccomp.SHARED),
            *(seccomp.SAME_USER if same_user else []),
            *(seccomp.SAME_USER_SIGNALS if same_user and self.abi < _SCOPED_SINCE else []),
            *(seccomp.TRUNCATION if self.abi < _TRUNCATE_SINCE else []),
        ]
