"""`officina prune` and `officina audit`, as people use them."""

import json

from orchestrator import keys
from orchestrator.settings import Settings
from tests.commands import Run
from tests.rows import BEGAN, Project


def old(settings: Settings) -> Project:
    made = Project(settings, "Old work", status="completed", ended_at=BEGAN - 400 * 24 * 3_600_000)
    made.task("write", "completed", output="done")
    made.event("run.started", {"attempt": 1, "depth": 0}, "write")
    return made


def test_without_a_yes_it_only_says_what_would_go(settings: Settings, officina: Run) -> None:
    made = old(settings)

    said = officina("prune", "--history", "30")

    assert said.returncode == 0
    assert said.stdout.startswith("history: 1 projects that ended 30 days ago or earlier (1 events")
    assert "--yes does it" in said.stderr
    assert "attempt 1" in officina("trace", made.id).stdout


def test_what_is_gone_says_so_and_is_on_record(settings: Settings, officina: Run) -> None:
    made = old(settings)

    assert json.loads(officina("prune", "--history", "30", "--yes", "--json").stdout)["history"]["projects"] == 1
    assert "its history was taken away because it was old" in officina("trace", made.id).stdout
    assert json.loads(officina("show", made.id, "--json").stdout)["historyPrunedAt"] > 0

    assert officina("prune", "--project", "30", "--yes", OFFICINA_ACTOR="ann").returncode == 0
    gone = officina("show", made.id)
    assert gone.returncode == 1
    assert f"project {made.id} (Old work) was taken away on " in gone.stderr
    (line,) = map(json.loads, officina("audit", "--act", "project.pruned", "--json").stdout.splitlines())
    assert (line["act"], line["by"], line["subject"]) == ("project.pruned", "ann", made.id)


def test_nothing_is_too_old_where_nobody_said_so(settings: Settings, officina: Run) -> None:
    old(settings)
    refused = officina("prune", "--yes")
    assert refused.returncode == 2
    assert "--history" in refused.stderr


def test_the_log_is_read_latest_last(settings: Settings, officina: Run) -> None:
    for name in ("one", "two"):
        keys.add(settings, name)
    lines = officina("audit", "--last", "5").stdout.splitlines()
    assert ["name one" in lines[0], "name two" in lines[1]] == [True, True]
