"""Workers forked from a process that has everything imported.

A storm kills a worker every two seconds; on a small machine it would otherwise be spent on imports. Each is a whole
worker process all the same, in a session of its own, with nothing open that another has.

`python -m tests.faults.template` reads a line of JSON for each worker (its command line, its log) and answers with its
number; when there are no more orders it ends, and all of them with it.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

from orchestrator.settings import Settings
from orchestrator.stack.environment import child_environment
from orchestrator.stack.tether import die_with_parent
from workers.commands.worker import worker_command

ROOT = Path(__file__).parents[2]


class Hired:
    """A worker of the template."""

    def __init__(self, pid: int, log: Path) -> None:
        self.pid, self.log = pid, log

    @property
    def output(self) -> str:
        """All it has printed."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def kill(self) -> None:
        """Ends it, and all it started, without a word of warning."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


class Template:
    """Forks workers with one set of settings."""

    def __init__(self, settings: Settings, folder: Path, changed: Mapping[str, str]) -> None:
        self._settings, self._folder, self._slots = settings, folder, int(changed["WORKER_SLOTS"])
        self._numbers = count(1)
        self.hired: list[Hired] = []
        environment = child_environment(settings) | {f"OFFICINA_{name}": value for name, value in changed.items()}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.template"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hire(self) -> Hired:
        """A worker that is starting."""
        assert self._process.stdin is not None and self._process.stdout is not None
        name = f"of-template-{next(self._numbers)}"
        log = self._folder / f"{name}.log"
        command = worker_command(self._settings, name=name, slots=self._slots)
        words = command[command.index("workers.commands.child") + 1 :]
        print(json.dumps({"words": words, "log": str(log)}), file=self._process.stdin, flush=True)
        hired = Hired(int(self._process.stdout.readline()), log)
        self.hired.append(hired)
        return hired

    def dismiss(self) -> None:
        """Ends all."""
        for hired in self.hired:
            hired.kill()
        self._process.kill()
        self._process.communicate()


def main() -> None:
    from registry.skills import catalogue
    from tests.faults import skills
    from workers import jobs  # noqa: F401 - imported once for all workers
    from workers.commands import child
    from workers.sandbox.process import find_sandbox

    skills.install()
    catalogue.build()
    find_sandbox()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a killed worker
    for line in sys.stdin:
        order = json.loads(line)
        mine = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become(order["log"])
            if sys.platform == "linux":
                die_with_parent(mine)
            sys.argv[1:] = order["words"]
            child.main()
            os._exit(0)
        print(pid, flush=True)


def _become(log: str) -> None:
    """What a start of its own would have given this process."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for there, number in ((nothing, 0), (out, 1), (out, 2)):
        os.dup2(there, number)


if __name__ == "__main__":
    main()
