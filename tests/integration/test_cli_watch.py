"""`officina trace` and `officina watch`, in a pipe and on a terminal."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
from pathlib import Path

from orchestrator.store.tables import projects
from tests.commands import OFFICINA, Run
from tests.rows import BEGAN, Project
from tests.support import eventually


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


class Terminal:
    """A command on a terminal of its own, 100 columns wide; what it draws is collected as it comes."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        # What the runner of the tests says of its own width is not this terminal's.
        plain = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
        env = plain | {"TERM": "xterm", "NO_COLOR": "1"}
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
    home_environment: dict[str, str], tmp_path: Path, project: Project
) -> None:
    terminal = Terminal([OFFICINA, "watch", project.id], home_environment, tmp_path)
    eventually(lambda: "math.evaluate and 1 more" in terminal.shown, 30)
    project.event("project.status", {"status": "completed", "from": "running"})
    project.set(projects, project.id, status="completed", ended_at=BEGAN + 20_000)
    assert terminal.end() == 0
    assert "Deliverables" in terminal.shown
    assert "completed: 0.0123 USD in 20 s" in terminal.shown


def test_watch_asks_on_the_terminal_and_takes_the_answer(
    officina: Run, home_environment: dict[str, str], tmp_path: Path, project: Project
) -> None:
    asked = project.signal("yearly", expires_at=4_000_000_000_000)
    project.event("signal.raised", {"signalId": asked, "signalKind": "decision", "title": "t"}, "yearly")
    terminal = Terminal([OFFICINA, "watch", project.id, "--ask"], home_environment, tmp_path)
    eventually(lambda: "(empty: later)" in terminal.shown, 30)
    assert "rows = list(csv.DictReader(open('in/seattle-weather.csv')))" in terminal.shown
    terminal.type("Do it\n")
    eventually(lambda: json.loads(officina("signals", "--json").stdout) == [], 30)
    (answered,) = json.loads(officina("signals", "--all", "--json").stdout)
    assert (answered["answer"], answered["answeredBy"]) == ({"approved": True}, "local")
    project.set(projects, project.id, status="failed", ended_at=BEGAN + 20_000)
    assert terminal.end() == 1


def test_ctrl_c_leaves_the_project_alone(home_environment: dict[str, str], tmp_path: Path, project: Project) -> None:
    terminal = Terminal([OFFICINA, "watch", project.id], home_environment, tmp_path)
    eventually(lambda: "Monthly figures" in terminal.shown, 30)
    terminal.interrupt()
    assert terminal.end() == 130
    assert "Traceback" not in terminal.shown
