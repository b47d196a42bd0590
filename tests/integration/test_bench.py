"""`make bench` measures and writes what it found. Its numbers are never judged here: they belong to the machine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import measure, picture, projects
from benchmarks.measure import Bar, Figure
from benchmarks.w6_kill import went_back

ROOT = Path(__file__).parents[2]


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_quick_run_shows_a_table_and_writes_every_figure_with_its_rounds(tmp_path: Path) -> None:
    done = bench("graph", "W2", "W5", "--quick", "--out", str(tmp_path / "results.json"))

    assert done.returncode in (0, 1), done.stderr
    found = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert (found["rounds"], found["quick"]) == (3, True)
    assert {figure["workload"] for figure in found["figures"]} == {"graph", "W2", "W5"}
    for figure in found["figures"]:
        assert len(figure["value"]["rounds"]) == 3
        assert 0 < figure["value"]["low"] <= figure["value"]["median"] <= figure["value"]["high"]
    compared = next(f for f in found["figures"] if f["against"] == "chord of 32 no-op jobs")
    assert compared["what"] == "map over 32 items that take no step, fan-out to join"
    assert compared["bar"] == {"most": 3, "of": "ratio"}
    assert compared["met"] is (compared["ratio"]["median"] < 3)
    first = compared["value"]["rounds"][0] / compared["floor"]["rounds"][0]
    assert compared["ratio"]["rounds"][0] == pytest.approx(first)
    assert done.returncode == int(any(figure["met"] is False for figure in found["figures"])), "1: a bar is missed"
    assert (tmp_path / "results.svg").read_text(encoding="utf-8").startswith("<svg ")
    word = "holds" if compared["met"] else "MISSED"
    assert f"{word:6} W2: {measure.brief(compared['ratio']['median'])}x, bar < 3x; " in done.stdout


def test_an_unknown_workload_is_wrong_use() -> None:
    done = bench("W99")

    assert done.returncode == 2
    assert "no workload 'W99'; use W1, W2, W3, W4, W5, W6, W7, W8, W9, fair, graph, start" in done.stderr


def test_the_picture_shows_every_figure_with_a_bar_as_a_share_of_it() -> None:
    held = Figure("W0", "a <small> thing", "ms", [2.0, 1.0, 3.0], "nothing", [2.0, 2.0, 2.0], Bar(2))
    missed = Figure("W0", "another", "MB", [900.0], bar=Bar(400, "value"))

    drawn = picture.draw([held, missed, Figure("W0", "without a bar", "ms", [1.0])])

    assert "W0: a &lt;small&gt; thing" in drawn and "without a bar" not in drawn
    assert "1x (&lt; 2x)" in drawn and "900 MB (&lt; 400)" in drawn
    assert drawn.count(picture.HOLDS) == drawn.count(picture.MISSED) == 1


def test_a_conversation_that_goes_back_has_lost_a_completed_step() -> None:
    cut_off = [("a", 0), ("b", 0), ("a", 1), ("a", 1), ("b", 1)]

    assert went_back(cut_off) == 0, "a call that was cut off is asked again"
    assert went_back([*cut_off, ("a", 0), ("a", 1), ("a", 2)]) == 1


def test_the_plan_of_w3_is_the_same_every_time_and_every_task_waits_for_three() -> None:
    plan = projects.layers(10, 100)

    assert plan == projects.layers(10, 100) and len(plan) == 1_000
    assert {len(after) for key, after in plan.items()} == {0, 3}
    assert all(one in plan for after in plan.values() for one in after)
