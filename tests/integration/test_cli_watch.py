"""`officina trace` and `officina watch`, in a pipe and on a terminal."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.records import Event
from orchestrator.settings import Settings
from orchestrator.store.tables import projects, tasks
from orchestrator.terminal.scene import Scene
from orchestrator.watch import Hear, Rows, look
from registry.errors import Unavailable
from tests.commands import OFFICINA, Run
from tests.rows import BEGAN, Project
from tests.support import eventually
from tests.terminal import Terminal


def test_trace_prints_a_json_line_an_event_or_a_line_for_people(officina: Run, project: Project) -> None:
    lines = officina("trace", project.id, "--json").stdout.splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["seq"] for event in events] == [1, 2, 3]
    assert events[0] == {
        "seq": 1,
        "at": BEGAN,
        "kind": "run.started",
        "projectId": project.id,
        "taskId": project.task_ids["monthly"],
        "runId": project.run_ids["monthly"],
        "agentId": "nadia",
        "data": {"attempt": 1, "depth": 0},
    }
    told = officina("trace", project.id, "--after", "1", "--task", "monthly").stdout.splitlines()
    assert len(told) == 2
    assert re.match(r" +2  09:00:00\.000  monthly +Nadia Kest +think +stand-in.*\(stand-in\)$", told[0])


def test_trace_follows_to_the_end_of_the_project(officina: Run, project: Project) -> None:
    project.event("project.status", {"status": "completed", "from": "running"})
    project.set(projects, project.id, status="completed")
    assert len(officina("trace", project.id, "--json", "--follow").stdout.splitlines()) == 4


def test_a_reader_that_leaves_early_causes_no_traceback(
    home_environment: dict[str, str], tmp_path: Path, project: Project
) -> None:
    command = f"{OFFICINA} trace {project.id} --json | head -n 1"
    ended = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=False, env=home_environment, cwd=tmp_path
    )
    assert len(ended.stdout.splitlines()) == 1
    assert "Traceback" not in ended.stderr


def test_watch_without_a_terminal_prints_lines_and_ends_with_the_project(officina: Run, project: Project) -> None:
    project.event("task.status", {"status": "completed", "from": "running"}, "monthly")
    project.event("project.status", {"status": "completed", "from": "running"})
    project.set(projects, project.id, status="completed", ended_at=BEGAN + 20_000)
    ended = officina("watch", project.id)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert "09:00:00  monthly           completed" in lines
    assert "09:00:00  project           completed" in lines
    assert lines[-1] == "completed: 1 of 6 tasks, 0.0123 USD, 20 s"
    assert any(line.endswith("/profile.md  1.8 kB") for line in lines)
    assert "\x1b" not in ended.stdout


def test_watch_of_a_project_that_did_not_complete_exits_with_1(officina: Run, project: Project) -> None:
    project.set(projects, project.id, status="partial", ended_at=BEGAN + 20_000)
    assert officina("watch", project.id, "--plain").returncode == 1


Open = Callable[..., Terminal]


@pytest.fixture
def terminal(home_environment: dict[str, str], tmp_path: Path) -> Iterator[Open]:
    """`officina` with these words on a terminal of its own."""
    opened: list[Terminal] = []

    def run(*words: str, **more: Any) -> Terminal:
        opened.append(Terminal([OFFICINA, *words], home_environment, tmp_path, **more))
        return opened[-1]

    yield run
    for one in opened:
        one.close()


def asks(project: Project, **columns: Any) -> str:
    """Makes the run of the yearly figures ask; gives the signal's id."""
    asked = project.signal("yearly", expires_at=4_000_000_000_000, **columns)
    project.event("run.parked", {"status": "needs_input", "on": "signals"}, "yearly")
    project.event("signal.raised", {"signalId": asked, "signalKind": "decision", "title": "t"}, "yearly")
    return asked


def answered(officina: Run) -> list[tuple[Any, Any]]:
    found = json.loads(officina("signals", "--all", "--json").stdout)
    return [(one["answer"], one["answeredBy"]) for one in found]


def test_watch_on_a_terminal_draws_a_page_and_leaves_the_end_on_it(terminal: Open, project: Project) -> None:
    watch = terminal("watch", project.id)
    watch.sees("math.evaluate and 1 more")
    project.event("run.failed", {"code": "model_failed", "message": "429"}, "monthly")
    project.set(tasks, project.task_ids["monthly"], status="failed", error={"code": "model_failed", "message": "429"})
    project.event("project.status", {"status": "partial", "from": "running"})
    project.set(projects, project.id, status="partial", ended_at=BEGAN + 20_000)
    assert watch.end() == 1
    assert "Deliverables" in watch.shown and "1.8 kB  home/workspaces" in watch.shown
    assert "Monthly figures: model_failed: 429" in watch.shown
    assert f"again: officina retry {project.task_ids['monthly']}" in watch.shown
    assert "partial: 0.0123 USD in 20 s" in watch.shown
    assert watch.cooked() and b"\x1b[?25h" in watch.raw, "the terminal is left as it was, with its cursor"


def test_keys_turn_the_views_and_an_answer_is_given_with_one(terminal: Open, officina: Run, project: Project) -> None:
    asks(project)
    watch = terminal("watch", project.id, lines=50)
    watch.sees("6 shows exactly what would run")
    assert "d Do it" not in watch.lines[-1], "no key answers what is not shown"
    for key, words in (
        ("2", "needs you: waits for you about code.execute for"),
        ("3", "[3 runs]"),
        ("\t", "? waits for you"),
        ("5", "signal.raised"),
        ("f", "6 questions (1)   model"),
        ("6", "rows = list(csv.DictReader(open('in/seattle-weather.csv')))"),
    ):
        watch.type(key)
        watch.sees(words)
    watch.sees("d" * 64)
    watch.sees("Nadia Kest, in the task 'Yearly figures'")
    # Struck before anybody can have read it, it is no answer: the first that comes late enough is.
    eventually(lambda: (watch.type("d"), "nothing waits for you" in watch.shown)[1] or None, 20)
    assert answered(officina) == [({"approved": True}, "local")]
    watch.type("q")
    assert watch.end() == 130
    assert "the project goes on without you" in watch.shown
    assert watch.cooked()


