"""A preset as the agent of a task, and as an agent that runs may spawn or hand over to."""

import json
from pathlib import Path

import pytest
from sqlalchemy import select

from orchestrator.producer import submit
from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from orchestrator.store.loading import load
from orchestrator.store.tables import runs, tasks
from registry import presets
from workers.engine.targets import find
from workers.runtime import services

SHIPPED = {path.stem for path in presets.SHIPPED.glob("*.json")}
DIVER = {"name": "Diver", "role": "diver", "instructions": "Dive."}


@pytest.fixture
def at_sea(settings: Settings, tmp_path: Path) -> Settings:
    """Two presets of the owner's own, the second of which nobody here can run."""
    root = tmp_path / "presets"
    root.mkdir()
    (root / "diver.json").write_text(json.dumps(DIVER))
    (root / "captain.json").write_text(json.dumps(DIVER | {"name": "Captain", "packs": {"submarine": True}}))
    return settings.model_copy(update={"presets_root": root})


def test_a_task_runs_the_preset_as_it_is_and_other_runs_find_it_beside_the_project_s_agents(
    at_sea: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "project.json"
    file.write_text(
        json.dumps(
            {
                "title": "Deep",
                "agents": {"mate": {"name": "Mate", "instructions": "Help."}},
                "tasks": [
                    {"key": "dive", "role": "diver", "instruction": "Dive.", "agent": "Diver"},
                    {"key": "help", "role": "mate", "instruction": "Help.", "agent": "mate"},
                ],
            }
        )
    )
    made = submit(file, settings=at_sea, rehearse=True)
    with get_database(at_sea).read() as connection:
        agent = connection.scalar(select(tasks.c.agent_id).where(tasks.c.id == made.tasks["dive"]))
        run_id = connection.scalar(select(runs.c.id).where(runs.c.task_id == made.tasks["dive"]))
        run = load(connection, str(run_id), 1)
    assert agent == "diver"
    assert run.definition["prompts"]["main"] == {"instructions": "Dive."}

    targets = list(services(at_sea).targets(run))
    ids = [target.id for target in targets if target.id not in SHIPPED]
    assert sorted(ids) == ["diver", "lead", "mate"]  # the preset once, and none that cannot run here
    assert find("Mate", targets) is not None


def test_a_preset_nobody_named_is_found_with_the_definition_a_child_would_keep(
    at_sea: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "project.json"
    file.write_text(json.dumps({"title": "Dry", "tasks": [{"key": "sit", "role": "lead", "instruction": "Sit."}]}))
    made = submit(file, settings=at_sea, rehearse=True)
    with get_database(at_sea).read() as connection:
        run_id = connection.scalar(select(runs.c.id).where(runs.c.task_id == made.tasks["sit"]))
        run = load(connection, str(run_id), 1)
    targets = services(at_sea).targets(run)
    target = find("diver", targets)
    assert [one.id for one in targets if one.id not in SHIPPED] == ["lead", "diver"]
    assert target is not None
    kept = presets.load([at_sea.presets_root or tmp_path])["diver"].agent
    assert (target.definition, target.digest) == (kept.to_json(), kept.definition_digest)
