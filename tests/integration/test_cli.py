"""The command `officina` as a person or a script meets it: what it prints, where, and how it exits."""

import fcntl
import io
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.settings import Settings
from orchestrator.store.tables import projects
from tests.rows import BEGAN, CODE, Project, weather
from tests.support import eventually

OFFICINA = str(Path(sys.executable).parent / "officina")
HEAVY = ("sqlalchemy", "celery", "rich", "openai", "kombu", "redis", "alembic", "pydantic_settings", "jinja2", "docx")


@dataclass(frozen=True)
class Ended:
    """What a command printed and how it left."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Ended]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home of this test's own, and nothing of the person who runs it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OFFICINA_")}
    return kept | {"OFFICINA_HOME": str(tmp_path / "home"), "TZ": "UTC"}


@pytest.fixture
def process(environment: dict[str, str], tmp_path: Path) -> Run:
    """Runs the installed command in a process of its own."""

    def run(*words: str, **more: str) -> Ended:
        command = [OFFICINA, *words]
        ended = subprocess.run(
            command, capture_output=True, check=False, cwd=tmp_path, env=environment | more, timeout=60
        )
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    return run


@pytest.fixture
def officina(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the command's `main` in this process: the same code as the installed command, without its start."""
    from orchestrator.settings import get_settings
    from workers.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OFFICINA_HOME", str(tmp_path / "home"))

    def run(*words: str, given: str = "", **more: str) -> Ended:
        with monkeypatch.context() as patch:
            for name, value in more.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["officina", *words])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
            get_settings.cache_clear()
            with pytest.raises(SystemExit) as left:
                main()
        out, err = capfd.readouterr()
        return Ended(int(left.value.code or 0), out, err)

    return run


@pytest.fixture
def project(settings: Settings) -> Project:
    """The example in the middle of its work, in the home the command looks into."""
    return weather(settings)


def test_help_names_the_commands_and_imports_nothing_heavy(environment: dict[str, str]) -> None:
    program = (
        "import sys; sys.argv = ['officina', '--help']\n"
        "from workers.cli import main\n"
        "try: main()\n"
        f"finally: print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment
    )
    assert ended.returncode == 0
    assert "HEAVY []" in ended.stdout
    commands = ("submit", "show", "list", "trace", "watch", "cancel", "retry", "signals", "answer", "graph", "db", "up")
    for command in (*commands, "worker", "doctor", "skills"):
        assert re.search(rf"^  {command} ", ended.stdout, re.MULTILINE), command


def test_every_command_explains_itself(officina: Run) -> None:
    from typer.main import get_command

    from orchestrator.cli import application

    for name, command in get_command(application()).commands.items():  # type: ignore[attr-defined]
        assert command.help, name
    assert officina("submit", "--help").returncode == 0


def test_the_installed_command_runs(process: Run) -> None:
    ended = process("--version")
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


def test_output_fits_a_terminal_that_cannot_write_unicode(process: Run, settings: Settings) -> None:
    project = Project(settings, title="Größe 中")
    project.task("one")
    page = process("show", project.id, PYTHONIOENCODING="ascii", LC_ALL="C")
    assert page.returncode == 0 and page.stdout.isascii()
    found = process("show", project.id, "--json", PYTHONIOENCODING="ascii", LC_ALL="C")
    assert json.loads(found.stdout)["title"] == "Größe 中"


def test_list_shows_projects(officina: Run, project: Project) -> None:
    assert json.loads(officina("list", "--json").stdout)[0]["id"] == project.id
    assert project.id in officina("list").stdout
    assert officina("list", "--status", "failed").stdout.startswith("no projects")


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
    assert re.match(r"09:00:00\.000  monthly +Nadia Kest +think +stand-in.*\(stand-in\)$", told[0])


def test_trace_follows_to_the_end_of_the_project(officina: Run, project: Project) -> None:
    project.event("project.status", {"status": "completed", "from": "running"})
    project.set(projects, project.id, status="completed")
    assert len(officina("trace", project.id, "--json", "--follow").stdout.splitlines()) == 4