def test_an_answer_can_be_typed(terminal: Open, officina: Run, project: Project) -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    asks(project, kind="question", title="Which year?", options=[], action=None, schema=schema)
    watch = terminal("watch", project.id)
    watch.sees("1-6 Tab view")
    watch.type("6")
    watch.sees("Which year?")
    eventually(lambda: (watch.type("d"), "w shows its choices" in watch.shown)[1] or None, 20)
    watch.type("w")
    watch.sees("(empty: later)")
    watch.type("the first\n")
    watch.sees("answered: ")
    assert answered(officina) == [({"text": "the first"}, "local")]


def test_the_page_follows_the_size_of_the_terminal(terminal: Open, project: Project) -> None:
    watch = terminal("watch", project.id, columns=100, lines=30)
    watch.sees("Monthly figures")
    for columns in (40, 80, 160):
        watch.resize(columns, 20)
        rows = eventually(lambda: found if "q leave" in (found := watch.lines)[19] and found[0] else None, 20)
        assert rows[0].startswith("Seattle weather"), "the header is at the top and the keys at the bottom"
        assert "Monthly" in "".join(rows) and "running" in "".join(rows)


def test_no_colour_is_used_where_none_is_wanted(terminal: Open, project: Project) -> None:
    colours = re.compile(rb"\x1b\[[0-9;]*3[0-7][0-9;]*m")
    plain, coloured = terminal("watch", project.id), terminal("watch", project.id, NO_COLOR="")
    plain.sees("running"), coloured.sees("running")
    assert not colours.search(plain.raw)
    assert colours.search(coloured.raw)


def test_watch_as_json_tells_events_and_how_it_ended(officina: Run, project: Project) -> None:
    project.event("project.status", {"status": "completed", "from": "running"})
    project.set(projects, project.id, status="completed", ended_at=BEGAN + 20_000)
    told = [json.loads(line) for line in officina("watch", project.id, "--json").stdout.splitlines()]
    assert [line["kind"] for line in told[:-1]] == ["run.started", "think", "message", "project.status"]
    assert told[-1]["kind"] == "watch.ended"
    end = told[-1]["data"]
    assert (end["status"], end["costUsd"], end["durationMs"], end["failures"]) == ("completed", 0.0123, 20_000, [])
    assert [file["path"] for file in end["files"]] == ["profile.md"]


def test_tasks_that_a_planner_makes_meanwhile_are_told_by_their_keys(
    settings: Settings, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    class Planned(Rows):
        def live(self, after: int, hear: Hear) -> Iterator[list[Event]]:
            project.task("made-meanwhile", "queued")
            project.event("task.status", {"status": "queued", "from": "pending"}, "made-meanwhile")
            project.set(projects, project.id, status="completed", ended_at=BEGAN + 20_000)
            return super().live(after, hear)

    look(Planned(settings, project.id), plain=True)
    line = next(line for line in capsys.readouterr().out.splitlines() if "queued" in line)
    assert line.split()[1:] == ["made-meanwhile", "queued"]


class Shaky(Rows):
    """A project whose database goes away and comes back, several times."""

    looks = 0

    def scene(self, before: Scene | None) -> Scene:
        self.looks += 1
        if self.looks in (2, 3, 5):
            raise Unavailable("the database does not answer: it is away")
        return super().scene(before)


def test_a_database_that_goes_away_is_said_so_and_nothing_is_told_twice(settings: Settings, project: Project) -> None:
    project.event("project.status", {"status": "completed", "from": "running"})
    project.set(projects, project.id, status="completed", ended_at=BEGAN + 20_000)
    told: list[Any] = []
    assert look(Shaky(settings, project.id), tell=told.append) == 0
    kinds = [line["kind"] for line in told]
    assert kinds.count("watch.trouble") == 3
    assert [line["seq"] for line in told if "seq" in line] == [1, 2, 3, 4]
    assert kinds[-1] == "watch.ended"
    assert "it is tried again" in told[kinds.index("watch.trouble")]["data"]["message"]


def test_a_project_that_is_not_there_is_said_so(officina: Run, project: Project) -> None:
    ended = officina("watch", "0" * 32)
    assert ended.returncode == 1 and "unknown_project" in ended.stderr


def test_watch_asks_on_the_terminal_and_takes_the_answer(terminal: Open, officina: Run, project: Project) -> None:
    asks(project)
    watch = terminal("watch", project.id, "--ask")
    watch.sees("(empty: later)")
    assert "rows = list(csv.DictReader(open('in/seattle-weather.csv')))" in watch.shown
    watch.type("Do it\n")
    eventually(lambda: json.loads(officina("signals", "--json").stdout) == [], 30)
    assert answered(officina) == [({"approved": True}, "local")]
    project.set(projects, project.id, status="failed", ended_at=BEGAN + 20_000)
    assert watch.end() == 1


def test_ctrl_c_leaves_the_project_alone_and_says_how_to_come_back(terminal: Open, project: Project) -> None:
    watch = terminal("watch", project.id)
    watch.sees("Monthly figures")
    watch.interrupt()
    assert watch.end() == 130
    assert f"the project goes on without you; officina watch {project.id} comes back" in watch.shown.replace("\n", "")
    assert "Traceback" not in watch.shown
