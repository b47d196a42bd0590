"""The few Linux calls Python has no name for: prctl, Landlock, seccomp. Every failure raises."""

from __future__ import annotations

import ctypes
import os
import stat
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2

# The same numbers on every architecture.
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446
_RULE_PATH_BENEATH = 1

#: Rights that make sense for a file; the others are about folders, and the kernel refuses them for a file.
_FILE_RIGHTS = 0b111 | 1 << 14 | 1 << 15

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("rights", ctypes.c_uint64), ("fd", ctypes.c_int32))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _prctl(option: int, value: Any, what: str, last: Any = 0) -> None:
    _check(_libc.prctl(option, value, last, ctypes.c_ulong(0), ctypes.c_ulong(0)), what)


def close_to_others() -> None:
    """No process of the same user may read this one's memory or handles, or trace it; ends with the next `exec`."""
    _prctl(_PR_SET_DUMPABLE, ctypes.c_ulong(0), "dumpable", ctypes.c_ulong(0))


def become_reaper() -> None:
    """Orphans below this process become its children instead of slipping away to the machine's first process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), "subreaper", ctypes.c_ulong(0))


def signal_when_parent_dies(number: int) -> None:
    _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(number), "parent death signal", ctypes.c_ulong(0))


def no_new_privileges() -> None:
    _prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), "no new privileges", ctypes.c_ulong(0))


def seccomp(code: bytes) -> None:
    """Loads a filter program: eight bytes for each instruction."""
    program = _Filter(len(code) // 8, code)
    _prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), "seccomp", ctypes.byref(program))


def landlock(rules: dict[str, Any], scratch: str) -> None:
    """Confines this process and all it starts to the given paths.

    Args:
        rules: `handled` {fs, net, scoped}: what is forbidden unless allowed; `paths`: {path: rights}; `scratchRights`.
        scratch: the folder the program may write to.
    """
    handled = _Ruleset(rules["handled"]["fs"], rules["handled"]["net"], rules["handled"]["scoped"])
    # Older kernels know a shorter structure, and take a longer one as long as its tail is zero.
    ruleset = _check(
        _libc.syscall(_LANDLOCK_CREATE_RULESET, ctypes.byref(handled), ctypes.sizeof(handled), 0), "landlock"
    )
    for path, rights in [*rules["paths"].items(), (scratch, rules["scratchRights"])]:
        _allow(ruleset, path, rights)
    _check(_libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0), "landlock")
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        # What is not there or cannot be reached needs no right.
        return
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _FILE_RIGHTS
        rule = _PathBeneath(rights, fd)
        _check(
            _libc.syscall(_LANDLOCK_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0), f"landlock {path}"
        )
    finally:
        os.close(fd)
