"""The system calls a program in the sandbox does not get, as a filter program for the kernel.

A list of refusals: what would reach out of the wall (other processes, mounts, kernel features with a history of holes),
what would hold memory that no limit counts, and, where there are no namespaces, sockets. A refused call fails with an
error; the program lives.
"""

import errno
import platform
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from workers.sandbox.syscalls import ARCHITECTURES

Op = Literal["eq", "ne", "any", "given"]

_LOAD, _JUMP_EQ, _JUMP_GE, _JUMP_SET, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
#: On x86-64 the second way into the kernel, with numbers of its own.
_X32 = 0x40000000
#: Every flag of `clone` that makes a namespace.
_NEW_NAMESPACE = 0x7E020000


@dataclass(frozen=True)
class When:
    """A condition on one argument: under `mask` equal to `value`, not equal, with any of its bits, or (given) not 0."""

    argument: int
    op: Op
    value: int = 0
    mask: int = 0xFFFFFFFF


@dataclass(frozen=True)
class Refuse:
    """A call fails with `error` when all conditions hold."""

    call: str
    error: int = errno.EPERM
    when: tuple[When, ...] = ()


def _all(calls: str, error: int = errno.EPERM) -> list[Refuse]:
    return [Refuse(call, error) for call in calls.split()]


_ALWAYS = [
    *_all("ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp pidfd_getfd"),
    *_all("bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register"),
    *_all("add_key request_key keyctl move_pages migrate_pages modify_ldt lookup_dcookie syslog vhangup"),
    *_all("mount umount2 pivot_root chroot move_mount open_tree open_tree_attr mount_setattr"),
    *_all("fsopen fsconfig fsmount fspick unshare setns name_to_handle_at open_by_handle_at fanotify_init"),
    *_all("swapon swapoff reboot kexec_load kexec_file_load init_module finit_module delete_module"),
    *_all("acct quotactl quotactl_fd settimeofday clock_settime adjtimex clock_adjtime iopl ioperm"),
    *_all("sethostname setdomainname"),
    # Memory that belongs to no process and to no file system with a size.
    *_all("memfd_create memfd_secret shmget msgget semget mq_open", errno.ENOSYS),
    # Its flags lie in memory, where a filter cannot look; libraries then fall back to `clone`.
    Refuse("clone3", errno.ENOSYS),
    Refuse("clone", when=(When(0, "any", _NEW_NAMESPACE),)),
    # Typing into the terminal of somebody else.
    Refuse("ioctl", when=(When(1, "eq", 0x5412),)),
    Refuse("ioctl", when=(When(1, "eq", 0x541C),)),
]

#: With a network namespace only families that it divides: a virtual machine's vsock, for one, passes through it.
NAMESPACED = [
    *_ALWAYS,
    Refuse("socket", errno.EAFNOSUPPORT, (When(0, "ne", 1), When(0, "ne", 2), When(0, "ne", 10))),
]

#: With the machine's network: its local sockets without a path are in reach of whoever may make one.
NAMESPACED_WITH_NETWORK = [*_ALWAYS, Refuse("socket", errno.EAFNOSUPPORT, (When(0, "ne", 2), When(0, "ne", 10)))]

#: A file without a name from the start; libraries then make one and remove its name, which is seen.
_O_TMPFILE = 0o20000000

#: Without namespaces: no watching of folders outside, and nothing Landlock does not know of.
_WITHOUT_NAMESPACES = [
    *_all("inotify_init inotify_init1"),
    # Landlock knows nothing of attributes, and writing them takes no more than a file anyone may write.
    *_all("setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat", errno.ENOTSUP),
    *_all("file_setattr"),
    # The keeper looks at the handles of its processes, and one that hides them hides what it holds.
    Refuse("prctl", when=(When(0, "eq", 4), When(1, "eq", 0))),
    Refuse("open", errno.EOPNOTSUPP, (When(1, "any", _O_TMPFILE),)),
    Refuse("openat", errno.EOPNOTSUPP, (When(2, "any", _O_TMPFILE),)),
    Refuse("openat2", errno.ENOSYS),
]