def test_a_reader_that_leaves_early_causes_no_traceback(
    environment: dict[str, str], tmp_path: Path, project: Project
) -> None:
    command = f"{OFFICINA} trace {project.id} --json | head -n 1"
    ended = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
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


class Terminal:
    """A command on a terminal of its own, 100 columns wide; what it draws is collected as it comes."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        env = environment | {"TERM": "xterm", "NO_COLOR": "1"}
        self._process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=folder)
        os.close(theirs)
        self._shown = b""

    @property
    def shown(self) -> str:
        """All it has drawn so far, without the codes that move the cursor."""
        while select.select([self._ours], [], [], 0)[0]:
            try:
                part = os.read(self._ours, 65_536)
            except OSError:  # how Linux says that the other end is closed
                break
            if not part:
                break
            self._shown += part
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._shown.decode(errors="replace"))

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Waits for the end of the command; gives its exit code."""
        code = eventually(lambda: [c] if (self.shown, c := self._process.poll())[1] is not None else None, 30)[0]
        return int(code)


def test_watch_on_a_terminal_draws_a_page_and_leaves_the_end_on_it(
    environment: dict[str, str], tmp_path: Path, project: Project
) -> None:
    terminal = Terminal([OFFICINA, "watch", project.id], environment, tmp_path)
    eventually(lambda: "math.evaluate and 1 more" in terminal.shown, 30)
    project.event("project.status", {"status": "completed", "from": "running"})
    project.set(projects, project.id, status="completed", ended_at=BEGAN + 20_000)
    assert terminal.end() == 0
    assert "Deliverables" in terminal.shown
    assert "completed: 0.0123 USD in 20 s" in terminal.shown


def test_watch_asks_on_the_terminal_and_takes_the_answer(
    officina: Run, environment: dict[str, str], tmp_path: Path, project: Project
) -> None:
    asked = project.signal("yearly", expires_at=4_000_000_000_000)
    project.event("signal.raised", {"signalId": asked, "signalKind": "decision", "title": "t"}, "yearly")
    terminal = Terminal([OFFICINA, "watch", project.id, "--ask"], environment, tmp_path)
    eventually(lambda: "(empty: later)" in terminal.shown, 30)
    assert "rows = list(csv.DictReader(open('in/seattle-weather.csv')))" in terminal.shown
    terminal.type("Do it\n")
    eventually(lambda: json.loads(officina("signals", "--json").stdout) == [], 30)
    (answered,) = json.loads(officina("signals", "--all", "--json").stdout)
    assert (answered["answer"], answered["answeredBy"]) == ({"approved": True}, "local")
    project.set(projects, project.id, status="failed", ended_at=BEGAN + 20_000)
    assert terminal.end() == 1


def test_ctrl_c_leaves_the_project_alone(environment: dict[str, str], tmp_path: Path, project: Project) -> None:
    terminal = Terminal([OFFICINA, "watch", project.id], environment, tmp_path)
    eventually(lambda: "Monthly figures" in terminal.shown, 30)
    terminal.interrupt()
    assert terminal.end() == 130
    assert "Traceback" not in terminal.shown


def test_signals_show_exactly_what_would_run(officina: Run, project: Project) -> None:
    asked = project.signal("yearly")
    (found,) = json.loads(officina("signals", "--json").stdout)
    assert (found["id"], found["action"]["input"]["code"]) == (asked, CODE)
    page = officina("signals").stdout
    assert "rows = list(csv.DictReader(open('in/seattle-weather.csv')))" in page
    assert f'officina answer {asked} "Do it"' in page


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


def test_skills_are_listed_shown_and_called(officina: Run) -> None:
    found = {skill["name"]: skill for skill in json.loads(officina("skills", "--json").stdout)}
    assert found["math.evaluate"]["wireName"] == "math__evaluate"
    assert "math.evaluate" in officina("skills").stdout
    assert "expression" in officina("skills", "show", "math__evaluate").stdout


