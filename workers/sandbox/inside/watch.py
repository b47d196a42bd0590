"""The processes of the program: who they are, what memory they hold, and how they all end."""

from __future__ import annotations

import contextlib
import os
import signal
import time

#: Seconds the end of killed processes is waited for; one stuck in the kernel must not hold the worker.
SWEEP_S = 5.0
#: How `/proc` marks a file that has no name any more.
_REMOVED = b" (deleted)"


def descendants() -> list[int]:
    """Every process below the keeper; orphans stay below it, as it is their reaper. Empty without `/proc`."""
    children: dict[int, list[int]] = {}
    for name in _numbers():
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - pathlib costs start-up time here
                parent = int(file.read().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        below = children.pop(todo.pop(), [])
        found += below
        todo += below
    return found


def _numbers() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:
        return []


def memory(limit: int) -> int:
    """Bytes the processes hold together: a quick sum, and past the limit one that counts shared pages once."""
    pids = descendants()
    quick = sum(_field_sum(pid, "status", (b"RssAnon:", b"RssShmem:")) for pid in pids)
    if quick <= limit:
        return quick
    return sum(
        _field_sum(pid, "smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:"))
        or _field_sum(pid, "status", (b"RssAnon:", b"RssShmem:"))
        for pid in pids
    )


def _field_sum(pid: int, file: str, fields: tuple[bytes, ...]) -> int:
    total = 0
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/{file}", "rb") as lines:  # noqa: PTH123
        for line in lines:
            if line.startswith(fields):
                total += int(line.split()[1]) * 1024
    return total


def nameless_bytes(scratch: str) -> int:
    """Bytes of files removed from the scratch folder that a process still holds, by handle or by mapping."""
    within, sizes = scratch.encode() + b"/", dict[int, int]()
    for pid in descendants():
        _add_handles(pid, within, sizes)
        _add_mappings(pid, within, sizes)
    return sum(sizes.values())


def _add_handles(pid: int, within: bytes, sizes: dict[int, int]) -> None:
    with contextlib.suppress(OSError):
        for handle in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            with contextlib.suppress(OSError):
                path = f"/proc/{pid}/fd/{handle}"
                target = os.readlink(path.encode())  # noqa: PTH115
                if target.startswith(within) and target.endswith(_REMOVED):
                    found = os.stat(path)  # noqa: PTH116
                    sizes[found.st_ino] = found.st_blocks * 512


def _add_mappings(pid: int, within: bytes, sizes: dict[int, int]) -> None:
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/maps", "rb") as lines:  # noqa: PTH123
        for line in lines:
            if line.endswith(_REMOVED + b"\n"):
                span, _mode, _offset, _device, inode, path = line.split(maxsplit=5)
                start, end = (int(at, 16) for at in span.split(b"-"))
                if path.startswith(within):
                    sizes[int(inode)] = max(sizes.get(int(inode), 0), end - start)


def sweep(child: int) -> None:
    """Kills everything the program started and waits until it is gone."""
    until = time.monotonic() + SWEEP_S
    while time.monotonic() < until:
        _kill(child)
        if _all_reaped():
            return
        time.sleep(0.002)


def _kill(child: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    if os.getpid() == 1:
        # First process of its own namespace: everyone else in it is the program's, and one call reaches all at once.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(-1, signal.SIGKILL)
        return
    # Stopped processes cannot fork, and still fill the process limit: a bomb freezes before it is taken apart.
    for kind in (signal.SIGSTOP, signal.SIGKILL):
        for pid in descendants():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, kind)


def _all_reaped() -> bool:
    while True:
        try:
            pid, _status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return False
