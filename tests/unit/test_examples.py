"""The examples as files: each is a project that submit takes, and the program that asks to run computes what is so."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from registry import presets
from registry.graph.checks.known import Registries
from registry.packs import PACKS
from registry.projects.reading import Project, read_project
from registry.skills import catalogue
from tests.weather import DATA, EXAMPLE, EXAMPLES, alter, read, write, yearly_means

PRESETS = presets.load([presets.SHIPPED])
PROJECTS = sorted(EXAMPLES.glob("*/project.*"))


def project(file: Path) -> Project:
    skills = frozenset(skill.name for skill in catalogue.catalogue())
    return read_project(file, Registries(skills=skills, documents=frozenset(), agents=PRESETS.cards))


def tools(agent: str | None) -> set[str]:
    """What the packs of those presets bring whom the agent of a task, a preset, may hand the task over to."""
    if agent not in PRESETS:
        return set()
    return {tool for preset in PRESETS.values() for name in preset.agent.packs for tool in PACKS[name].tool_names}


@pytest.mark.parametrize("file", PROJECTS, ids=lambda file: file.parent.name)
def test_every_example_is_a_project_that_submit_takes(file: Path) -> None:
    assert project(file).file.tasks


@pytest.mark.parametrize("file", PROJECTS, ids=lambda file: file.parent.name)
def test_every_script_knows_each_task_and_calls_only_what_the_task_may_use(file: Path) -> None:
    found = project(file)
    assert found.script is not None
    assert found.script.tasks.keys() == {task.key for task in found.file.tasks}

    for task in found.file.tasks:
        called = {call.name for turn in found.script.tasks[task.key] for call in turn.calls}
        assert called <= set(task.skills) | tools(task.agent), task.key
        assert not found.script.tasks[task.key][-1].calls, f"{task.key} never ends"


def test_the_example_asks_a_person_once() -> None:
    found = project(EXAMPLE / "project.yaml")
    assert found.script is not None

    calls = [call for turns in found.script.tasks.values() for turn in turns for call in turn.calls]
    operations = {skill.name: skill.operations for skill in catalogue.catalogue()}
    world = {name for name, found in operations.items() if callable(found) or "world" in found}

    assert [call.name for call in calls if call.name in world] == ["code.execute"]


def test_no_figure_of_the_weather_is_typed_into_the_script() -> None:
    script = (EXAMPLE / "script.yaml").read_text(encoding="utf-8")

    assert [mean for mean in yearly_means().values() if mean in script] == []
    assert [year for year in yearly_means() if year in script] == []


# The program of the task `figures`, run here as the sandbox runs it there.

Weather = Callable[[Callable[[Path], None]], subprocess.CompletedProcess[str]]


@pytest.fixture
def compute(tmp_path: Path) -> Weather:
    """Runs the program over a copy of the data that a function was let loose on."""

    def run(change: Callable[[Path], None] = lambda path: None) -> subprocess.CompletedProcess[str]:
        data = tmp_path / "in" / "inputs" / "seattle-weather.csv"
        data.parent.mkdir(parents=True)
        shutil.copy(DATA, data)
        change(data)
        (tmp_path / "program.py").write_text(program(), encoding="utf-8")
        return subprocess.run(
            [sys.executable, "-I", "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )

    return run


def program() -> str:
    script = project(EXAMPLE / "project.yaml").script
    assert script is not None
    (code,) = [
        call.args["code"]
        for turn in script.tasks["figures"]
        for call in turn.calls
        if call.name == "code.execute" and isinstance(call.args["code"], str)
    ]
    return code


def table(folder: Path, name: str) -> list[dict[str, str]]:
    return read(folder / "out" / "data" / f"{name}.csv")


def test_the_yearly_means_are_those_of_the_file(compute: Weather, tmp_path: Path) -> None:
    assert compute(lambda path: None).returncode == 0

    assert {row["year"]: row["mean_temp"] for row in table(tmp_path, "years")} == yearly_means()
    assert [len(table(tmp_path, name)) for name in ("years", "months", "seasons", "records")] == [4, 48, 12, 4]


def test_each_record_is_a_line_of_the_file(compute: Weather, tmp_path: Path) -> None:
    compute(lambda path: None)

    days = {row["date"]: row for row in read()}
    column = {"°C": ("temp_max", "temp_min"), "mm": ("precipitation",), "m/s": ("wind",)}
    for record in table(tmp_path, "records"):
        assert record["value"] in [days[record["date"]][name] for name in column[record["unit"]]]


def test_rows_that_lack_a_number_are_left_out_and_counted(compute: Weather, tmp_path: Path) -> None:
    def spoil(path: Path) -> None:
        rows = read(path)
        rows[0]["temp_max"], rows[1]["wind"], rows[2]["precipitation"] = "", "n/a", "nan"
        del rows[1000]
        write(path, rows)

    said = compute(spoil)

    assert "1457 days from 2012-01-04 to 2015-12-31; 1 days between have no complete row" in said.stdout
    (coverage,) = table(tmp_path, "coverage")
    assert {name: coverage[name] for name in ("days", "missing", "incomplete")} == {
        "days": "1457",
        "missing": "1",
        "incomplete": "3",
    }


def test_a_month_without_days_is_no_row_and_a_gap_in_the_chart(compute: Weather, tmp_path: Path) -> None:
    said = compute(lambda path: alter(path, lambda row: None if row["date"].startswith("2013/07") else row))

    assert said.returncode == 0, said.stderr
    assert len(table(tmp_path, "months")) == 47
    assert (tmp_path / "out" / "chart.png").is_file()


@pytest.mark.parametrize("kept", ["2014", "2014/02", "2014/02/03"])
def test_little_data_is_enough(kept: str, compute: Weather, tmp_path: Path) -> None:
    said = compute(lambda path: alter(path, lambda row: row if row["date"].startswith(kept) else None))

    assert said.returncode == 0, said.stderr
    assert [row["year"] for row in table(tmp_path, "years")] == ["2014"]


def test_a_file_without_a_single_complete_day_is_refused_in_words(compute: Weather, tmp_path: Path) -> None:
    def empty(path: Path) -> None:
        path.write_text("date,temp\n2014/01/01,5\n", encoding="utf-8")

    said = compute(empty)

    assert said.returncode == 1
    assert said.stderr.strip() == "the file holds no complete day; nothing was computed"
    assert not (tmp_path / "out").exists()


def test_the_chart_is_a_whole_picture_in_the_colours_of_its_legend(compute: Weather, tmp_path: Path) -> None:
    compute(lambda path: None)

    with Image.open(tmp_path / "out" / "chart.png") as picture:
        assert (picture.format, picture.width, picture.height) == ("PNG", 1600, 700)
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 20) or []}
    assert {(213, 94, 0), (0, 114, 178), (86, 180, 233), (255, 255, 255)} <= colours
