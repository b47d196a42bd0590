"""Children that open documents: warm ones are kept, one that does not answer in time is killed."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import registry
import workers
from registry.errors import SkillError
from workers.web.child import FRAME

#: Documents open at once in this process, and children kept warm.
MOST: Final = 4
WARM: Final = 2
#: Documents one child opens before it is replaced: what it leaks goes with it.
JOBS: Final = 100
#: Bytes one answer may have; the text of 5 MiB of markup is far below it.
MAX_ANSWER: Final = 64 * 1024 * 1024
LOOK_S: Final = 0.25


@lru_cache(maxsize=1)
def orders() -> dict[str, Any]:
    """What a child gives up before it opens anything: all but its libraries; empty where the kernel offers nothing."""
    if sys.platform != "linux":
        return {}
    from workers.sandbox import landlock, seccomp

    abi = landlock.version()
    if abi == 0:
        return {}
    wall = landlock.Landlock(abi)
    # Never the folder of a checkout as a whole: the home of a stack may lie in it.
    packages = {str(Path(str(module.__file__)).resolve().parent) for module in (registry, workers)}
    libraries = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return {
        "landlock": wall.rules(packages | {os.path.realpath(path) for path in libraries}),
        "seccomp": seccomp.filter_for(wall.refusals(same_user=True)).hex(),
    }


class _Child:
    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        environment = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-m", "workers.web.child", json.dumps(orders())],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=environment,
                start_new_session=True,
            )
        self.channel = ours
        self.jobs = 0

    def end(self) -> None:
        self.channel.close()
        self.process.kill()
        self.process.wait()


class _Pool:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.slots = threading.BoundedSemaphore(MOST)
        self.idle: list[_Child] = []


_pool = _Pool()


def _after_fork() -> None:
    global _pool
    with contextlib.suppress(OSError):
        for child in _pool.idle:  # the parent's; our copies of its sockets would keep them alive
            child.channel.close()
    _pool = _Pool()


os.register_at_fork(after_in_child=_after_fork)


def open_document(head: dict[str, Any], body: bytes, *, seconds: float, check: Callable[[], None]) -> dict[str, Any]:
    """What the child made of a document.

    Args:
        check: called while waiting; what it raises ends the wait, and the child.

    Raises:
        SkillError: `timeout` when it takes too long, `unsupported_type` when it cannot be read.
    """
    until = time.monotonic() + seconds
    pool = _pool
    while not pool.slots.acquire(timeout=min(LOOK_S, max(0.001, until - time.monotonic()))):
        check()
        if time.monotonic() >= until:
            raise _late()
    try:
        answer = _ask(pool, head, body, until, check)
    finally:
        pool.slots.release()
    if "unsupported" in answer:
        raise SkillError("unsupported_type", str(answer["unsupported"]))
    if "broken" in answer:
        raise SkillError("unsupported_type", f"the document cannot be opened: {answer['broken']}")
    return answer


def _ask(pool: _Pool, head: dict[str, Any], body: bytes, until: float, check: Callable[[], None]) -> dict[str, Any]:
    child = _warm(pool) or _Child()
    try:
        text = json.dumps(head).encode()
        child.channel.settimeout(max(0.001, until - time.monotonic()))
        child.channel.sendall(FRAME.pack(len(text), len(body)) + text + body)
        size, _ = FRAME.unpack(_receive(child, FRAME.size, until, check))
        if size > MAX_ANSWER:
            raise SkillError("too_large", "the document unfolds to too much text")
        answer: dict[str, Any] = json.loads(_receive(child, size, until, check))
    except TimeoutError:
        child.end()
        raise _late() from None
    except OSError:
        child.end()
        raise SkillError("unsupported_type", "the document cannot be opened: what opened it died") from None
    except BaseException:
        child.end()
        raise
    child.jobs += 1
    with pool.lock:
        keep = child.jobs < JOBS and len(pool.idle) < WARM
        if keep:
            pool.idle.append(child)
    if not keep:
        child.end()
    return answer


def _warm(pool: _Pool) -> _Child | None:
    """A child that waits for work; one that died while it waited is buried."""
    while True:
        with pool.lock:
            child = pool.idle.pop() if pool.idle else None
        if child is None or child.process.poll() is None:
            return child
        child.end()


def _receive(child: _Child, size: int, until: float, check: Callable[[], None]) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        check()
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        child.channel.settimeout(min(LOOK_S, left))
        try:
            part = child.channel.recv(min(size - len(parts), 1 << 20))
        except TimeoutError:
            continue
        if not part:
            raise ConnectionError("the child is gone")
        parts += part
    return bytes(parts)


def _late() -> SkillError:
    return SkillError("timeout", "opening the document took too long", retryable=True)
