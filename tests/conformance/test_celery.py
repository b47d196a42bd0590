"""The cases on real Celery workers with Redis: as they are, and with a worker killed after every checkpoint."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import queue
from orchestrator.settings import Settings
from orchestrator.stack.environment import child_environment
from orchestrator.stack.processes import Process
from orchestrator.states import RUN_ENDED
from tests.conformance.casebook import after_deaths, cases, long_unless, runtime_ids, slots_of
from tests.conformance.looking import faults
from tests.conformance.performance import ROOT, Performance
from tests.support import eventually
from workers.commands.worker import worker_command

#: Cases that `make test` performs with deaths; `make test-crash` performs all, with and without.
SAMPLE = ("R15",)
#: Turns of a script go to whichever child asks first. In a queue, an item whose worker died stands behind its siblings.
BY_TURN = {"R18": ("output.results[1].output.content", "output.results[2].output", "output.results[2].error.code")}
POINTS = "checkpoint=1,parked=1,ended=1"


class Company:
    """Celery workers that perform one case, one after the other."""

    def __init__(self, settings: Settings, case_id: str, folder: Path) -> None:
        self.performance = Performance(settings, case_id, folder / "outside")
        self.deaths = 0
        self._settings, self._folder = settings, folder
        self._worker: Process | None = None

    def carry(self, armed: str = "") -> None:
        """Waits until the run parks or ends; whenever the worker has died there is a new one."""
        if self._worker is None:
            self.hire(armed)
            queue.advance(self._settings, self.performance.plan.id, "a case")
        eventually(lambda: self._rests(armed), 200, every=0.05)

    def hire(self, armed: str) -> None:
        command = [
            "tests.conformance.celery_worker" if word == "workers.commands.child" else word
            for word in worker_command(
                self._settings, name=f"case-{self.deaths}", slots=slots_of(self.performance.case_id)
            )
        ]
        environment = child_environment(self._settings) | {
            "PYTHONPATH": str(ROOT),
            "CASE_ID": self.performance.case_id,
            "CASE_OUTSIDE": str(self.performance.folder),
            "OFFICINA_CRASHPOINTS": armed,
            "OFFICINA_LIMITS__CLOCK_TICK_S": "0.1",
        }
        self._worker = Process(command, log=self._folder / f"worker-{self.deaths}.log", env=environment)

    def last_death(self) -> None:
        """Waits for the death that is due after the end of a run: the end can be seen before it."""
        assert self._worker is not None
        eventually(lambda: self._worker is not None and not self._worker.running, 20, every=0.05)
        self.deaths += 1

    def dismiss(self) -> None:
        if self._worker is not None:
            self._worker.kill()

    def _rests(self, armed: str) -> bool:
        assert self._worker is not None
        if not self._worker.running:
            self.deaths += 1
            self.performance.bury()
            self.hire(armed)
            return False
        run = self.performance.root
        asleep = run.status == "waiting" and run.waiting_on != "children" and run.due_at != 0
        return run.status in RUN_ENDED or run.status == "needs_input" or asleep


@pytest.fixture
def company(request: pytest.FixtureRequest, live_settings: Settings, tmp_path: Path) -> Iterator[Company]:
    made = Company(live_settings, request.node.callspec.params["case_id"], tmp_path)
    yield made
    made.dismiss()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("case_id", long_unless(SAMPLE))
def test_a_case_on_celery(company: Company, case_id: str) -> None:
    report = company.performance.play(company.carry)

    assert not faults(report, cases("runtime")[case_id]["expect"])
    assert company.deaths == 0


@pytest.mark.long
@pytest.mark.timeout(600)  # each death is the start of a worker
@pytest.mark.parametrize("case_id", runtime_ids())
def test_a_case_on_celery_with_a_death_after_every_checkpoint(company: Company, case_id: str) -> None:
    report = company.performance.play(lambda: company.carry(POINTS))

    if not company.deaths:
        company.last_death()
    expect = after_deaths(cases("runtime")[case_id])
    assert not faults(report, {path: want for path, want in expect.items() if path not in BY_TURN.get(case_id, ())})
    effects = [call for call, _ in company.performance.outside.effects]
    assert len(effects) == len(set(effects))
    assert company.deaths > 0
