"""Stand-in scripts: read whole, or refused with every fault at its place (spec: project 2)."""

import time
from typing import Any

import pytest

from registry.errors import WrongUse
from registry.scripts import read_script

GOOD = {
    "tasks": {
        "profile": [
            {"say": "Looking.", "calls": [{"name": "files.read", "args": {"path": "inputs/a.csv"}, "id": "a"}]},
            {"calls": [{"name": "files.write", "args": {"path": "b.md", "content": "{{ byId.a.text | number(2) }}"}}]},
            {"say": "{% for r in results %}{{ r.output | tojson }}{% endfor %}"},
        ]
    },
    "agents": {"Helper": [{"say": "Done."}]},
    "items": {"profile": [{"say": "{{ item }} of {{ index }}"}]},
    "skills": {"llm.generate": ["a poem"], "llm.structured": [{"output": {"title": "{{ input.data }}", "n": None}}]},
    "delayMs": 250,
    "otherwise": "fail",
}


def faults(document: Any, **options: Any) -> dict[str, str]:
    with pytest.raises(WrongUse) as caught:
        read_script(document, **options)
    return {fault.path: fault.code for fault in caught.value.faults}


def test_a_good_script_is_read_whole() -> None:
    script = read_script(GOOD, tasks=["profile"])

    first, second, last = script.tasks["profile"]
    assert (first.say, first.calls[0].name, first.calls[0].id) == ("Looking.", "files.read", "a")
    assert second.calls[0].args["path"] == "b.md"
    assert last.calls == []
    assert script.skills["llm.generate"][0].say == "a poem"
    assert (script.delay_ms, script.otherwise) == (250, "fail")
    assert script.to_json()["skills"]["llm.structured"][0]["output"] == {"title": "{{ input.data }}", "n": None}


def test_an_empty_script_leaves_everything_to_the_rule() -> None:
    assert read_script({}).otherwise == "rule"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (None, {"": "wrong_type"}),
        ([], {"": "wrong_type"}),
        ({"task": {}}, {"task": "unknown_field"}),
        ({"tasks": {"a": {"say": "x"}}}, {"tasks.a": "wrong_type"}),
        ({"tasks": {"a": ["x"]}}, {"tasks.a[0]": "wrong_type"}),
        ({"tasks": {"a": [{"says": "x", "say": "y"}]}}, {"tasks.a[0].says": "unknown_field"}),
        ({"tasks": {"a": [{}]}}, {"tasks.a[0]": "required"}),
        ({"tasks": {"a": [{"calls": []}]}}, {"tasks.a[0]": "required"}),
        ({"tasks": {"a": [{"calls": [{"args": {}}]}]}}, {"tasks.a[0].calls[0].name": "required"}),
        ({"tasks": {"a": [{"calls": [{"name": "x", "args": []}]}]}}, {"tasks.a[0].calls[0].args": "wrong_type"}),
        ({"tasks": {"a": [{"output": "text"}]}}, {"tasks.a[0].output": "wrong_type"}),
        ({"delayMs": -1}, {"delayMs": "out_of_range"}),
        ({"delayMs": 1.5}, {"delayMs": "wrong_type"}),
        ({"otherwise": "guess"}, {"otherwise": "invalid_value"}),
        ({"skills": {"web.search": ["x"]}}, {"skills.web.search": "unknown_skill"}),
    ],
)
def test_bad_scripts_are_refused_at_the_place(document: Any, expected: dict[str, str]) -> None:
    assert faults(document) == expected


def test_keys_have_to_be_tasks_of_the_plan() -> None:
    document = {"tasks": {"profil": [{"say": "x"}]}, "items": {"other": [{"say": "x"}]}}

    with pytest.raises(WrongUse) as caught:
        read_script(document, tasks=["profile"])
    assert [str(fault) for fault in caught.value.faults] == [
        'items.other: unknown_task: no task has the key "other"',
        'tasks.profil: unknown_task: no task has the key "profil"; did you mean "profile"?',
    ]
    read_script(document)  # where the planner makes the plan, nothing is known yet


@pytest.mark.parametrize(
    "text",
    ["{{ x", "{% if %}", "{% for a in b %}", "{{ a | nubmer(2) }}", "{{ 1 + }}", "{% endif %}", "{# x", "{{ a b }}"],
)
def test_templates_that_cannot_be_read_are_faults_wherever_they_stand(text: str) -> None:
    turn = {"say": text, "calls": [{"name": "x", "args": {"deep": [{"er": text}]}}]}

    assert faults({"tasks": {"a": [turn]}, "skills": {"llm.structured": [{"output": {"k": text}}]}}) == {
        "tasks.a[0].say": "template",
        "tasks.a[0].calls[0].args.deep[0].er": "template",
        "skills.llm.structured[0].output.k": "template",
    }


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "{{ 'a' * 10 ** 10 }}",
        "{{ 'a' | center(10 ** 10) }}",
        "{{ 'a' | center(9999999999) }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ range(10 ** 9) | list }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}",
    ],
)
def test_judging_a_template_never_works_it_out(text: str) -> None:
    started = time.monotonic()
    try:
        read_script({"tasks": {"a": [{"say": text}]}})
    except WrongUse as error:
        assert [fault.code for fault in error.faults] == ["template"]

    assert time.monotonic() - started < 2
