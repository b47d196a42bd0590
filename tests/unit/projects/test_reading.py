"""Project files: a good one is read whole, a bad one is refused with every fault at its place (spec: project 1)."""

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from registry.errors import WrongUse
from registry.graph.checks.known import Registries
from registry.graph.targets import AgentCard
from registry.plans import PlanLimits
from registry.projects.inputs import InputLimits, copy_inputs
from registry.projects.reading import Limits, Project, read_project, read_submission

KNOWN = Registries(
    skills=frozenset({"files.read", "files.write", "web.search", "math.evaluate"}),
    documents=frozenset({"workspace-ops"}),
    agents=(
        AgentCard("researcher", "Researcher"),
        AgentCard("0198c0de-saved", "Ada"),
        AgentCard("0198beef-saved", "Ada"),
    ),
)

GOOD = """
title: The weather of Seattle
brief: Four years of weather in a page.
inputs:
  - weather.csv
  - { path: notes, as: background }
tasks:
  - key: profile
    role: Analyst
    instruction: Look at the data.
    skills: [files.read, workspace-ops]
  - key: figures
    title: Monthly figures
    role: analyst
    instruction: Compute them.
    dependsOn: [profile]
    tier: deep
    deliverables: [out/./figures.csv]
    retries: 0
  - key: brief
    role: writer
    instruction: Write the brief.
    dependsOn: [profile, figures]
    agent: editor-in-chief
agents:
  editor-in-chief:
    instructions: You edit.
    skills: [files.read]
mode: auto
permissions: { process: deny }
budget: { maxCostUsd: 1.5, maxParallel: 2 }
script: script.yaml
key: weather-1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "weather.csv").write_text("date,temp\n")
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    (tmp_path / "notes" / "a.md").write_text("a")
    (tmp_path / "notes" / "deep" / "b.md").write_text("b")
    (tmp_path / "script.yaml").write_text("tasks: { profile: [ { say: done } ] }")
    return tmp_path


def read(folder: Path, text: str, *, name: str = "project.yaml", limits: Limits | None = None) -> Project:
    (folder / name).write_text(text)
    return read_project(folder / name, KNOWN, limits)


def faults(folder: Path, document: Any, **options: Any) -> dict[str, str]:
    """Path -> code of every fault; a dict is written as JSON, a text as it is."""
    text, name = (document, "project.yaml") if isinstance(document, str) else (json.dumps(document), "project.json")
    with pytest.raises(WrongUse) as caught:
        read(folder, text, name=name, **options)
    assert len({f.path for f in caught.value.faults}) == len(caught.value.faults), "two faults at one place"
    return {fault.path: fault.code for fault in caught.value.faults}


def messages(folder: Path, document: Any) -> list[str]:
    with pytest.raises(WrongUse) as caught:
        read(folder, json.dumps(document), name="project.json")
    return [str(fault) for fault in caught.value.faults]


def task(key: str, **fields: Any) -> dict[str, Any]:
    return {"key": key, "role": "writer", "instruction": f"Do {key}.", **fields}


def project(*tasks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"title": "A project", "tasks": list(tasks), **fields}


def test_a_good_file_is_read_whole(folder: Path) -> None:
    found = read(folder, GOOD)

    profile, figures, brief = found.file.tasks
    assert (profile.title, figures.title) == ("profile", "Monthly figures")
    assert (profile.tier, profile.retries, figures.retries) == ("standard", 1, 0)
    assert figures.deliverables == ["out/figures.csv"]
    assert brief.depends_on == ["profile", "figures"]
    assert (found.file.approvals, found.file.priority, found.file.mode) == ("park", 5, "auto")
    assert (found.file.budget.max_cost_usd, found.file.budget.max_parallel) == (1.5, 2)
    assert found.agents["editor-in-chief"].id == "editor-in-chief"
    assert [(f.target, f.source.bytes) for f in found.inputs] == [
        ("inputs/weather.csv", 10),
        ("inputs/background/a.md", 1),
        ("inputs/background/deep/b.md", 1),
    ]
    assert found.script is not None
    assert found.script.tasks["profile"][0].say == "done"


def test_json_is_read_like_yaml(folder: Path) -> None:
    found = read(folder, json.dumps(project(task("a"))), name="project.json")

    assert [one.key for one in found.file.tasks] == ["a"]


DOTS = "the path has a '..' segment; give a path relative to the workspace, with '/' between its parts"


def test_every_fault_of_a_file_is_told_at_its_place(folder: Path) -> None:
    found = messages(
        folder,
        {
            "titel": "x",
            "inputs": ["missing.csv", 5],
            "tasks": [
                task("a", skills=["web.serch"]),
                task("b", dependsOn=["c", "b", "aa"], retries=9),
                task("a", instruction=7, tier="slow", deliverables=["../out"]),
                {"key": "Bad Key"},
            ],
            "priority": "high",
        },
    )

    assert found == [
        'inputs[0]: missing: there is no "missing.csv" beside the project file',
        "inputs[1]: wrong_type: must be an object, found a number",
        "priority: wrong_type: must be a whole number, found a text",
        'tasks[0].skills[0]: unknown_skill: there is no skill "web.serch"; did you mean "web.search"?',
        'tasks[1].dependsOn[0]: unknown_dependency: no task has the key "c"',
        'tasks[1].dependsOn[1]: self_dependency: "b" cannot wait for itself',
        'tasks[1].dependsOn[2]: unknown_dependency: no task has the key "aa"; did you mean "a"?',
        "tasks[1].retries: out_of_range: must be at most 5, found 9",
        f"tasks[2].deliverables[0]: path_escape: {DOTS}",
        "tasks[2].instruction: wrong_type: must be a text, found a number",
        'tasks[2].key: duplicate_key: tasks[0] has the key "a" too',
        "tasks[2].tier: invalid_value: must be 'fast', 'standard' or 'deep', found \"slow\"",
        "tasks[3].instruction: required: is required",
        'tasks[3].key: invalid_value: must match ^[a-z0-9][a-z0-9_-]*$, found "Bad Key"',
        "tasks[3].role: required: is required",
        'titel: unknown_field: there is no field "titel" here; did you mean "title"?',
        "title: required: is required",
    ]


def test_unknown_fields_are_answered_with_the_nearest_one(folder: Path) -> None:
    found = messages(
        folder,
        project(
            task("a", dependson=[], expectedoutpt="x"),
            budget={"maxCost": 1},
            inputs=[{"path": "weather.csv", "to": "x"}],
        ),
    )

    assert found == [
        'budget.maxCost: unknown_field: there is no field "maxCost" here; did you mean "maxCostUsd"?',
        'inputs[0].to: unknown_field: there is no field "to" here',
        'tasks[0].dependson: unknown_field: there is no field "dependson" here; did you mean "dependsOn"?',
        'tasks[0].expectedoutpt: unknown_field: there is no field "expectedoutpt" here; did you mean "expectedOutput"?',
    ]


def test_a_cycle_is_named(folder: Path) -> None:
    found = messages(
        folder,
        project(task("a", dependsOn=["d", "c"]), task("b", dependsOn=["a"]), task("c", dependsOn=["b"]), task("d")),
    )

    assert found == ["tasks[0].dependsOn[1]: cycle: these wait for each other: a -> c -> b -> a"]


def test_two_cycles_are_two_faults(folder: Path) -> None:
    found = faults(
        folder,
        project(
            task("a", dependsOn=["b"]),
            task("b", dependsOn=["a"]),
            task("c", dependsOn=["d"]),
            task("d", dependsOn=["c"]),
        ),
    )

    assert found == {"tasks[0].dependsOn[0]": "cycle", "tasks[2].dependsOn[0]": "cycle"}


def test_a_chain_of_the_largest_plan_is_no_cycle_and_quickly_read(folder: Path) -> None:
    tasks = [task(f"t{n}", dependsOn=[f"t{n - 1}"] if n else []) for n in range(5_000)]

    assert len(read(folder, json.dumps(project(*tasks)), name="project.json").file.tasks) == 5_000
    tasks[0]["dependsOn"] = ["t4999"]
    assert faults(folder, project(*tasks)) == {"tasks[0].dependsOn[0]": "cycle"}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("title: x\n  tasks: y\n", "project.yaml:2:8"),
        ("title: [x\n", "project.yaml:2:1"),
        ("title: x\nbrief: y\ntitle: z\n", "project.yaml:3:1"),
        ("title: &a x\nbrief: *a\n", "project.yaml:1:8"),
    ],
)
def test_yaml_that_cannot_be_read_is_told_with_line_and_column(folder: Path, text: str, place: str) -> None:
    assert faults(folder, text) == {place: "invalid_yaml"}


def test_json_that_cannot_be_read_is_told(folder: Path) -> None:
    (folder / "project.json").write_text('{"title": "a", "title": "b"}')
    with pytest.raises(WrongUse) as caught:
        read_project(folder / "project.json", KNOWN)

    assert [fault.code for fault in caught.value.faults] == ["invalid_json"]


@pytest.mark.parametrize("text", ["", "[]", "- a", "hello", "5"])
def test_what_is_no_object_is_refused(folder: Path, text: str) -> None:
    assert faults(folder, text) == {"": "wrong_type"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"title": "x" * 121}, {"title": "too_long"}),
        ({"title": ""}, {"title": "too_short"}),
        ({"title": " "}, {"title": "blank"}),
        ({"title": "two\nlines"}, {"title": "invalid_value"}),
        ({"brief": "x" * 4001}, {"brief": "too_long"}),
        ({"mode": "wild"}, {"mode": "invalid_value"}),
        ({"approvals": "never"}, {"approvals": "invalid_value"}),
        ({"permissions": {"network": "maybe"}}, {"permissions.network": "invalid_value"}),
        ({"permissions": {"world": "allow"}}, {"permissions": "permission_world"}),
        ({"budget": {"maxCostUsd": 0}}, {"budget.maxCostUsd": "out_of_range"}),
        ({"budget": {"maxParallel": 1.5}}, {"budget.maxParallel": "wrong_type"}),
        ({"priority": 10}, {"priority": "out_of_range"}),
        ({"priority": True}, {"priority": "wrong_type"}),
        ({"key": ""}, {"key": "too_short"}),
        ({"tasks": "a"}, {"tasks": "wrong_type"}),
        ({"tasks": None, "brief": "b"}, {"tasks": "wrong_type"}),
        ({"tasks": ["a"]}, {"tasks[0]": "wrong_type"}),
        ({"agents": ["a"]}, {"agents": "wrong_type"}),
        ({"agents": {"a": "b"}}, {"agents.a": "wrong_type"}),
        ({"inputs": "weather.csv"}, {"inputs": "wrong_type"}),
        ({"script": 5}, {"script": "wrong_type"}),
        ({"approved": True}, {"approved": "unknown_field"}),
    ],
)
def test_fields_out_of_bounds(folder: Path, fields: dict[str, Any], expected: dict[str, str]) -> None:
    assert faults(folder, project(task("a")) | fields) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"key": "x" * 41}, {"tasks[0].key": "too_long"}),
        ({"key": 5}, {"tasks[0].key": "wrong_type"}),
        ({"role": "x" * 41}, {"tasks[0].role": "too_long"}),
        ({"instruction": "x" * 4001}, {"tasks[0].instruction": "too_long"}),
        ({"instruction": " \n"}, {"tasks[0].instruction": "blank"}),
        ({"expectedOutput": "x" * 501}, {"tasks[0].expectedOutput": "too_long"}),
        ({"deliverables": ["a"] * 6}, {"tasks[0].deliverables": "too_long"}),
        ({"deliverables": ["/etc/passwd"]}, {"tasks[0].deliverables[0]": "path_escape"}),
        ({"deliverables": [".Officina/x"]}, {"tasks[0].deliverables[0]": "path_escape"}),
        ({"deliverables": ["a/"]}, {"tasks[0].deliverables[0]": "invalid_input"}),
        ({"dependsOn": "b"}, {"tasks[0].dependsOn": "wrong_type"}),
        ({"dependsOn": ["b", "b"]}, {"tasks[0].dependsOn[1]": "duplicate_dependency"}),
        ({"skills": [1]}, {"tasks[0].skills[0]": "wrong_type"}),
        ({"skills": ["workspace-opps"]}, {"tasks[0].skills[0]": "unknown_skill"}),
        ({"agent": "researcherr"}, {"tasks[0].agent": "unknown_agent"}),
        ({"agent": "Ada"}, {"tasks[0].agent": "unclear_agent"}),
        ({"retries": -1}, {"tasks[0].retries": "out_of_range"}),
        ({"status": "completed"}, {"tasks[0].status": "unknown_field"}),
    ],
)
def test_task_fields_out_of_bounds(folder: Path, fields: dict[str, Any], expected: dict[str, str]) -> None:
    assert faults(folder, project(task("a") | fields, task("b"))) == expected


def test_a_number_for_a_text_is_not_turned_into_one(folder: Path) -> None:
    assert faults(folder, "title: 2015\nbrief: x\n") == {"title": "wrong_type"}


def test_yaml_words_stay_texts(folder: Path) -> None:
    found = read(folder, "title: no\nbrief: 2012-01-01\n")

    assert (found.file.title, found.file.brief) == ("no", "2012-01-01")


def test_the_numbers_of_tasks_and_roles_are_limited(folder: Path) -> None:
    limits = Limits(plan=PlanLimits(tasks=3, roles=2))

    assert faults(folder, project(*(task(f"t{n}") for n in range(4))), limits=limits) == {"tasks": "too_many_tasks"}
    roles = [task(f"t{n}", role=role) for n, role in enumerate(("Writer", " copywriter", "poet"))]
    read(folder, json.dumps(project(*roles)), name="project.json", limits=limits)
    roles[0]["role"] = "chef"
    assert faults(folder, project(*roles), limits=limits) == {"tasks": "too_many_roles"}


def test_a_brief_is_needed_where_no_tasks_are(folder: Path) -> None:
    assert faults(folder, {"title": "x"}) == {"brief": "required"}
    assert faults(folder, {"title": "x", "tasks": []}) == {"brief": "required"}
    assert read(folder, "title: x\nbrief: y\n").file.tasks == []


def test_inputs_that_are_not_plain_files_in_the_folder_are_refused(folder: Path, tmp_path_factory: Any) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("s")
    (folder / "link").symlink_to(outside / "secret")
    (folder / "linked").symlink_to(outside)
    (folder / "holds").mkdir()
    (folder / "holds" / "link").symlink_to(outside / "secret")
    os.link(outside / "secret", folder / "hard")
    os.mkfifo(folder / "pipe")
    (folder / "odd").mkdir()
    (folder / "odd" / "tail.").write_text("x")
    here = Path.cwd()
    os.chdir(folder)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
    os.chdir(here)
    names = {
        "link": "link",
        "linked": "link",
        "linked/secret": "link",
        "holds": "link",
        "hard": "link",
        "pipe": "unsupported_type",
        "socket": "unsupported_type",
        "../outside/secret": "outside",
        str(outside / "secret"): "outside",
        "~/secret": "outside",
        "a\\b": "outside",
        "nothing": "missing",
        "weather.csv/below": "missing",
        "odd": "invalid_input",
    }

    found = faults(folder, project(task("a"), inputs=list(names)))

    assert found == {f"inputs[{index}]": code for index, code in enumerate(names.values())}


@pytest.mark.parametrize("as_", ["../x", "/etc/x", ".officina/x", "x."])
def test_an_input_cannot_be_called_what_no_file_may_be(folder: Path, as_: str) -> None:
    found = faults(folder, project(task("a"), inputs=[{"path": "weather.csv", "as": as_}]))

    assert list(found) == ["inputs[0]"]


def test_two_inputs_of_one_name_are_refused(folder: Path) -> None:
    (folder / "notes" / "weather.csv").write_text("other")

    assert faults(folder, project(task("a"), inputs=["weather.csv", "notes/weather.csv"])) == {
        "inputs[1]": "duplicate_input"
    }


def test_inputs_have_to_fit_the_workspace(folder: Path) -> None:
    limits = Limits(inputs=InputLimits(files=2, bytes=11))

    with pytest.raises(WrongUse) as caught:
        read(folder, json.dumps(project(task("a"), inputs=["weather.csv", "notes"])), name="p.json", limits=limits)
    assert [(fault.path, fault.code) for fault in caught.value.faults] == [("inputs", "quota"), ("inputs", "quota")]


def test_inputs_are_copied_to_where_agents_read_them(folder: Path, tmp_path: Path) -> None:
    found = read(folder, GOOD)

    copied = copy_inputs(found.inputs, tmp_path / "workspace")

    assert [one.path for one in copied] == [one.target for one in found.inputs]
    assert (tmp_path / "workspace" / "inputs" / "weather.csv").read_text() == "date,temp\n"
    assert (tmp_path / "workspace" / "inputs" / "background" / "deep" / "b.md").read_text() == "b"


def test_an_input_swapped_for_a_link_after_the_check_is_not_copied(folder: Path, tmp_path: Path) -> None:
    found = read(folder, GOOD)
    (folder / "weather.csv").unlink()
    (folder / "weather.csv").symlink_to("/etc/passwd")

    with pytest.raises(WrongUse):
        copy_inputs(found.inputs, tmp_path / "workspace")
    assert not (tmp_path / "workspace" / "inputs" / "weather.csv").exists()


def test_agents_come_inline_or_from_files(folder: Path) -> None:
    (folder / "critic.yaml").write_text("name: Critic\ninstructions: You doubt.\n")

    found = read(folder, json.dumps(project(task("a", agent="Critic"), agents={"critic": {"file": "critic.yaml"}})))

    assert found.agents["critic"].name == "Critic"


def test_faults_of_agents_stand_below_their_id(folder: Path) -> None:
    (folder / "broken.yaml").write_text("name: [")
    (folder / "wrong.yaml").write_text("skils: []")
    agents = {
        "a": {"instructions": "x", "tier": "slow", "skills": ["web.serch"]},
        "b": {"id": "c", "instructions": "x"},
        "c": {"file": "nowhere.yaml"},
        "d": {"file": "../d.yaml"},
        "e": {"file": "broken.yaml"},
        "f": {"file": "wrong.yaml"},
        "g": {"instructions": "x", "skills": ["web.serch"]},
        "h": {"file": 5},
    }

    found = faults(folder, project(task("t", agent="a"), agents=agents))

    assert found["agents.a.tier"] == "definition_shape"
    assert found["agents.f.skils"] == "unknown_field"
    assert found["agents.g.skills[0]"] == "skill_unknown"
    assert {key: found[f"agents.{key}"] for key in "bcdeh"} == {
        "b": "id_mismatch",
        "c": "missing",
        "d": "outside",
        "e": "invalid_yaml",
        "h": "wrong_type",
    }


def test_faults_of_the_script_stand_below_it(folder: Path) -> None:
    (folder / "script.yaml").write_text("tasks: { b: [ { say: '{{ x' } ] }\n")
    assert faults(folder, project(task("a"), script="script.yaml")) == {
        "script.tasks.b": "unknown_task",
        "script.tasks.b[0].say": "template",
    }
    assert faults(folder, project(task("a"), script="nowhere.yaml")) == {"script": "missing"}
    assert faults(folder, project(task("a"), script="../script.yaml")) == {"script": "outside"}
    (folder / "bad.yaml").write_text("a: [")
    assert faults(folder, project(task("a"), script="bad.yaml")) == {"script": "invalid_yaml"}


def test_the_digest_tells_files_apart_and_not_their_layout(folder: Path) -> None:
    first = read(folder, "title: x\nbrief: y\n").digest

    assert read(folder, "brief: 'y'\n\ntitle: \"x\"\n").digest == first
    assert read(folder, "title: x\nbrief: z\n").digest != first


def test_a_text_that_is_no_file_is_the_brief(folder: Path) -> None:
    found = read_submission("\n# Write a poem\nabout rain\n", KNOWN)

    assert (found.file.title, found.file.brief) == ("Write a poem", "# Write a poem\nabout rain")


def test_a_file_of_text_is_the_brief(folder: Path) -> None:
    (folder / "brief.md").write_text("\ufeff# " + "A very long title " * 20 + "\n\nText.")

    found = read_submission(str(folder / "brief.md"), KNOWN)
    assert len(found.file.title) <= 120
    assert found.file.title.startswith("A very long title")


def test_a_name_mistyped_is_not_a_brief(folder: Path) -> None:
    for name in ("projct.yaml", str(folder / "brief.md"), "a/b.json"):
        with pytest.raises(WrongUse) as caught:
            read_submission(name, KNOWN)
        assert [fault.code for fault in caught.value.faults] == ["missing"]


@pytest.mark.parametrize("text", ["", "  \n ", "x" * 4_001])
def test_a_brief_has_its_bounds(text: str) -> None:
    with pytest.raises(WrongUse):
        read_submission(text, KNOWN)


def test_binary_and_huge_files_are_refused_unread(folder: Path) -> None:
    (folder / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with (folder / "huge.yaml").open("wb") as file:
        file.truncate(10**10)

    for name, code in (("binary.yaml", "not_text"), ("huge.yaml", "too_long")):
        with pytest.raises(WrongUse) as caught:
            read_project(folder / name, KNOWN)
        assert [fault.code for fault in caught.value.faults] == [code]
