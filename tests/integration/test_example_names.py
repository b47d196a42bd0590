"""The example of many agents: three levels of children, and a recommendation that follows from their points."""

import shutil
from pathlib import Path

import pytest

from orchestrator.producer import submit
from tests.projects import Watched
from tests.weather import EXAMPLES


@pytest.mark.long
@pytest.mark.slow
def test_eighty_four_agents_propose_judge_and_recommend(tmp_path: Path, live_settings, worker_process) -> None:
    worker_process(live_settings, WORKER_SLOTS="4").ready()
    folder = shutil.copytree(EXAMPLES / "name-a-product", tmp_path / "example")
    script = folder / "script.yaml"
    script.write_text(script.read_text(encoding="utf-8").replace("delayMs: 60", "delayMs: 0"), encoding="utf-8")

    made = submit(str(folder / "project.yaml"), settings=live_settings)
    project = Watched(live_settings, made.project_id)

    assert project.ended(90) == "completed"
    levels = [project.shown["tasks"][0]["runs"]]
    while levels[-1]:
        levels.append([child for run in levels[-1] for child in run["children"]])
    assert [len(level) for level in levels] == [1, 4, 16, 64, 0]
    written = (Path(project.shown["workspace"]) / "names.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in written if line.startswith("| ")][1:]
    assert len({row[0] for row in rows}) == 16
    points = [[int(cell) for cell in row[1:]] for row in rows]
    assert all(sum(row[:-1]) == row[-1] for row in points)
    assert points == sorted(points, key=lambda row: row[:2], reverse=True), (
        "the best fit first, then the easiest to say"
    )
    assert written[0] == f"# {rows[0][0]}"
