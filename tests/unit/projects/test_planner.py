"""The planner: what it answers is judged like a file, told back to it, and never trusted (spec: skills 10)."""

from typing import Any

import pytest

from orchestrator import planner
from orchestrator.planner import read_plan
from registry.graph.validation import validate
from registry.skills import catalogue
from workers.models import planned

SKILLS = frozenset({"web.search", "files.read"})


def task(key: str, **fields: Any) -> dict[str, Any]:
    return {"key": key, "title": key, "role": "writer", "instruction": "Do it."} | fields


def codes(answer: Any) -> list[str]:
    return [f"{fault.path} {fault.code}" for fault in planner.faults(answer)]


def test_a_plan_that_can_be_used_is_taken_as_it_is() -> None:
    answer = {"goal": "A guide", "summary": "Two steps.", "tasks": [task("a"), task("b", dependsOn=["a"])]}

    found = read_plan(answer, "the brief", SKILLS)

    assert (found.goal, found.summary, found.note, found.dropped) == ("A guide", "Two steps.", None, [])
    assert [(one.key, one.depends_on) for one in found.tasks] == [("a", []), ("b", ["a"])]


def test_fields_a_plan_has_no_room_for_and_nulls_are_left_out() -> None:
    answer = {"tasks": [task("a", agent="coder", retries=5, input={"x": 1}, expectedOutput=None, why="!")], "n": 1}

    assert codes(answer) == []
    (one,) = read_plan(answer, "b", SKILLS).tasks
    assert (one.agent, one.retries, one.input) == (None, 1, None), "a planner names no agent and gives no input"


def test_unknown_skills_are_dropped_and_named_and_are_no_fault() -> None:
    answer = {"tasks": [task("a", skills=["web.search", "web.serach"]), task("b", skills=["house-style"])]}

    assert codes(answer) == []
    found = read_plan(answer, "b", SKILLS)
    assert [one.skills for one in found.tasks] == [["web.search"], []]
    assert found.dropped == ["house-style", "web.serach"]
    assert found.note == "skills nobody has were dropped: house-style, web.serach"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("no object", [" wrong_type"]),
        ({}, ["tasks required"]),
        ({"tasks": []}, ["tasks too_short"]),
        ({"tasks": [task(f"t{n}") for n in range(13)]}, ["tasks too_many_tasks"]),
        ({"tasks": [task(f"t{n}", role=f"r{n}") for n in range(7)]}, ["tasks too_many_roles"]),
        ({"tasks": [task("a", dependsOn=["a"])]}, ["tasks[0].dependsOn[0] self_dependency"]),
        (
            {"tasks": [task("a", dependsOn=["b"]), task("b", dependsOn=["a"])]},
            ["tasks[0].dependsOn[0] cycle"],
        ),
        (
            {"tasks": [*(task(f"t{n}") for n in range(9)), task("end", dependsOn=[f"t{n}" for n in range(9)])]},
            ["tasks[9].dependsOn too_long"],
        ),
        ({"tasks": [task("a", deliverables=["../x"])]}, ["tasks[0].deliverables[0] path_escape"]),
        (
            {"tasks": [task("A!", dependsOn=["x"]), task("b", tier="huge")]},
            ["tasks[0].dependsOn[0] unknown_dependency", "tasks[0].key invalid_value", "tasks[1].tier invalid_value"],
        ),
    ],
)
def test_every_fault_is_named_at_once(answer: Any, expected: list[str]) -> None:
    assert codes(answer) == expected


def test_a_plan_of_no_use_becomes_one_task_for_the_lead() -> None:
    found = read_plan({"tasks": [task("a", dependsOn=["a"])]}, "Write about spring.", SKILLS)

    (one,) = found.tasks
    assert (one.role, one.instruction) == ("lead", "Write about spring.")
    assert found.note is not None
    assert "tasks[0].dependsOn[0]: self_dependency" in found.note


def test_a_round_tells_the_faults_and_does_not_drown_in_them() -> None:
    few = planner.repair(planner.faults({"tasks": [task("a", dependsOn=["b"])]}))
    assert 'tasks[0].dependsOn[0]: unknown_dependency: no task has the key "b"' in few

    many = planner.repair(planner.faults({"tasks": [task("!" * 200) for _ in range(12)] + [task("x" * 9_000)] * 0}))
    assert len(many) < 10_000
    lots = planner.repair(planner.faults({"tasks": [{"key": 1} for _ in range(12)]}))
    assert "more" in lots.splitlines()[-2]


def test_the_planner_is_a_good_definition_and_holds_no_tool() -> None:
    agent = planner.planner(catalogue.build())

    assert validate(agent.to_json()) == []
    assert (agent.skills, agent.enabled_packs()) == ([], {})


def test_the_plan_of_the_stand_in_is_one_the_planner_may_make() -> None:
    made = planned.plan({"text": "Write about spring."}, planner.SCHEMA)

    assert codes(made) == []
    assert made["goal"]