def invoked(ended: Ended) -> dict[str, Any]:
    (line,) = ended.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_call_prints_one_line_and_exits_by_its_outcome(officina: Run, tmp_path: Path) -> None:
    given = '{"expression": "1/3 + 1/6"}'
    (tmp_path / "in.json").write_text(given)
    for words, stdin in ((given, ""), ("-", given), ("@in.json", "")):
        ended = officina("skills", "invoke", "math.evaluate", "--input", words, given=stdin)
        assert ended.returncode == 0, ended.stderr
        assert invoked(ended)["ok"] is True
    failed = officina("skills", "invoke", "math.evaluate", "--input", '{"expression": "1/0"}')
    assert (failed.returncode, invoked(failed)["code"]) == (1, "domain_error")
    unknown = officina("skills", "invoke", "no.such", "--input", "{}")
    assert (unknown.returncode, invoked(unknown)["code"]) == (1, "unknown_skill")


@pytest.mark.parametrize(
    "given",
    ["", "{", "[]", "1", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 200 + "]" * 200, "@missing.json", '{"a": 1e999}'],
)
def test_an_input_that_is_no_json_object_is_wrong_use(officina: Run, given: str) -> None:
    ended = officina("skills", "invoke", "math.evaluate", "--input", given)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("--input: invalid_json: ")


def test_a_call_works_in_the_folder_it_is_given(officina: Run, tmp_path: Path) -> None:
    given = json.dumps({"path": "a/b.txt", "content": "hello"})
    ended = officina("skills", "invoke", "files.write", "--input", given, "--workspace", str(tmp_path / "work"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert (tmp_path / "work" / "a" / "b.txt").read_text() == "hello"


def test_as_an_agent_nobody_stands_behind_a_call(officina: Run) -> None:
    given = json.dumps({"code": "print(1)"})
    ended = officina("skills", "invoke", "code.execute", "--input", given, "--as", "agent")
    assert (ended.returncode, invoked(ended)["code"]) == (1, "approval_required")


def test_doctor_tells_settings_and_parts_and_no_secret(officina: Run, tmp_path: Path) -> None:
    secrets = {
        "OFFICINA_MODEL_API_KEY": "sk-hunter2",
        "OFFICINA_BROKER_URL": "redis://:hunter2@127.0.0.1:1/0",
        "OFFICINA_DATABASE_URL": "postgresql+psycopg://u:hunter2@127.0.0.1:1/x?password=hunter2",
    }
    ended = officina("doctor", **secrets)
    assert ended.returncode == 1
    assert "hunter2" not in ended.stdout + ended.stderr
    assert "OFFICINA_MODEL_API_KEY" in ended.stdout and "(set, not shown)" in ended.stdout
    for part in ("database", "broker", "redis"):
        assert re.search(rf"✗ broken  {part} ", ended.stdout), part


def test_doctor_of_a_fresh_machine_finds_nothing_broken(officina: Run) -> None:
    ended = officina("doctor", "--json")
    findings = {one["part"]: one for one in json.loads(ended.stdout)["findings"]}
    assert findings["database"]["verdict"] == "absent"
    assert [one for one in findings.values() if one["verdict"] == "broken"] == []
    assert ended.returncode == 0


def test_doctor_finds_a_working_installation_well(
    officina: Run, settings: Settings, redis_url: str, redis: Any
) -> None:
    settings.workspaces.mkdir()
    ended = officina("doctor", OFFICINA_BROKER_URL=redis_url)
    for part in ("database", "broker", "redis", "workspaces", "skills"):
        assert re.search(rf"✓ ok +{part} ", ended.stdout), ended.stdout
    assert list(settings.workspaces.iterdir()) == []


def test_doctor_names_a_workspace_root_it_cannot_write(officina: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = officina("doctor", OFFICINA_WORKSPACE_ROOT=str(tmp_path / "file"))
    assert ended.returncode == 1
    assert re.search(r"✗ broken  workspaces ", ended.stdout)


def test_a_person_runs_code_in_the_sandbox(officina: Run) -> None:
    ended = officina("skills", "invoke", "code.execute", "--input", json.dumps({"code": "print(6 * 7)"}))
    result = invoked(ended)
    if result.get("code") == "sandbox_unavailable":
        pytest.skip(result["error"])
    assert (ended.returncode, result["output"]["stdout"]) == (0, "42\n")
