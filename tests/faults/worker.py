"""A worker process with the skills that are counted; everything else is the shipped worker.

`PROOF_GATE` names a file: the process gets ready to the last import and begins when that file is there, so that a test
need not wait for a start when it wants somebody to take over.
"""

import os
import time
from pathlib import Path

from tests.faults import skills
from workers import jobs  # noqa: F401 - imported ahead of the gate
from workers.commands import child

skills.install()  # not in main(): a process that this one makes of itself needs them, too


def main() -> None:
    gate = os.environ.get("PROOF_GATE")
    while gate and not Path(gate).exists():
        time.sleep(0.01)
    child.main()


if __name__ == "__main__":
    main()
