"""Every command of the runbook is run as it stands there, on a home in which something of everything has gone wrong."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator import keys
from orchestrator.settings import Settings
from tests.commands import Run
from tests.rows import BEGAN, Project, weather

PAGE = Path(__file__).parents[2] / "docs" / "runbook.md"
#: What a person would be told no for, in this home: the command is right, and says why it does nothing.
MAY_REFUSE = {
    "officina fork RUN --at SEQ": "not_root|task_running|unknown_checkpoint|no checkpoint",
    "officina answer RUN": "does not sleep",
}
#: They wait for somebody, take a secret from a prompt, or stay up.
NOT_RUN = {
    "officina answer",
    "officina api",
    "officina up",
    "officina worker",
    "officina login",
    "officina connections set",
    "officina worker --queues code",
}


def written() -> Iterator[str]:
    """The commands in blocks and in spans; a span that goes on in the next line is one."""
    text = PAGE.read_text(encoding="utf-8")
    for line in re.findall(r"^ {4}(officina .*)$", text, re.M):
        yield line.split("#")[0].strip()
    prose = re.sub(r"^ {4}.*$", "", text, flags=re.M).replace("\n", " ")
    for span in re.findall(r"`(officina [^`]*)`", prose):
        yield re.sub(r"\s+", " ", span)


COMMANDS = [command for command in dict.fromkeys(written()) if command not in NOT_RUN]


@pytest.fixture
def trouble(settings: Settings) -> dict[str, str]:
    """The example in the middle of its work, with a task that failed, a run that sleeps, a call of unknown outcome."""
    made: Project = weather(settings)
    made.task("lost", "failed", run={"ended_at": BEGAN + 9_000}, error={"code": "model_failed", "message": "no"})
    made.task("late", "waiting", run={"waiting_on": "timer", "due_at": BEGAN + 10**11})
    made.task("odd", "running", run={"worker_id": "gone", "fence": 1, "due_at": BEGAN + 10**11})
    made.call("odd", "c9", name="email.send", status="done", outcome="unknown")
    return {
        "PROJECT": made.id,
        "TASK": made.task_ids["lost"],
        "RUN": made.run_ids["odd"],
        "ID": made.signal("yearly"),
        "SEQ": "1",
        "JSON": '{"sent": true}',
        "KEY": str(keys.add(settings, "lost")[0]["id"]),
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_runbook_does_what_the_page_says(command: str, trouble: dict[str, str], officina: Run) -> None:
    known = trouble | ({"ID": trouble["KEY"]} if " keys " in command else {})
    words: list[str] = [known.get(word, word) for word in shlex.split(command)[1:]]

    done: Any = officina(*words)

    told = done.stdout + done.stderr
    assert "Traceback" not in told
    if command in MAY_REFUSE and done.returncode == 1:
        assert re.search(MAY_REFUSE[command], told)
    elif words[0] == "doctor":  # something of this home is broken on purpose, and it says so
        assert done.returncode in (0, 1), told
        assert told.strip()
    else:
        assert done.returncode == 0, told


def test_the_runbook_names_commands_at_all() -> None:
    assert len(COMMANDS) > 12
