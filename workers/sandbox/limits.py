"""How much a program in the sandbox may use (spec: skills 7.10)."""

from dataclasses import dataclass

from registry.base import Json

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes. Memory holds for each process at once, and for all of them together when they are looked at."""

    memory: int = 512 * MIB
    processes: int = 64
    handles: int = 256
    #: One file.
    file: int = 16 * MIB
    #: The scratch folder as a whole.
    scratch: int = 64 * MIB
    #: Files and folders in it: each costs kernel memory, an empty one too.
    scratch_entries: int = 10_000
    #: What is taken from `out`.
    out_files: int = 20
    out_file: int = 10 * MIB
    #: Input files together; the program needs room beside them.
    inputs: int = 48 * MIB

    def to_orders(self, timeout_s: float) -> dict[str, Json]:
        """The limits as the keeper reads them; processor seconds follow the deadline."""
        return {
            "cpu": max(1, int(timeout_s + 0.999)),
            "memory": self.memory,
            "processes": self.processes,
            "handles": self.handles,
            "file": self.file,
            "scratch": self.scratch,
            "scratchEntries": self.scratch_entries,
            "outFiles": self.out_files,
            "outFile": self.out_file,
        }
