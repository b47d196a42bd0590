"""`make bench` measures and writes what it found. Its numbers are never judged here: they belong to the machine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import measure

ROOT = Path(__file__).parents[2]


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_quick_run_shows_a_table_and_writes_every_figure_with_its_rounds(tmp_path: Path) -> None:
    done = bench("graph", "W2", "W5", "--quick", "--out", str(tmp_path / "results.json"))

    assert done.returncode == 0, done.stderr
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
    word = "holds" if compared["met"] else "MISSED"
    assert f"{word:6} W2: {measure.brief(compared['ratio']['median'])}x, bar < 3x; " in done.stdout


def test_an_unknown_workload_is_wrong_use() -> None:
    done = bench("W99")

    assert done.returncode == 2
    assert "no workload 'W99'; use W1, W2, W5, fair, graph, start" in done.stderr
