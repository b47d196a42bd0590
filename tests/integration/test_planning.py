"""From a brief to a plan to a team: planned by rounds, held for a person, started once, made of who is there."""

import json
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestrator import control, held, saved
from orchestrator.producer import Submitted, submit
from orchestrator.settings import Settings
from orchestrator.store import invariants
from orchestrator.store.database import get_database
from orchestrator.store.definitions import get as definition_of
from registry.errors import Refused, WrongUse
from registry.skills import catalogue
from tests.projects import Watched, task
from tests.support import eventually

SKILLS = catalogue.build()


def planned(*tasks: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A turn of the planner."""
    whole = [{"title": one["key"]} | {k: v for k, v in one.items() if v != []} for one in tasks]
    return {"output": {"goal": "It is done", "summary": "Step by step.", "tasks": whole} | fields}


def brief(
    folder: Path, settings: Settings, turns: Sequence[Any], *, plan_only: bool = False, **fields: Any
) -> Submitted:
    """A project of a brief whose planner says this, turn by turn."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "script.json").write_text(json.dumps({"agents": {"planner": list(turns)}}))
    (folder / "project.json").write_text(
        json.dumps({"title": "T", "brief": "Do it.", "script": "script.json"} | fields)
    )
    return submit(folder / "project.json", settings=settings, plan_only=plan_only)


CYCLE = planned(task("a", after=["b"]), task("b", after=["a"]))
GOOD = planned(task("a"), task("b", after=["a"]))


def test_a_planner_is_told_what_is_wrong_and_may_mend_it_twice(tmp_path: Path, live_settings, worker_process) -> None:
    worker_process(live_settings).ready()

    project = Watched(live_settings, brief(tmp_path / "p", live_settings, [CYCLE, {"say": "Sure!"}, GOOD]).project_id)

    assert project.ended() == "completed"
    assert list(project.tasks) == ["a", "b"]
    notes = [m["text"] for m in project.kinds("message") if m.get("kind") == "note"]
    assert ["these wait for each other: a -> b" in notes[0], "not JSON" in notes[1]] == [True, True]
    (told,) = project.kinds("project.planned")
    assert (told["goal"], told["summary"], told.get("note")) == ("It is done", "Step by step.", None)
    assert len([run for run in project.runs if run.kind == "plan"]) == 1, "the rounds are turns of one run"


def test_after_two_rounds_the_lead_gets_the_whole_brief(tmp_path: Path, live_settings, worker_process) -> None:
    worker_process(live_settings).ready()

    project = Watched(live_settings, brief(tmp_path / "p", live_settings, [CYCLE, CYCLE, CYCLE, GOOD]).project_id)

    assert project.ended() == "completed"
    (only,) = project.tasks.values()
    assert (only.role, only.instruction, only.agent_name) == ("lead", "Do it.", "Orin Vale")
    (told,) = project.kinds("project.planned")
    assert "these wait for each other: a -> b" in told["note"]
    assert len([m for m in project.kinds("message") if m["role"] == "assistant" and not m.get("kind")]) >= 3


def test_a_planner_that_cannot_be_asked_fails_the_project_with_the_reason(
    tmp_path: Path, live_settings, worker_process
) -> None:
    worker_process(live_settings).ready()

    made = brief(tmp_path / "p", live_settings, [{"say": "{{ nothing.here }}"}])
    project = Watched(live_settings, made.project_id)

    assert project.ended() == "failed"
    assert project.shown["reason"].startswith("planning failed: model_failed")
    assert project.tasks == {}


def test_a_held_plan_waits_shows_itself_and_is_started_once(tmp_path: Path, live_settings, worker_process) -> None:
    worker_process(live_settings).ready()
    made = brief(tmp_path / "p", live_settings, [GOOD], plan_only=True)
    project = Watched(live_settings, made.project_id)

    plan = eventually(lambda: project.shown.get("plan"), 20)
    assert [(one["key"], one["dependsOn"], one["tier"]) for one in plan["tasks"]] == [
        ("a", [], "standard"),
        ("b", ["a"], "standard"),
    ]
    assert (project.status, project.shown["planReady"]) == ("planning", True)
    assert project.shown["reason"] == "the plan of 2 tasks waits for its start"
    assert project.kinds("project.planned") == [], "it is told when a person has said yes to it"

    outcomes = at_once(*[lambda: held.start(live_settings, SKILLS, project.id)] * 6)

    assert sorted(str(one) for one in outcomes if isinstance(one, str)) == ["already_started"] * 5
    assert project.ended() == "completed"
    assert len(project.kinds("team.assembled")) == 1
    assert "plan" not in project.shown
    with pytest.raises(Refused, match="has ended"):
        held.start(live_settings, SKILLS, project.id)


def test_another_plan_is_made_of_brief_plan_and_note_and_waits_in_turn(
    tmp_path: Path, live_settings, worker_process
) -> None:
    worker_process(live_settings).ready()
    made = brief(tmp_path / "p", live_settings, [GOOD], plan_only=True)
    project = Watched(live_settings, made.project_id)
    eventually(lambda: project.shown.get("plan"), 20)

    held.again(live_settings, SKILLS, project.id, "Two tasks are one too many.", by="ann")

    plan = eventually(lambda: project.shown.get("plan"), 20)
    assert [one["key"] for one in plan["tasks"]] == ["a", "b"]
    asked = [str(m.get("text")) for m in project.kinds("message") if m["role"] == "user"]
    assert [("Two tasks are one too many." in text, '"key":"a"' in text) for text in asked] == [
        (False, False),
        (True, True),
    ]
    held.start(live_settings, SKILLS, project.id)
    assert project.ended() == "completed"


def test_a_plan_may_be_changed_until_it_is_started_and_is_judged_each_time(tmp_path: Path, settings: Settings) -> None:
    project = Watched(settings, on_file(tmp_path, settings, [task("a"), task("b", after=["a"])]).project_id)
    plan = project.shown["plan"]
    plan = {"tasks": plan["tasks"]}

    with pytest.raises(WrongUse) as wrong:
        held.change(
            settings, SKILLS, project.id, plan | {"tasks": [task("a", after=["x"]), {"key": "b"}], "n": 1}, by="me"
        )
    assert [fault.path for fault in wrong.value.faults] == [
        "n",
        "tasks[0].dependsOn[0]",
        "tasks[1].instruction",
        "tasks[1].role",
    ]
    assert project.shown["plan"]["tasks"] == plan["tasks"], "nothing is half-written"

    version = project.shown["plan"]["version"]
    held.change(settings, SKILLS, project.id, {"goal": "Less", "tasks": [task("a")]}, version=version, by="me")
    with pytest.raises(Refused) as refused:
        held.change(settings, SKILLS, project.id, plan, version=version, by="somebody slower")
    assert refused.value.code == "version_conflict"

    ids = held.start(settings, SKILLS, project.id)
    assert list(ids) == list(project.tasks) == ["a"]
    with pytest.raises(Refused) as refused:
        held.change(settings, SKILLS, project.id, plan, by="me")
    assert refused.value.code == "already_started"


def test_another_plan_may_be_given_at_the_start(tmp_path: Path, settings: Settings) -> None:
    project = Watched(settings, on_file(tmp_path, settings, [task("a")]).project_id)

    ids = held.start(settings, SKILLS, project.id, {"tasks": [task("x"), task("y", after=["x"])]})

    assert list(ids) == ["x", "y"]
    assert {key: row.status for key, row in project.tasks.items()} == {"x": "queued", "y": "pending"}


def test_the_agents_of_a_file_wait_with_its_plan(tmp_path: Path, settings: Settings) -> None:
    own = {"mine": {"name": "Own One", "instructions": "Mine.", "tier": "deep"}}
    project = Watched(settings, on_file(tmp_path, settings, [task("a", agent="mine")], agents=own).project_id)

    held.start(settings, SKILLS, project.id)

    row = project.tasks["a"]
    assert (row.agent_name, row.tier) == ("Own One", "deep"), "a tier nobody wrote does not outrank the agent's"


def test_a_held_project_can_be_cancelled_and_then_not_started(tmp_path: Path, settings: Settings) -> None:
    project = Watched(settings, on_file(tmp_path, settings, [task("a")]).project_id)
    with get_database(settings).read() as connection:
        assert invariants.broken(connection) == [], "to wait for a person is no fault"

    control.cancel(settings, project.id, by="me")

    with pytest.raises(Refused) as refused:
        held.start(settings, SKILLS, project.id)
    assert (refused.value.code, project.status, project.tasks) == ("project_ended", "cancelled", {})
    with get_database(settings).read() as connection:
        assert invariants.broken(connection) == []


def test_of_a_start_and_a_cancel_at_once_one_is_first(tmp_path: Path, settings: Settings) -> None:
    for number in range(5):
        project = Watched(settings, on_file(tmp_path / str(number), settings, [task("a")]).project_id)

        at_once(
            partial(held.start, settings, SKILLS, project.id), partial(control.cancel, settings, project.id, by="me")
        )

        assert project.status == "cancelled", "a cancel after the start cancels what was started"
        assert {row.status for row in project.tasks.values()} <= {"cancelled"}


def test_a_project_that_starts_by_itself_has_no_plan_to_start(tmp_path: Path, settings: Settings) -> None:
    made = brief(tmp_path / "p", settings, [GOOD])

    with pytest.raises(Refused) as refused:
        held.start(settings, SKILLS, made.project_id)

    assert (refused.value.code, "by itself" in refused.value.message) == ("not_planned", True)


def test_a_saved_agent_that_fits_is_in_the_team_as_it_was_at_the_start(tmp_path: Path, settings: Settings) -> None:
    kept = saved.create_agent(
        settings, SKILLS, {"name": "Own Writer", "role": "Copywriter", "instructions": "Old."}, person=True
    )
    project = Watched(settings, started(tmp_path, settings, [task("a"), task("b", role="editor")]).project_id)

    saved.change_agent(settings, SKILLS, kept["id"], {"instructions": "New."}, version=None, person=True)

    writer, editor = project.tasks["a"], project.tasks["b"]
    assert (writer.agent_name, editor.agent_name) == ("Own Writer", "Mara Quill")
    assert instructions(settings, writer) == "Old."
    again = Watched(settings, started(tmp_path / "again", settings, [task("a")]).project_id)
    assert instructions(settings, again.tasks["a"]) == "New."
    saved.remove_agent(settings, kept["id"], version=None)
    assert instructions(settings, project.tasks["a"]) == "Old."


def test_a_saved_agent_without_the_needed_skill_is_left(tmp_path: Path, settings: Settings) -> None:
    saved.create_agent(settings, SKILLS, {"name": "Own Writer", "role": "writer", "instructions": "Mine."}, person=True)

    project = Watched(settings, started(tmp_path, settings, [task("a", skills=["email.send"])]).project_id)

    assert project.tasks["a"].agent_name == "Sol Anders"


def test_the_planners_team_is_made_of_saved_agents_too(tmp_path: Path, live_settings, worker_process) -> None:
    saved.create_agent(
        live_settings, SKILLS, {"name": "Own Writer", "role": "writer", "instructions": "Mine."}, person=True
    )
    worker_process(live_settings).ready()

    project = Watched(live_settings, brief(tmp_path / "p", live_settings, [GOOD]).project_id)

    assert project.ended() == "completed"
    (team,) = project.kinds("team.assembled")
    assert [(m["role"], m["name"]) for m in team["members"]] == [("lead", "Orin Vale"), ("writer", "Own Writer")]
    assert team["leadAgentId"] == "lead"


def test_a_document_a_task_names_is_held_by_its_agent(tmp_path: Path, settings: Settings) -> None:
    project = Watched(settings, started(tmp_path, settings, [task("a", skills=["workspace-ops"])]).project_id)

    assert "workspace-ops" in body(settings, project.tasks["a"])["skills"]


@pytest.mark.parametrize("souls", [True, False])
def test_souls_are_a_setting(tmp_path: Path, settings: Settings, souls: bool) -> None:
    with_or_without = settings.model_copy(update={"souls": souls})

    project = Watched(settings, started(tmp_path, with_or_without, [task("a")]).project_id)

    assert ("Besides your work" in instructions(settings, project.tasks["a"])) is souls


def on_file(folder: Path, settings: Settings, tasks: Sequence[Any], **fields: Any) -> Submitted:
    """A project with a plan of its own, which waits."""
    return file(folder, settings, tasks, plan_only=True, **fields)


def started(folder: Path, settings: Settings, tasks: Sequence[Any], **fields: Any) -> Submitted:
    return file(folder, settings, tasks, plan_only=False, **fields)


def file(folder: Path, settings: Settings, tasks: Sequence[Any], *, plan_only: bool, **fields: Any) -> Submitted:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "project.json").write_text(json.dumps({"title": "T", "tasks": list(tasks)} | fields))
    return submit(folder / "project.json", settings=settings, plan_only=plan_only, rehearse=True)


def body(settings: Settings, row: Any) -> dict[str, Any]:
    with get_database(settings).read() as connection:
        return definition_of(connection, row.definition_digest)


def instructions(settings: Settings, row: Any) -> str:
    return str(body(settings, row)["prompts"]["main"]["instructions"])


def at_once(*works: Any) -> list[Any]:
    """What each of these came to, begun together: its value, or the code of its refusal."""
    gate, outcomes = threading.Barrier(len(works)), [None] * len(works)

    def work(number: int) -> None:
        gate.wait()
        try:
            outcomes[number] = works[number]()
        except Refused as refused:
            outcomes[number] = refused.code

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return outcomes
