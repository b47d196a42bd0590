"""`code.execute` with a real sandbox and a real workspace."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from orchestrator.workspaces.jail import JailedWorkspace
from registry.skills.code import SKILLS
from registry.skills.context import Authority, Caller, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult
from workers.sandbox.box import Box

COUNT = """
import csv, json, os
with open("in/data/orders.csv") as file:
    total = sum(int(row["price"]) for row in csv.DictReader(file))
os.makedirs("out/report")
with open("out/report/total.json", "w") as file:
    json.dump({"total": total}, file)
os.symlink("/etc/passwd", "out/passwd")
print(total)
"""


def call(box: Box, workspace: JailedWorkspace, stop: threading.Event | None = None, **arguments: Any) -> SkillResult:
    context = SkillContext(Caller("person"), workspace=workspace, sandbox=box)
    if stop is not None:
        context.cancelled = stop.is_set
    return SkillRegistry(SKILLS).invoke("code.execute", arguments, context, Authority(None))


@pytest.fixture
def workspace(tmp_path: Path) -> JailedWorkspace:
    made = JailedWorkspace(tmp_path / "workspace")
    made.write("data/orders.csv", b"name,price\na,19\nb,23\n", max_bytes=100)
    return made


def test_a_program_reads_its_input_and_leaves_its_output(box: Box, workspace: JailedWorkspace) -> None:
    result = call(box, workspace, code=COUNT, inputFiles=["data/orders.csv"], saveOutputs=True)
    assert result.output is not None, result
    assert (result.output["exitCode"], result.output["stdout"]) == (0, "42\n")
    assert result.output["files"] == [{"path": "report/total.json", "bytes": 13}]
    assert workspace.read("report/total.json", max_bytes=100) == b'{"total": 42}'
    # A link is not followed and not copied, and the model is told.
    assert not workspace.exists("passwd")
    assert "out/passwd was left behind" in result.output["stderr"]


def test_without_save_outputs_the_workspace_stays_as_it_is(box: Box, workspace: JailedWorkspace) -> None:
    before = workspace.entries(".", recursive=True)
    result = call(box, workspace, code="open('out/x', 'w').write('x')")
    assert result.output is not None and result.output["files"] == []
    assert workspace.entries(".", recursive=True) == before


def test_a_traceback_shows_the_line(box: Box, workspace: JailedWorkspace) -> None:
    result = call(box, workspace, code="value = 1\nraise LookupError('not here')")
    assert result.ok and result.output is not None
    assert result.output["exitCode"] == 1
    assert "line 2" in result.output["stderr"] and "raise LookupError('not here')" in result.output["stderr"]


def test_what_was_printed_before_the_deadline_is_there(box: Box, workspace: JailedWorkspace) -> None:
    result = call(box, workspace, code="print('so far')\nwhile True: pass", timeoutMs=700)
    assert result.output is not None
    assert (result.output["timedOut"], result.output["signal"]) == (True, "SIGKILL")
    assert result.output["stdout"] == "so far\n"


def test_a_cancelled_run_ends_its_program(box: Box, workspace: JailedWorkspace) -> None:
    stop = threading.Event()
    timer = threading.Timer(0.5, stop.set)
    timer.start()
    began = time.monotonic()
    result = call(box, workspace, stop, code="import time; time.sleep(60)", timeoutMs=60_000)
    assert result.code == "cancelled"
    assert time.monotonic() - began < 2.5
