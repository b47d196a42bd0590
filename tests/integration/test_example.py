"""The example as a newcomer runs it: a stack of its own, every task done, and figures that are those of the file."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from docx import Document

from tests.weather import EXAMPLE, Row, alter, yearly_means

pytestmark = pytest.mark.slow

OFFICINA = Path(sys.executable).with_name("officina")


@dataclass
class Ran:
    """One `officina up --run ... --yes`, ended."""

    home: Path
    code: int
    printed: str

    @cached_property
    def project(self) -> dict[str, Any]:
        """The only project of this home, as `officina show --json` tells it."""
        (workspace,) = (self.home / "workspaces").iterdir()
        shown = subprocess.run(
            [OFFICINA, "show", workspace.name, "--json"],
            env=_environment(self.home),
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        return dict(json.loads(shown.stdout))

    def deliverable(self, name: str) -> Path:
        """The file under the path that was printed."""
        found = re.search(rf"(\S+/{re.escape(name)})\b", self.printed)
        assert found is not None, self.printed
        return Path(found[1])

    @property
    def brief(self) -> str:
        return self.deliverable("brief.md").read_text(encoding="utf-8")


def _environment(home: Path) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("OFFICINA_")} | {
        "OFFICINA_HOME": str(home)
    }


def run(home: Path, project: Path) -> Ran:
    done = subprocess.run(
        [OFFICINA, "up", "--run", project, "--yes"],
        env=_environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=110,
    )
    return Ran(home, done.returncode, done.stdout)


@pytest.fixture(scope="module")
def ran(short_folder: Path) -> Ran:
    """The example as it ships."""
    return run(short_folder / "example", EXAMPLE / "project.yaml")


def copy(folder: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, folder / "copy"))


def table(brief: str) -> dict[str, str]:
    """Year -> mean temperature, as the table of a brief has them."""
    return dict(re.findall(r"^\| (\d{4}) \| (-?\d+\.\d\d) \|", brief, flags=re.MULTILINE))


def test_it_ends_well_and_says_where_the_brief_lies(ran: Ran) -> None:
    assert ran.code == 0, ran.printed
    assert ran.project["status"] == "completed"
    assert {task["status"] for task in ran.project["tasks"]} == {"completed"}
    assert ran.deliverable("brief.md").is_file()
    assert ran.deliverable("brief.docx").is_file()


def test_it_asks_one_thing_of_a_person(ran: Ran) -> None:
    (signal,) = ran.project["signals"]

    assert signal["action"]["skill"] == "code.execute"


def test_its_tasks_are_many_and_some_of_them_side_by_side(ran: Ran) -> None:
    tasks = {task["key"]: task for task in ran.project["tasks"]}
    side_by_side = [tasks[key] for key in ("years", "seasons", "records", "caption")]

    assert len(tasks) >= 6
    assert max(task["startedAt"] for task in side_by_side) < min(task["endedAt"] for task in side_by_side)


def test_the_yearly_means_in_the_brief_are_those_of_the_file(ran: Ran) -> None:
    assert table(ran.brief) == yearly_means()
    assert list(table(ran.brief)) == ["2012", "2013", "2014", "2015"]


def test_the_brief_says_whose_words_these_are_and_what_it_cannot_tell(ran: Ran) -> None:
    assert "the stand-in spoke for every agent, and no model was asked" in ran.brief
    assert "NOAA" in ran.brief
    assert "What this page cannot tell" in ran.brief


def test_the_editor_lets_no_claim_stand_that_four_years_cannot_carry(ran: Ran) -> None:
    workspace = ran.deliverable("brief.md").parent

    assert "keeps getting warmer" in (workspace / "draft.md").read_text(encoding="utf-8")
    assert "keeps getting" not in ran.brief
    assert "their means are the same" in (workspace / "review.md").read_text(encoding="utf-8")


def test_the_word_document_holds_the_same_table_and_the_chart(ran: Ran) -> None:
    document = Document(str(ran.deliverable("brief.docx")))

    (found,) = document.tables
    rows = [[cell.text for cell in row.cells] for row in found.rows][1:]
    assert {year: mean for year, mean, *_ in rows} == yearly_means()
    assert len(document.inline_shapes) == 1
    assert any("the stand-in spoke" in paragraph.text for paragraph in document.paragraphs)


@pytest.mark.long
def test_another_file_gives_another_brief(short_folder: Path, tmp_path: Path) -> None:
    """A year less, two months gone, gaps here and there, and a last year that is far colder."""
    folder = copy(tmp_path)
    data = folder / "data" / "seattle-weather.csv"

    def change(row: Row) -> Row | None:
        if row["date"].startswith("2012") or row["date"][:7] in ("2013/07", "2014/02"):
            return None
        if row["date"].endswith("/17"):
            row["wind"] = ""
        if row["date"].startswith("2015"):
            row["temp_max"], row["temp_min"] = (f"{float(row[name]) - 7.3:.1f}" for name in ("temp_max", "temp_min"))
        return row

    alter(data, change)

    ran = run(short_folder / "altered", folder / "project.yaml")

    assert ran.code == 0, ran.printed
    assert table(ran.brief) == yearly_means(data)
    assert list(table(ran.brief)) == ["2013", "2014", "2015"]
    assert "From first year to last, Seattle got cooler" in ran.brief
    # 31 + 28 days of two months, and the 17th of 34 others.
    assert "Days missing from the file, or left out for want of a number: 93." in ran.brief
    assert "Wrong numbers" not in ran.brief


@pytest.mark.long
def test_one_year_alone_still_makes_a_brief(short_folder: Path, tmp_path: Path) -> None:
    folder = copy(tmp_path)
    data = folder / "data" / "seattle-weather.csv"
    alter(data, lambda row: row if row["date"].startswith("2014/1") else None)

    ran = run(short_folder / "one", folder / "project.yaml")

    assert ran.code == 0, ran.printed
    assert table(ran.brief) == yearly_means(data)
    assert "One year alone" in ran.brief
