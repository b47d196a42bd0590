"""What the links of the chain have in common."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from registry.base import Json
from registry.errors import SkillError
from workers.sandbox.inside import folder
from workers.sandbox.limits import Limits
from workers.sandbox.programs import Program
from workers.sandbox.room import Room


@dataclass(frozen=True)
class Command:
    """How to start the keeper behind one kind of wall."""

    argv: list[str]
    #: The scratch folder as the keeper sees it.
    scratch: str
    #: Where the program starts.
    start: str
    #: The user the keeper becomes; None: it stays who it is.
    uid: int | None
    pass_fds: tuple[int, ...] = ()
    #: Processes the kernel already counts against the limit of this user.
    others_of_user: int = 0
    #: Rules the keeper puts on the program; None where the wall has them.
    landlock: dict[str, Json] | None = None
    seccomp: bytes = field(default=b"", repr=False)


class Link(Protocol):
    """One kind of wall."""

    @property
    def name(self) -> str: ...

    @property
    def holds(self) -> str:
        """What it holds, in one line for people."""
        ...

    @property
    def scratch_is_mount(self) -> bool:
        """Whether the scratch folder is a file system of its own, with a size, that ends with the execution."""
        ...

    def prepare(
        self, program: Program, python: Program, limits: Limits, pipes: tuple[int, ...], room: Room | None
    ) -> AbstractContextManager[Command]:
        """What to run; whatever was made for it goes when the context ends."""
        ...


@contextlib.contextmanager
def temporary_scratch() -> Iterator[str]:
    """A scratch folder in the machine's own file system; goes with the context, whatever was left in it."""
    try:
        scratch = os.path.realpath(tempfile.mkdtemp(prefix="officina-sandbox-"))
    except OSError as error:
        raise SkillError("sandbox_unavailable", f"nothing ran: no temporary folder: {error.strerror}") from None
    try:
        yield scratch
    finally:
        with contextlib.suppress(OSError):
            box = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                folder.clear(box)
            finally:
                os.close(box)
            Path(scratch).rmdir()


def keeper_command(python: str, where: str, pipes: tuple[int, ...]) -> list[str]:
    """A bare interpreter that runs `inside.keeper`, found in `where`."""
    start = "import sys; sys.path.append(sys.argv[1]); from inside.keeper import main; main(*map(int, sys.argv[2:]))"
    return [python, "-I", "-S", "-B", "-c", start, where, *map(str, pipes)]


def threads_of_user(uid: int | None = None) -> int:
    """Threads a user (None: this one) runs on the whole machine: what the kernel counts a process limit against."""
    user, total = os.geteuid() if uid is None else uid, 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            if process.stat().st_uid == user:
                total += int((process / "stat").read_bytes().rpartition(b")")[2].split()[17])
    return total
