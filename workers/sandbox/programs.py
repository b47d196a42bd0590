"""Which programs a sandbox can run, and which folders of this machine they need to see."""

import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from registry.errors import SkillError

#: Seen read-only. Named one by one: `/usr/src/app` and `/usr/local/etc` are places where applications keep secrets.
SYSTEM = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64"),
    *("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share"),
    *("/usr/local/bin", "/usr/local/lib", "/usr/local/lib64", "/usr/local/share"),
    *("/nix/store", "/gnu/store"),
)
#: What the dynamic loader, the clock and TLS libraries read; nothing here is private to a machine.
ETC = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld-musl-x86_64.path",
    "/etc/ld-musl-aarch64.path",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/ssl/openssl.cnf",
)
#: What finding a host by its name, and knowing it by its certificate, takes.
NAMES_OF_HOSTS = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/services", "/etc/gai.conf"),
    *("/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/ca-certificates"),
)
#: Devices that hold nothing.
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

#: Below the interpreter's prefix. A framework build of macOS starts a program of its `Resources`.
_LIBRARIES = ("lib", "lib64", "Python", "Resources") if sys.platform == "darwin" else ("lib", "lib64")

SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Program:
    """A program by its real path, and what it needs beside the system's folders."""

    path: str
    trees: tuple[str, ...] = ()
    #: False for programs that reserve far more address space than they use: their data is limited instead.
    address_space: bool = True
    #: Arguments before those of the caller.
    flags: tuple[str, ...] = field(default=())


def in_system(path: str) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in SYSTEM)


def interpreters() -> list[Program]:
    """Pythons that may work inside, the best first: the worker's own, then the system's."""
    own = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    found = [Program(own, _trees(own))]
    for folder in SEARCH_PATH.split(":"):
        path = os.path.realpath(f"{folder}/python3")
        if os.access(path, os.X_OK) and in_system(path) and all(path != known.path for known in found):
            found.append(Program(path))
    return found


def _trees(executable: str) -> tuple[str, ...]:
    """The interpreter and its libraries, and never the prefix as a whole: it may be somebody's home."""
    libraries = [os.path.realpath(f"{prefix}/{lib}") for prefix in _prefixes() for lib in _LIBRARIES]
    needed = dict.fromkeys([executable, *libraries])
    return tuple(path for path in needed if not in_system(path) and Path(path).exists())


def _prefixes() -> list[str]:
    return list(dict.fromkeys([sys.base_prefix, sys.base_exec_prefix]))


def resolve(argv: list[str], python: Program) -> tuple[Program, list[str]]:
    """The program that the first word names, and the whole command line.

    `python3`, `node` and `sh` are names of ours; anything else has to be an absolute path that exists inside.

    Raises:
        SkillError: `unsupported_type` when this machine does not have it.
    """
    name, arguments = argv[0], argv[1:]
    if name == "python3":
        return python, [python.path, *arguments]
    if name == "node":
        node = _node()
        return node, [node.path, *node.flags, *arguments]
    if name == "sh":
        return Program("/bin/sh", python.trees, address_space=False), ["/bin/sh", *arguments]
    if not name.startswith("/"):
        raise SkillError("unsupported_type", f"the sandbox knows python3, node, sh and absolute paths, not {name!r}")
    return Program(name, python.trees), argv


def _node() -> Program:
    found = shutil.which("node")
    if found is None:
        raise SkillError("unsupported_type", "javascript needs Node.js: there is no `node` on the worker's path")
    path = os.path.realpath(found)
    return Program(path, () if in_system(path) else (path,), address_space=False, flags=("--max-old-space-size=320",))
