"""The third link: Seatbelt, macOS's own, by way of `sandbox-exec`.

The wall holds files and network. macOS has no reaper of orphans and no process namespace: a program that leaves its
process group and loses its parent may outlive the call, still behind the wall and under its processor limit.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from workers.sandbox.limits import Limits
from workers.sandbox.link import Command, keeper_command, temporary_scratch
from workers.sandbox.programs import Program
from workers.sandbox.room import Room

#: Read-only beside the program's own trees.
_SYSTEM = ("/usr/lib", "/usr/bin", "/bin", "/usr/share", "/System", "/Library/Apple", "/private/var/db/dyld")
_FILES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/private/etc/localtime", "/private/var/select/sh")
_WRITE_DEVICES = ("/dev/null", "/dev/zero")


@dataclass(frozen=True)
class Seatbelt:
    """Runs programs under a profile that denies what it does not name."""

    binary: str
    name: str = "seatbelt"
    holds: str = (
        "files and network: reads system folders only, no network; a daemon that leaves its group may outlive the call"
    )
    scratch_is_mount: bool = field(default=False, init=False)

    @contextmanager
    def prepare(
        self, program: Program, python: Program, limits: Limits, pipes: tuple[int, ...], room: Room | None = None
    ) -> Iterator[Command]:
        """The command that runs the keeper under the profile; the scratch folder lives as long as this context."""
        with temporary_scratch() as scratch:
            folder = str(Path(__file__).parent)
            trees = [*program.trees, *python.trees, str(Path(folder) / "inside")]
            argv = [self.binary, "-p", profile(trees, scratch, room), *keeper_command(python.path, folder, pipes)]
            start = room.path if room else scratch
            yield Command(argv, scratch, start, uid=None, others_of_user=_processes_of_user())


def profile(trees: list[str], scratch: str, room: Room | None = None) -> str:
    """A profile in Seatbelt's own language."""
    readable = "\n".join(f"  (subpath {_quoted(path)})" for path in [*_SYSTEM, *trees, scratch])
    files = "\n".join(f"  (literal {_quoted(path)})" for path in _FILES)
    devices = "\n".join(f"  (literal {_quoted(path)})" for path in _WRITE_DEVICES)
    return f"""(version 1)
(deny default)
(allow process-fork)
(allow process-exec (subpath "/usr/bin") (subpath "/bin") {" ".join(f"(subpath {_quoted(t)})" for t in trees)})
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read* (literal "/")
{readable}
{files})
(allow file-write*
  (subpath {_quoted(scratch)})
{devices})
{_opened(room) if room else ""}"""


def _opened(room: Room) -> str:
    """What a room adds; of two rules that speak of a file the later one wins."""
    hidden = "\n".join(f"  (subpath {_quoted(f'{room.path}/{path}')})" for path in room.hidden)
    network = "(allow network*)\n" if room.network else ""
    return f"(allow file-read* file-write* (subpath {_quoted(room.path)}))\n(deny file*\n{hidden})\n{network}"


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _processes_of_user() -> int:
    listed = subprocess.run(["/bin/ps", "-x", "-o", "pid="], capture_output=True, timeout=5, check=False)
    return listed.stdout.count(b"\n")
