"""Real worker processes for tests, each in a session of its own so that all of it can be killed."""

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

from orchestrator.settings import Settings
from orchestrator.stack.environment import child_environment
from orchestrator.stack.processes import Process
from tests.support import eventually
from workers.commands.worker import worker_command

_numbers = count(1)


class WorkerProcess:
    """A worker on the database and broker of `settings`; `changed` sets further `OFFICINA_` variables for it.

    `module` is what runs in place of the worker's own: it may add to it before it begins, and reads `more` of its
    environment.
    """

    def __init__(
        self,
        settings: Settings,
        log: Path,
        changed: Mapping[str, str],
        module: str | None = None,
        more: Mapping[str, str] | None = None,
        queues: Sequence[str] = (),
        autoscale: tuple[int, int] | None = None,
    ) -> None:
        self.name = f"test-{next(_numbers)}"
        self.log = log
        environment = (
            child_environment(settings)
            | dict(more or {})
            | {f"OFFICINA_{name}": value for name, value in changed.items()}
        )
        slots = int(changed.get("WORKER_SLOTS", 8))
        pool = changed.get("WORKER_POOL")
        options = {"slots": slots, "pool": pool, "queues": queues, "autoscale": autoscale}
        command = worker_command(settings, name=self.name, **options)  # type: ignore[arg-type]
        if module is not None:
            command = [module if word == "workers.commands.child" else word for word in command]
            environment["PYTHONPATH"] = str(Path(__file__).parents[1])
        self.process = Process(command, log=log, env=environment)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        """All it has printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def ready(self, seconds: float = 60) -> "WorkerProcess":
        """Waits until it takes work."""
        try:
            eventually(lambda: " ready." in self.output or not self.process.running, seconds)
        except AssertionError:
            raise AssertionError(f"worker not ready within {seconds} s:\n{self.output}") from None
        assert self.process.running, f"worker ended ({self.process.outcome}):\n{self.output}"
        return self

    def stop(self, grace_s: float = 30) -> None:
        """Ends it as a supervisor would: SIGTERM, and SIGKILL after the grace."""
        self.process.end(grace_s)

    def kill(self) -> None:
        """Ends it, and all it started, without a word of warning."""
        self.process.kill()
