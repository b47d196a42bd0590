"""Every runtime case on worker processes that die: before anything, after each checkpoint, at each park and end."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestrator.settings import Settings
from tests.conformance.casebook import after_deaths, cases, long_unless, runtime_ids, slots_of
from tests.conformance.looking import faults
from tests.conformance.performance import Nursery, Performance

#: Cases that `make test` performs; `make test-crash` performs all.
SAMPLE = ("R01", "R11", "R15", "R24", "D01", "D03")


class Troupe:
    """Performs a case in lives, one after the other."""

    def __init__(self, nursery: Nursery, settings: Settings, case_id: str, folder: Path) -> None:
        self.performance = Performance(settings, case_id, folder)
        self.deaths: list[str] = []
        self.hits: dict[str, int] = {}
        self._nursery, self._settings = nursery, settings
        self._slots = slots_of(case_id)

    def life(self, **armed: int) -> dict[str, Any]:
        ended = self._nursery.life(
            case=self.performance.case_id,
            outside=str(self.performance.folder),
            settings={"home": str(self._settings.home), "database_url": self._settings.database_url},
            slots=self._slots,
            armed=armed,
        )
        assert ended.get("exit", 0) == 0, "a life ended by an error; see its log"
        for point, count in ended["hits"].items():
            self.hits[point] = self.hits.get(point, 0) + count
        if "signal" in ended:
            assert ended["signal"] == 9
            self.deaths.append(",".join(armed))
            self.performance.bury()
        return ended

    def whole(self) -> None:
        """Carries on without a death."""
        self.life(checkpoint=0, parked=0, ended=0)

    def dying(self, *points: str) -> None:
        """Carries on, and dies at the first of these points in every life, until a life comes to its own end."""
        while "signal" in self.life(**dict.fromkeys(points, 1)) and self.performance.at_work:
            pass

    def dying_once(self, point: str, count: int) -> None:
        """Carries on, and dies once: at the nth time that any life comes to the point."""
        left = count - self.hits.get(point, 0)
        if (
            left > 0
            and not self.deaths
            and ("signal" not in self.life(**{point: left}) or not self.performance.at_work)
        ):
            return
        self.whole()


def check(troupe: Troupe, report: dict[str, Any]) -> None:
    case = cases("runtime")[troupe.performance.case_id]
    assert not faults(report, after_deaths(case) if troupe.deaths else case["expect"])
    trace = troupe.performance.plan.trace
    assert [line.seq for line in trace] == list(range(1, len(trace) + 1))
    calls = [call for call, _ in troupe.performance.outside.effects]
    assert len(calls) == len(set(calls)), "no effect happened twice"


@pytest.mark.parametrize("case_id", long_unless(SAMPLE))
def test_a_case_on_a_worker(nursery: Nursery, stage_settings: Settings, tmp_path: Path, case_id: str) -> None:
    troupe = Troupe(nursery, stage_settings, case_id, tmp_path / "outside")

    report = troupe.performance.play(troupe.whole)

    check(troupe, report)


@pytest.mark.parametrize("case_id", long_unless(SAMPLE))
def test_a_case_whose_worker_dies_after_every_checkpoint(
    nursery: Nursery, stage_settings: Settings, tmp_path: Path, case_id: str
) -> None:
    troupe = Troupe(nursery, stage_settings, case_id, tmp_path / "outside")

    report = troupe.performance.play(lambda: troupe.dying("checkpoint", "parked", "ended"))

    check(troupe, report)
    assert troupe.deaths, "every case has an end, at least"


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case_id", runtime_ids())
def test_a_case_whose_worker_dies_once_after_any_checkpoint(
    nursery: Nursery, stage_settings: Settings, tmp_path: Path, case_id: str
) -> None:
    calm = Troupe(nursery, stage_settings, case_id, tmp_path / "calm")
    calm.performance.play(calm.whole)

    for point, times in calm.hits.items():
        for count in range(1, times + 1):
            troupe = Troupe(nursery, stage_settings, case_id, tmp_path / f"{point}-{count}")
            report = troupe.performance.play(partial(troupe.dying_once, point, count))
            check(troupe, report)
            assert troupe.deaths == [point]


#: Deaths around a call: it may have happened, and nobody knows.
AROUND_CALLS = ("begun", "acted", "noted", "claimed", "told")
SHORT = (("D01", "begun"), ("D01", "acted"))


@pytest.mark.parametrize(
    ("case_id", "point"),
    [
        (case_id, point) if (case_id, point) in SHORT else pytest.param(case_id, point, marks=pytest.mark.long)
        for case_id in runtime_ids()
        for point in AROUND_CALLS
    ],
)
def test_whenever_a_worker_dies_a_run_ends_and_no_call_is_silently_repeated(
    nursery: Nursery, stage_settings: Settings, tmp_path: Path, case_id: str, point: str
) -> None:
    expect = cases("runtime")[case_id]["expect"]
    calm = Troupe(nursery, stage_settings, case_id, tmp_path / "calm")
    calm.performance.play(calm.whole)
    count = 1
    while True:
        troupe = Troupe(nursery, stage_settings, case_id, tmp_path / f"{point}-{count}")
        report = troupe.performance.play(partial(troupe.dying_once, point, count))
        if not troupe.deaths:
            return
        asked_again = [s for s in report["interrupts"] if "may have happened" in (s.get("reason") or "")]
        assert report["status"] == expect.get("status", report["status"]) or asked_again
        results = [line["data"] for line in report["events"] if line["kind"] == "tool.result"]
        assert len({r["toolCallId"] for r in results}) == len(results), "one result for each call"
        calls = [call for call, _ in troupe.performance.outside.effects]
        assert len(calls) == len(set(calls)) <= len(calm.performance.outside.effects), "no effect happened twice"
        if point == "claimed":
            check(troupe, report)
        count += 1
