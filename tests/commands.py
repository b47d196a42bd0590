"""The command `officina` as tests run it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

#: The installed command of the environment the tests run in.
OFFICINA = str(Path(sys.executable).parent / "officina")


@dataclass(frozen=True)
class Ended:
    """What a command printed and how it left."""

    returncode: int
    stdout: str
    stderr: str


#: Runs the command with these words and gives what came of it.
Run = Callable[..., Ended]
