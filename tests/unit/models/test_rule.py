"""The stand-in by rule: read what the task names, write what it wants, finish; labelled all the way."""

import json

import pytest

from workers.models.model import ModelFault, Request, Situation, Tool, ToolResult
from workers.models.standin import StandIn

ALL = (
    "files__read",
    "files__list",
    "files__write",
    "docs__write_markdown",
    "docs__write_docx",
    "read_file",
    "write_file",
)
TASK = {
    "key": "report",
    "title": "Report",
    "instruction": "Compare inputs/prices.csv with notes.md (see https://example.com/a.html) into docs/report.md.",
    "deliverables": ["docs/report.md", "docs/report.docx", "data/out.json", "chart.png"],
}
INPUT = {
    "text": "...",
    "data": {"extra": "data/more.json"},
    "dependencies": {"list": {"status": "completed", "output": "x", "files": [{"path": "docs/list of all.md"}]}},
}
PLAN = {
    "type": "object",
    "required": ["goal", "tasks"],
    "properties": {
        "goal": {"type": "string"},
        "summary": {"type": "string"},
        "tasks": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["key", "role"]}},
    },
    "additionalProperties": False,
}


def ask(*, tools=ALL, output=None, **where):
    where = {"task": TASK, "input": INPUT, "agent_name": "Nadia", **where}
    return StandIn().generate(
        Request(
            tier="standard",
            tools=[Tool(name, "", {"type": "object"}) for name in tools],
            output=output,
            situation=Situation(**where),
        )
    )


def paths(reply):
    return [(call.name, call.arguments["path"]) for call in reply.calls]


def test_first_it_reads_dependency_files_and_those_the_task_names():
    reply = ask()
    assert paths(reply) == [
        ("files__read", "docs/list of all.md"),
        ("files__read", "inputs/prices.csv"),
        ("files__read", "notes.md"),
        ("files__read", "data/more.json"),
    ]


def test_it_uses_the_tools_it_was_offered_under_the_names_it_was_offered():
    assert {name for name, _ in paths(ask(tools=("read_file",)))} == {"read_file"}
    assert {name for name, _ in paths(ask(tools=("files.read",)))} == {"files.read"}


def test_it_looks_at_the_folder_when_nothing_is_named():
    task = {"key": "t", "title": "T", "instruction": "Say hello.", "deliverables": []}
    assert paths(ask(task=task, input={"text": "x"})) == [("files__list", ".")]


def test_then_it_writes_each_deliverable_with_the_tool_of_its_ending():
    reply = ask(turn=1, results=[ToolResult("1", "files.read", True, {"content": "a"}, "price,1\nprice,2")])
    assert paths(reply) == [
        ("docs__write_markdown", "docs/report.md"),
        ("docs__write_docx", "docs/report.docx"),
        ("files__write", "data/out.json"),
    ]
    assert "> price,2" in reply.calls[0].arguments["markdown"]
    assert "[stand-in]" in reply.calls[0].arguments["markdown"]
    assert json.loads(reply.calls[2].arguments["content"])["standIn"] is True


def test_markdown_goes_through_a_plain_writer_where_that_is_all_there_is():
    assert paths(ask(tools=("write_file",), turn=0)) == [
        ("write_file", "docs/report.md"),
        ("write_file", "data/out.json"),
    ]


def test_at_the_end_it_names_what_was_written_and_what_was_not():
    results = [
        ToolResult("1", "docs.write_markdown", True, {"path": "docs/report.md"}, ""),
        ToolResult("2", "docs.write_docx", False, None, "denied: a person said no"),
    ]
    reply = ask(turn=2, results=results)
    assert reply.calls == []
    assert "Written: docs/report.md." in reply.text
    assert "Not written: docs/report.docx, data/out.json, chart.png." in reply.text


def test_without_tools_it_finishes_at_once():
    assert (ask(tools=()).calls, ask(tools=()).finish_reason) == ([], "stop")


@pytest.mark.parametrize(
    "where", [{}, {"turn": 1}, {"turn": 2}, {"closing": True}, {"kind": "item", "item": 1, "index": 0}]
)
def test_every_text_is_labelled(where):
    assert ask(**where).text.startswith("[stand-in] ")


@pytest.mark.parametrize("where", [{"kind": "spawn"}, {"kind": "item", "item": "pear", "index": 2}, {"closing": True}])
def test_children_and_closing_calls_call_nothing(where):
    assert ask(**where).calls == []


def test_a_structured_answer_is_the_smallest_value_of_its_schema():
    schema = {
        "type": "object",
        "required": ["ok", "n"],
        "properties": {"ok": {"type": "boolean"}, "n": {"minimum": 2, "type": "integer"}},
    }
    assert json.loads(ask(output=schema).text) == {"ok": False, "n": 2}


def test_a_schema_beyond_it_asks_for_a_script():
    with pytest.raises(ModelFault, match="stand-in script") as caught:
        ask(output={"type": "string", "pattern": "^[0-9]{12}$"})
    assert caught.value.code == "model_failed"


def test_a_planner_gets_research_write_edit():
    plan = json.loads(ask(task=None, input="Bees in cities", output=PLAN).text)
    assert [task["key"] for task in plan["tasks"]] == ["research", "write", "edit"]
    assert [task["dependsOn"] for task in plan["tasks"]] == [[], ["research"], ["write"]]
    assert all("Bees in cities" in task["instruction"] for task in plan["tasks"])


def test_a_planner_whose_schema_takes_less_gets_less():
    strict = {
        "type": "object",
        "required": ["key", "role"],
        "properties": {key: {} for key in ("key", "title", "role", "instruction", "dependsOn")},
        "additionalProperties": False,
    }
    schema = {
        "type": "object",
        "properties": {"tasks": {"type": "array", "items": strict}},
        "additionalProperties": False,
    }
    plan = json.loads(ask(task=None, input={"brief": "Bees"}, output=schema).text)
    assert list(plan) == ["tasks"]
    assert len(plan["tasks"]) == 3
