"""The command `officina`: what it prints, where, and how it exits."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.settings import Settings
from tests.commands import Run
from tests.rows import BEGAN, CODE, Project

#: None of these is needed to explain the commands.
HEAVY = ("sqlalchemy", "celery", "rich", "openai", "kombu", "redis", "alembic", "pydantic_settings", "jinja2", "docx")


def test_help_names_the_commands_and_imports_nothing_heavy(home_environment: dict[str, str]) -> None:
    program = (
        "import sys; sys.argv = ['officina', '--help']\n"
        "from workers.cli import main\n"
        "try: main()\n"
        f"finally: print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=home_environment
    )
    assert ended.returncode == 0
    assert "HEAVY []" in ended.stdout
    commands = ("submit", "show", "list", "trace", "watch", "cancel", "retry", "signals", "answer", "graph", "db", "up")
    for command in (*commands, "repair", "worker", "doctor", "skills"):
        assert re.search(rf"^  {command} ", ended.stdout, re.MULTILINE), command


def test_every_command_explains_itself(officina: Run) -> None:
    from typer.main import get_command

    from orchestrator.cli import application

    for name, command in get_command(application()).commands.items():  # type: ignore[attr-defined]
        assert command.help, name
    assert officina("submit", "--help").returncode == 0


def test_the_installed_command_runs(installed: Run) -> None:
    ended = installed("--version")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", ended.stdout)


PLAN = """
title: Two steps
brief: One after the other
tasks:
  - {key: first, role: analyst, instruction: Begin}
  - {key: second, role: writer, instruction: End, dependsOn: [first]}
