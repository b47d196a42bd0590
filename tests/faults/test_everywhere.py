"""Row 7, 28, 32: a process dies at every crash point there is, in a project that uses every node kind."""

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import select

from orchestrator.crashpoints import POINTS
from orchestrator.stack.environment import child_environment
from orchestrator.states import SIGNAL_OF_PARK
from orchestrator.store.database import get_database
from orchestrator.store.tables import projects
from registry.graph.model import Graph
from tests.faults import everything, skills
from tests.faults.company import Company
from tests.faults.table import Story
from tests.projects import Watched

#: Points that the process of a command reaches, not a worker.
OF_COMMANDS = ("submitted", "answered", "cancelled")
#: Points that a worker reaches only while it makes up for another one's death, for lost messages, or leaves.
OF_REPAIR = ("taken_back", "rewoken", "leaving", "expired")
#: A suspect dies there, in a process of its own; its worker stays.
OF_SUSPECTS = ("stepped",)
#: A worker dies there in tests/crash/test_schedules_killed.py, again and again.
OF_SCHEDULES = ("fired",)
#: What the short form walks.
SHORT = ("begun", "replaced")


def walked() -> list[object]:
    mine = [point for point in POINTS if point not in (*OF_COMMANDS, *OF_REPAIR, *OF_SUSPECTS, *OF_SCHEDULES)]
    return [point if point in SHORT else pytest.param(point, marks=pytest.mark.long) for point in mine]


def ends(company: Company, project: Watched) -> None:
    """Waits for the end, with a person who says yes to everything, and looks at what came of it."""

    def over() -> bool:
        everything.answers(company.settings, project)
        waits = any(s.status == "open" and s.kind in SIGNAL_OF_PARK for s in project.signals)
        return project.status in ("completed", "partial", "failed") and not waits and not acting(project)

    company.waits_for(over, 150)
    assert project.status == "completed", {key: row.error for key, row in project.tasks.items() if row.error}
    done = set(skills.counted(company.place, "once", "asked"))
    unknown = [r["toolCallId"] for r in project.kinds("tool.result") if r["outcome"] == "unknown"]
    unknown += [s.id for s in project.signals if s.execution == "unknown" or s.status == "expired"]
    assert len(everything.ONCE - done) <= len(unknown), f"not done, not unknown, not too late: {everything.ONCE - done}"
    company.keeps_its_promises()


def acting(project: Watched) -> bool:
    return any(
        s.carry_on and s.status == "answered" and s.execution in ("none", "started") and not s.rejected
        for s in project.signals
    )


def test_the_project_uses_every_node_kind() -> None:
    known = {name for name in str(Graph.model_fields["nodes"].annotation).split("'") if ":" in name}
    used = {node["type"] for node in everything.NODES.values()} | {"llm:generate"}
    assert used >= known


@pytest.mark.timeout(300)
@pytest.mark.parametrize("point", walked())
def test_a_worker_dies_there(company: Company, story: Story, point: str) -> None:
    story.tells("7", f"kill -9 of a worker at `{point}`, as soon as it comes there", "the end is as without it")
    first, second = company.hire(points=f"{point}=1"), company.understudy()
    project = company.submit(everything.plan(), everything.script(), agents=everything.agents())

    def died() -> bool:
        everything.answers(company.settings, project)
        return not first.process.running

    company.waits_for(died, 90)
    assert first.process.outcome == "killed by SIGKILL", f"nothing ever came to {point!r}"
    second.enter()
    before = len(project.trace)
    with story.recovery():
        company.waits_for(lambda: len(project.trace) > before, 90)

    ends(company, project)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("point", OF_REPAIR)
def test_whoever_repairs_dies_too(company: Company, story: Story, point: str) -> None:
    story.tells("7", f"kill -9 of a worker, and of the one that makes up for it at `{point}`", "a third one ends it")
    first, second, third = company.hire(), company.understudy(points=f"{point}=1"), company.understudy()
    project = company.submit(everything.plan(), everything.script(), agents=everything.agents())
    company.waits_for(lambda: len(project.kinds("tool.result")) >= 2, 90)
    if point == "expired":
        company.waits_for(lambda: any(s.status == "open" and s.kind in SIGNAL_OF_PARK for s in project.signals))

    first.kill()
    if point == "rewoken":
        company.flush()
    second.enter()
    if point == "leaving":
        second.ready()
        second.process.ask()
    if point == "expired":
        company.expire_everything()
    company.died(second, 90)
    third.enter()
    with story.recovery():
        ends(company, project)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("point", OF_SUSPECTS)
def test_a_suspect_dies_there(company: Company, story: Story, point: str) -> None:
    story.tells("7", f"kill -9 of a suspect at `{point}`, each time it comes there", "its worker goes on with its run")
    first, second = company.hire(), company.understudy(points=f"{point}=1")
    project = company.submit(everything.plan(), everything.script(), agents=everything.agents())
    company.waits_for(lambda: len(project.kinds("tool.result")) >= 2, 90)

    first.kill()
    second.enter()
    with story.recovery():
        company.waits_for(lambda: "took its process down" in second.output)

    ends(company, project)
    assert second.process.running


@pytest.mark.parametrize(
    "point", [pytest.param(p, marks=() if p == "submitted" else pytest.mark.long) for p in OF_COMMANDS]
)
def test_a_command_dies_there(company: Company, story: Story, tmp_path: Path, point: str) -> None:
    story.tells("7", f"kill -9 of a command at `{point}`: committed, nobody told", "what was committed happens")
    company.hire().ready()
    if point == "submitted":
        words = ["submit", str(everything.write(company.folder / "project"))]
    else:
        project = company.submit(everything.plan(), everything.script(), agents=everything.agents())
        asked = company.waits_for(lambda: next((s.id for s in project.signals if s.kind == "decision"), None))
        words = {"answered": ["answer", asked, "Do it"], "cancelled": ["cancel", project.id]}[point]
    environment = child_environment(company.settings) | {
        "OFFICINA_CRASHPOINTS": f"{point}=1",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    command = "from tests.faults import skills; skills.install(); from workers.cli import main; main()"

    ended = subprocess.run([sys.executable, "-c", command, *words], env=environment, timeout=90, check=False)

    assert ended.returncode == -9, f"nothing ever came to {point!r}"
    if point == "submitted":
        with get_database(company.settings).read() as connection:
            project = Watched(company.settings, str(connection.execute(select(projects.c.id)).scalar_one()))
        company.projects.append(project)
    if point == "cancelled":
        with story.recovery():
            company.waits_for(lambda: project.status == "cancelled")
        company.waits_for(lambda: not any(run.status == "running" for run in project.runs))
        company.keeps_its_promises()
    else:
        with story.recovery():
            ends(company, project)
