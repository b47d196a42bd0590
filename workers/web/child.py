"""The process that opens documents from outside: a file that crashes, loops or swells takes this down, nothing else.

Speaks over the socket it got as standard input: a length and a JSON head, then the document; the answer the same way.
Ends with its parent, and by the limits below when nobody is left to end it. Where the kernel can, it reads libraries
only, writes nothing and opens no socket. Run as `python -I -m workers.web.child ORDERS`.
"""

import contextlib
import json
import resource
import socket
import struct
import sys
from typing import Any, Final

#: Length of the JSON head, length of the body.
FRAME: Final = struct.Struct(">IQ")
#: Bytes of memory, and seconds of processor time over all its documents.
MEMORY: Final = 2 * 1024**3
CPU_S: Final = 120


def main() -> None:
    """Opens documents until the other side hangs up."""
    _limit()
    confine(json.loads(sys.argv[1]))
    channel = socket.socket(fileno=0)
    while True:
        frame = receive(channel, FRAME.size)
        if frame is None:
            return
        head_size, body_size = FRAME.unpack(frame)
        head, body = receive(channel, head_size), receive(channel, body_size)
        if head is None or body is None:
            return
        answer = json.dumps(_open(json.loads(head), body)).encode()
        channel.sendall(FRAME.pack(len(answer), 0) + answer)


def receive(channel: socket.socket, size: int) -> bytes | None:
    """Exactly so many bytes; None when the other side is gone."""
    parts = bytearray()
    while len(parts) < size:
        part = channel.recv(min(size - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)


def _open(head: dict[str, Any], body: bytes) -> dict[str, Any]:
    from workers.web import documents

    try:
        return documents.read(head, body)
    except documents.Unreadable as error:
        return {"unsupported": str(error)}
    except MemoryError:
        return {"broken": "it needs too much memory"}
    except RecursionError:
        return {"broken": "it nests too deep"}
    except Exception as error:
        return {"broken": f"{type(error).__name__}"}


def confine(orders: dict[str, Any]) -> None:
    """Gives up files and network for good.

    Args:
        orders: `landlock` rules and a `seccomp` filter in hex; empty where this machine has neither.
    """
    if not orders:
        return
    from workers.sandbox.inside import kernel

    kernel.no_new_privileges()
    kernel.landlock(orders["landlock"], "/nonexistent")
    kernel.seccomp(bytes.fromhex(orders["seccomp"]))


def _limit() -> None:
    for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, CPU_S), (resource.RLIMIT_AS, MEMORY)):
        with contextlib.suppress(ValueError, OSError):  # macOS knows no limit of address space
            resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    sys.setrecursionlimit(5_000)
    main()