"""


def test_submit_stores_a_project_on_a_fresh_machine_and_prints_its_id(officina: Run, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    ended = officina("submit", "plan.yaml", "--rehearse")
    assert ended.returncode == 0, ended.stderr
    shown = json.loads(officina("show", ended.stdout.strip(), "--json").stdout)
    assert [(task["key"], task["status"]) for task in shown["tasks"]] == [("first", "queued"), ("second", "pending")]


def test_submit_with_a_used_key_gives_the_same_project(officina: Run, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    first, second = (officina("submit", "plan.yaml", "--rehearse", "--key", "k", "--json") for _ in range(2))
    assert list(json.loads(first.stdout)) == ["id", "status", "tasks"]
    assert json.loads(first.stdout)["tasks"].keys() == {"first", "second"}
    assert second.stdout == first.stdout
    assert "was there already" in second.stderr
    (tmp_path / "plan.yaml").write_text(PLAN.replace("End", "Ende"))
    third = officina("submit", "plan.yaml", "--rehearse", "--key", "k")
    assert (third.returncode, third.stdout) == (2, "")
    assert "key_conflict" in third.stderr


def test_submit_names_every_fault_with_its_path_and_writes_nothing(officina: Run, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN.replace("dependsOn: [first]", "dependsOn: [frist], skills: [no.such]"))
    ended = officina("submit", "plan.yaml", "--rehearse")
    assert (ended.returncode, ended.stdout) == (2, "")
    faults = [line.split(": ")[:2] for line in ended.stderr.splitlines()]
    assert ["tasks[1].skills[0]", "unknown_skill"] in faults
    assert "tasks[1].dependsOn[0]" in [path for path, _ in faults]
    assert not (tmp_path / "home").exists()


def test_show_prints_everything_as_one_json_object(officina: Run, project: Project) -> None:
    ended = officina("show", project.id[:20], "--json")
    assert ended.returncode == 0, ended.stderr
    (line,) = ended.stdout.splitlines()
    shown = json.loads(line)
    assert shown["id"] == project.id
    assert [task["status"] for task in shown["tasks"]][:3] == ["completed", "running", "needs_input"]


def test_show_prints_a_page_for_people(officina: Run, project: Project) -> None:
    asked = project.signal("yearly")
    shown = officina("show", project.id).stdout
    for words in (
        "Seattle weather 2012-2015",
        "1 of 6 tasks",
        "needs you",
        "1,461 days, no gaps",
        "1.8 kB",
        project.id,
    ):
        assert words in shown, words
    assert f'officina answer {asked} "Do it"' in shown
    assert "\x1b" not in shown


def test_output_fits_a_terminal_that_cannot_write_unicode(installed: Run, settings: Settings) -> None:
    project = Project(settings, title="Größe 中")
    project.task("one")
    page = installed("show", project.id, PYTHONIOENCODING="ascii", LC_ALL="C")
    assert page.returncode == 0 and page.stdout.isascii()
    found = installed("show", project.id, "--json", PYTHONIOENCODING="ascii", LC_ALL="C")
    assert json.loads(found.stdout)["title"] == "Größe 中"


def test_list_shows_projects(officina: Run, project: Project) -> None:
    assert json.loads(officina("list", "--json").stdout)[0]["id"] == project.id
    assert project.id in officina("list").stdout
    assert officina("list", "--status", "failed").stdout.startswith("no projects")


def test_signals_show_exactly_what_would_run(officina: Run, project: Project) -> None:
    asked = project.signal("yearly")
    (found,) = json.loads(officina("signals", "--json").stdout)
    assert (found["id"], found["action"]["input"]["code"]) == (asked, CODE)
    for words in (["show", asked], ["show", asked[-6:]]):
        page = officina("signals", *words).stdout
        assert "rows = list(csv.DictReader(open('in/seattle-weather.csv')))" in page
        assert f'officina answer {asked} "Do it"' in page
    assert json.loads(officina("signals", "show", asked, "--json").stdout) == found


def test_signals_are_a_line_each_however_much_they_would_run(officina: Run, project: Project) -> None:
    asked = [project.signal("yearly", call_id=f"c{n}", created_at=BEGAN + n) for n in range(3)]
    lines = officina("signals").stdout.splitlines()
    assert lines[0].split() == ["id", "waits", "from", "wants"]
    assert [line.split()[0] for line in lines[1:4]] == [one[-8:] for one in asked]
    for line in lines[1:4]:
        assert re.search(r"Seattle weather 2012-2015 / yearly +code\.execute +\{\"language\":", line), line
    assert lines[4].startswith("whole: officina signals show ID") and len(lines) == 5
    assert len(officina("signals", "--limit", "1").stdout.splitlines()) == 3
    whole = officina("signals", "--full").stdout
    assert all(f'officina answer {one} "Do it"' in whole for one in asked)
    assert whole.count("rows = list(csv.DictReader(open('in/seattle-weather.csv')))") == 3


def test_what_a_model_wrote_cannot_redraw_the_page(officina: Run, project: Project) -> None:
    bad = {"toolCallId": "c", "skill": "code.execute", "input": {"code": "print(1)\u202e # \x1b[2Jharmless"}}
    asked = project.signal("yearly", action=bad, reason="\x1b]0;title\x07", agent_name="Bo\u200bb")
    for words in (["signals"], ["signals", "show", asked], ["show", project.id]):
        page = officina(*words).stdout
        assert not set("\u202e\x1b\x07\u200b") & set(page)
    assert "⟦U+202E⟧" in officina("signals", "show", asked).stdout


def test_a_notice_is_dismissed_and_a_question_is_not(officina: Run, project: Project) -> None:
    told = project.signal("yearly", kind="notice", action=None, options=[], title="All is well")
    asked = project.signal("yearly")
    ended = officina("signals", "dismiss", told)
    assert (ended.returncode, ended.stdout) == (0, f"{told} dismissed\n")
    assert officina("signals", "dismiss", told).stderr.startswith("already_answered: ")
    assert officina("signals", "dismiss", asked).stderr.startswith("not_dismissible: ")
    assert [one["id"] for one in json.loads(officina("signals", "--json").stdout)] == [asked]


def test_what_may_have_happened_is_shown_and_repaired_once(officina: Run, project: Project) -> None:
    run = project.run_ids["monthly"]
    project.call("monthly", "c1", outcome="unknown")
    page = officina("show", project.id).stdout
    assert "files.write, by Nadia Kest: its run went on without it" in page
    assert f"officina repair {run} --result JSON | --retry | --skip" in page
    assert [one["callId"] for one in json.loads(officina("show", project.id, "--json").stdout)["unknown"]] == ["c1"]

    ended = officina("repair", run, "--result", '{"path": "a.md"}', "--why", "the file is there")
    assert (ended.returncode, ended.stdout) == (0, "files.write (c1) is done, with that result\n"), ended.stderr
    assert officina("repair", run, "--skip").stderr.startswith("not_unknown: ")
    assert "says it happened: the file is there" in officina("trace", project.id).stdout
    assert "May have happened" not in officina("show", project.id).stdout


@pytest.mark.parametrize("words", [[], ["--retry", "--skip"], ["--result", "no json"]])
def test_a_repair_that_says_nothing_clear_is_wrong_use(words: list[str], officina: Run, project: Project) -> None:
    project.call("monthly", "c1", outcome="unknown")
    assert officina("repair", project.run_ids["monthly"], *words).returncode == 2


def test_an_answer_counts_once(officina: Run, project: Project) -> None:
    asked = project.signal("yearly", expires_at=4_000_000_000_000)
    first = officina("answer", asked, "Do it")
    assert (first.returncode, first.stdout) == (0, f"{asked} answered\n"), first.stderr
    second = officina("answer", asked, "No")
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr.startswith("already_answered: ")
    assert json.loads(officina("signals", "--json").stdout) == []


def test_an_answer_that_fits_nothing_changes_nothing(officina: Run, project: Project) -> None:
    asked = project.signal("yearly", expires_at=4_000_000_000_000)
    for words in (["Perhaps"], ["--payload", '{"yes": 1}']):
        ended = officina("answer", asked, *words)
        assert (ended.returncode, ended.stdout) == (1, "")
        assert ended.stderr.startswith("resume_validation_failed: ")
    assert len(json.loads(officina("signals", "--json").stdout)) == 1


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["show", "01a22d1e-0000"], 1, "unknown_project: "),
        (["show", "\x1b[31m"], 1, "unknown_project: "),
        (["retry", "01a22d1e-0000"], 1, "unknown_task: "),
        (["cancel", "01a22d1e-0000"], 1, "unknown_project: "),
        (["trace", "01a22d1e-0000"], 1, "unknown_project: "),
        (["answer", "01a22d1e-0000", "No"], 1, "unknown_signal: "),
        (["answer", "01a22d1e-0000"], 2, "answer_shape: "),
        (["answer", "01a22d1e-0000", "--payload", "{"], 2, "--payload: invalid_json: "),
        (["list", "--limit", "0"], 2, "Usage: "),
        (["list", "--status", "nope"], 2, "Usage: "),
        (["nonsense"], 2, "Usage: "),
        (["skills", "show", "no.such"], 1, "unknown_skill: "),
    ],
)
def test_a_fault_is_a_line_on_standard_error_and_an_exit_code(
    officina: Run, project: Project, words: list[str], code: int, says: str
) -> None:
    ended = officina(*words)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert ended.stderr.startswith(says), ended.stderr
    assert "Traceback" not in ended.stderr
    assert not says.endswith(": ") or says == "Usage: " or len(ended.stderr.splitlines()) == 1
    assert "\x1b" not in ended.stderr


def test_a_traceback_comes_when_it_is_asked_for(officina: Run, project: Project) -> None:
    assert "Traceback" in officina("show", "01a22d1e-0000", OFFICINA_DEBUG="1").stderr


def test_looking_makes_no_database(officina: Run, tmp_path: Path) -> None:
    for words in (["list"], ["signals"], ["doctor"], ["show", "01a22d1e-0000"]):
        officina(*words)
    assert not (tmp_path / "home").exists()


def test_a_database_of_another_release_is_named_with_its_remedy(officina: Run, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "officina.db").touch()
    ended = officina("list")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "run `officina db upgrade`" in ended.stderr
    assert officina("db", "upgrade").returncode == 0
    assert officina("list").returncode == 0


def test_a_setting_that_cannot_be_is_named(officina: Run) -> None:
    ended = officina("list", OFFICINA_WORKER_SLOTS="many", OFFICINA_LIMITS__LEASE_S="-1")
    assert ended.returncode == 2
    assert {line.partition(":")[0] for line in ended.stderr.splitlines()} == {
        "OFFICINA_WORKER_SLOTS",
        "OFFICINA_LIMITS__LEASE_S",
    }


def test_a_database_out_of_reach_is_one_line(officina: Run) -> None:
    ended = officina("list", OFFICINA_DATABASE_URL="postgresql+psycopg://u:hunter2@127.0.0.1:1/x")
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1 and "hunter2" not in ended.stderr


def test_show_draws_the_children_of_a_task_that_waits_for_them(officina: Run, settings: Settings) -> None:
    project = Project(settings)
    project.task("one", "waiting", run={"waiting_on": "children", "steps": 3})
    facts = {"parent_id": project.run_ids["one"], "parent_step": 3, "kind": "spawn", "depth": 1, "node_id": "think"}
    for position, status in enumerate(["completed", "running", "queued"]):
        project.run("one", status, position=position, steps=position, **facts)

    shown = officina("show", project.id).stdout

    assert "1 of 3 children done" in shown
    assert re.search(r"↳ 1: Nadia Kest +running +at think, 1 step *\n", shown)
    (tree,) = json.loads(officina("show", project.id, "--json").stdout)["tasks"][0]["runs"]
    assert [child["status"] for child in tree["children"]] == ["completed", "running", "queued"]