#: No socket but a connected pair.
SHARED = [
    *_ALWAYS,
    *_all("socket connect bind listen accept accept4", errno.EACCES),
    # A pair of datagram sockets could still be pointed at a name outside.
    Refuse("socketpair", errno.EACCES, (When(1, "ne", 1, 0xF), When(1, "ne", 5, 0xF))),
    Refuse("sendto", errno.EACCES, (When(4, "given"),)),
    *_WITHOUT_NAMESPACES,
]
#: Where the deployment gives a program the network: its sockets, and not the local ones of other programs.
SHARED_WITH_NETWORK = [
    *_ALWAYS,
    Refuse("socket", errno.EAFNOSUPPORT, (When(0, "ne", 2), When(0, "ne", 10))),
    Refuse("socketpair", errno.EACCES, (When(1, "ne", 1, 0xF), When(1, "ne", 5, 0xF))),
    *_WITHOUT_NAMESPACES,
]

#: Not done, and called a success: `touch` and copying tools would stop at a refusal, and nothing inside depends on it.
_PRETEND = 0

#: When the program runs as the user of the worker: Landlock knows nothing of modes, owners, times and limits, and the
#: user's own files and processes are within reach of those.
SAME_USER = [
    *_all("chmod fchmod fchmodat fchmodat2 utime utimes futimesat utimensat", _PRETEND),
    *_all("chown fchown lchown fchownat"),
    Refuse("ioctl", when=(When(1, "eq", 0x40086602),)),
    Refuse("ioctl", when=(When(1, "eq", 0x401C5820),)),
    *[
        Refuse(call, when=(When(0, "ne", 0),))
        for call in ("prlimit64", "sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity")
    ],
    Refuse("setpriority", when=(When(1, "ne", 0),)),
    Refuse("setpriority", when=(When(0, "ne", 0),)),
    Refuse("ioprio_set"),
]

#: Before Landlock could keep signals inside: none to another process, however sent.
SAME_USER_SIGNALS = [
    Refuse("kill", when=(When(0, "ne", 0),)),
    *_all("tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal"),
    *[Refuse("fcntl", when=(When(1, "eq", command),)) for command in (8, 15)],
    *[Refuse("ioctl", when=(When(1, "eq", command),)) for command in (0x8901, 0x8902)],
]

#: Before Landlock knew of cutting files short: by name, or by opening for reading only.
TRUNCATION = [
    Refuse("truncate"),
    Refuse("open", when=(When(1, "eq", 0o1000, 0o1003),)),
    Refuse("openat", when=(When(2, "eq", 0o1000, 0o1003),)),
]


def filter_for(rules: Iterable[Refuse], machine: str | None = None) -> bytes:
    """The filter program: eight bytes for each instruction.

    Args:
        rules: what to refuse; calls the architecture does not have are left out.
        machine: as `platform.machine()` says.

    Raises:
        LookupError: the numbers of this architecture are not known here.
    """
    known = ARCHITECTURES[machine or platform.machine()]
    code = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_JUMP_EQ, 1, 0, known.audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if known.has_x32:
        code += [(_JUMP_GE, 0, 1, _X32), (_RETURN, 0, 0, _ERROR | errno.EPERM)]
    for rule in rules:
        if (number := known.numbers.get(rule.call)) is not None:
            code += _block(number, rule)
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


_Instruction = tuple[int, int, int, int]


def _block(number: int, rule: Refuse) -> list[_Instruction]:
    """Refuses the call `number` under the rule's conditions, else falls through with the number loaded."""
    refusal = (_RETURN, 0, 0, _ERROR | rule.error)
    if not rule.when:
        return [(_JUMP_EQ, 0, 1, number), refusal]
    # Built from the end: a condition that does not hold jumps over all that follows it, to the reload.
    body: list[_Instruction] = [refusal]
    for condition in reversed(rule.when):
        body = [*_test(condition, past=len(body)), *body]
    return [(_JUMP_EQ, 0, len(body) + 1, number), *body, (_LOAD, 0, 0, _NUMBER_AT)]


def _test(condition: When, past: int) -> list[_Instruction]:
    low = _ARGUMENTS_AT + 8 * condition.argument
    load = (_LOAD, 0, 0, low)
    if condition.op == "given":
        # A pointer: either half may be the one that is not zero.
        return [load, (_JUMP_EQ, 0, 2, 0), (_LOAD, 0, 0, low + 4), (_JUMP_EQ, past, 0, 0)]
    if condition.op == "any":
        return [load, (_JUMP_SET, 0, past, condition.value)]
    masked = [load, (_AND, 0, 0, condition.mask)]
    if condition.op == "eq":
        return [*masked, (_JUMP_EQ, 0, past, condition.value)]
    return [*masked, (_JUMP_EQ, past, 0, condition.value)]
