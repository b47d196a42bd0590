"""The company of one fault test: its workers, an understudy behind the curtain, its projects, and its promises."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sqlalchemy import update

from orchestrator.events import redis_client
from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from orchestrator.store.invariants import broken
from orchestrator.store.tables import signals
from tests.faults import skills
from tests.projects import Watched, start
from tests.support import eventually
from tests.workers import WorkerProcess

T = TypeVar("T")

#: Recovery within a lease and a tick, both short here.
QUICK = {
    "LIMITS__LEASE_S": "2",
    "LIMITS__RENEW_S": "0.5",
    "LIMITS__CLOCK_TICK_S": "0.2",
    "LIMITS__STUCK_S": "4",
    "GRACE_S": "5",
}

#: How late a row may be at the end of a test before the clock has failed: a lease and some ticks.
GRACE_MS = 5_000


class Company:
    """Real worker processes on one database and one broker."""

    def __init__(self, settings: Settings, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.settings, self.folder = settings, folder
        self.place = folder / "effects"
        self.workers: list[WorkerProcess] = []
        self.projects: list[Watched] = []
        self._numbers = count(1)
        patch.setenv(skills.PLACE, str(self.place))
        from registry.skills import catalogue

        patch.setattr(catalogue, "catalogue", catalogue.catalogue)  # taken back at the end
        skills.install()

    def hire(self, *, points: str = "", curtain: bool = False, **changed: str) -> WorkerProcess:
        """A worker that is starting; `ready()` waits for it.

        Args:
            points: crash points it is armed with.
            curtain: it waits behind the curtain until `enter`.
            changed: further settings.
        """
        number = next(self._numbers)
        values = QUICK | {"CRASHPOINTS": points} | changed
        environment = dict(values)
        worker = _Worker(self.settings, self.folder / f"worker-{number}.log", environment, curtain=curtain)
        self.workers.append(worker)
        return worker

    def understudy(self, **changed: str) -> "_Worker":
        """A worker that takes over as soon as it is told to `enter`."""
        made = self.hire(curtain=True, **changed)
        assert isinstance(made, _Worker)
        return made

    def submit(self, tasks: Sequence[Mapping[str, Any]], script: Mapping[str, Any], **fields: Any) -> Watched:
        """Submits a project."""
        made = start(self.folder / f"p{next(self._numbers)}", self.settings, tasks, script, **fields)
        project = Watched(self.settings, made.project_id)
        self.projects.append(project)
        return project

    def waits_for(self, condition: Callable[[], T], seconds: float = 60) -> T:
        """Waits; when it is in vain, says what the workers printed."""
        try:
            return eventually(lambda: self._all_began() and condition(), seconds, every=0.05)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.output[-20_000:]}") from None

    def flush(self) -> None:
        """Empties the broker."""
        assert self.settings.redis is not None
        redis_client(self.settings.redis).flushall()

    def expire_everything(self) -> None:
        """What is open has been open for too long."""
        over = update(signals).where(signals.c.status == "open").values(expires_at=0)
        get_database(self.settings).write(lambda c: c.execute(over))

    def _all_began(self) -> bool:
        """Raises at once when a worker could not even begin."""
        for worker in self.workers:
            if worker.process.outcome == "exit 1":
                raise AssertionError(f"{worker.name} did not begin")
        return True

    def died(self, worker: WorkerProcess, seconds: float = 60) -> None:
        """Waits for the death that a crash point brings."""
        self.waits_for(lambda: not worker.process.running, seconds)
        assert worker.process.outcome == "killed by SIGKILL"
        worker.kill()

    @property
    def effects(self) -> list[skills.Effect]:
        return skills.effects(self.place)

    @property
    def output(self) -> str:
        """What all workers printed."""
        return "\n".join(f"--- {worker.name}\n{worker.output}" for worker in self.workers)

    def keeps_its_promises(self) -> None:
        """What holds at the end of every fault test, whatever was broken."""
        with get_database(self.settings).read() as connection:
            faults = broken(connection, GRACE_MS)
        assert not faults, "\n".join(map(str, faults))
        for project in self.projects:
            _tells_once(project)
        twice = {key: n for key, n in skills.counted(self.place, "once", "asked").items() if n > 1}
        assert not twice, f"done more than once: {twice}"

    def dismiss(self) -> None:
        for worker in self.workers:
            worker.kill()


def _tells_once(project: Watched) -> None:
    """No completed step again or out of order, one result for each call, numbers without a gap."""
    trace = project.trace
    assert [line.seq for line in trace] == list(range(1, len(trace) + 1))
    steps: dict[str | None, list[int]] = {}
    results: dict[str | None, list[str]] = {}
    for line in trace:
        if line.kind == "node.completed":
            steps.setdefault(line.run_id, []).append(line.data["step"])
        elif line.kind == "tool.result":
            results.setdefault(line.run_id, []).append(line.data["toolCallId"])
    for run_id, of_run in steps.items():
        assert of_run == sorted(set(of_run)), f"steps of run {run_id}: {of_run}"
    for run_id, calls in results.items():
        assert len(calls) == len(set(calls)), f"results of run {run_id}: {calls}"


class _Worker(WorkerProcess):
    """A worker with the counted skills."""

    def __init__(self, settings: Settings, log: Path, changed: Mapping[str, str], *, curtain: bool) -> None:
        self._curtain = log.with_suffix(".curtain")
        if not curtain:
            self._curtain.touch()
        super().__init__(settings, log, changed, "tests.faults.worker", {"PROOF_GATE": str(self._curtain)})

    def enter(self) -> "_Worker":
        """Begins."""
        self._curtain.touch()
        return self
