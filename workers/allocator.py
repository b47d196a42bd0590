"""The C library's allocator under a worker.

Each thread of glibc gets an arena of its own, up to eight a core, and what is freed in one is of no use to the others:
a worker that was busy once would keep memory of work that is long done. Python's threads hardly ever allocate at the
same moment, so two arenas serve them as well.
"""

import contextlib
import ctypes
from typing import Final

#: `M_ARENA_MAX` of glibc's malloc.h.
_ARENA_MAX: Final = -8
ARENAS: Final = 2


def share_arenas() -> None:
    """Keeps this process to a few arenas; nothing happens where the C library has no such setting."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, ARENAS)


def give_back() -> None:
    """Hands to the system what the C library keeps of memory that was freed: megabytes, once all is imported."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
