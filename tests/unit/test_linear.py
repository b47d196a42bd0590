"""Schemas and values that would hold a worker for ever are answered at once, wherever a schema comes in."""

import time
from typing import Any

import pytest

from registry import schemas
from registry.errors import SkillError
from registry.graph.validation import validate
from registry.linear import ENDLESS, MULTIPLIED
from registry.skills.contract import SchemaContract

CATASTROPHE = {"type": "string", "pattern": "^(a+)+$"}
DOUBLING = {
    "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {"type": "string"}},
    "$ref": "#/$defs/d0",
}


def quickly(work: Any) -> Any:
    began = time.monotonic()
    found = work()
    assert time.monotonic() - began < 5
    return found


def test_a_pattern_that_backtracks_runs_in_linear_time() -> None:
    (flaw,) = quickly(lambda: schemas.flaws(CATASTROPHE, "a" * 5_000 + "!"))
    assert "does not match" in flaw.message


def test_references_that_multiply_are_counted_and_not_followed_to_their_end() -> None:
    (flaw,) = quickly(lambda: schemas.flaws(DOUBLING, "x"))
    assert flaw.message == MULTIPLIED


def test_a_schema_that_refers_to_itself_is_told() -> None:
    (flaw,) = quickly(lambda: schemas.flaws({"$ref": "#"}, "x"))
    assert flaw.message in (ENDLESS, MULTIPLIED)


def test_a_check_is_not_charged_for_the_one_before() -> None:
    quickly(lambda: schemas.flaws(DOUBLING, "x"))
    assert schemas.flaws({"$defs": {"a": {"type": "string"}}, "$ref": "#/$defs/a"}, "x") == []


def test_a_flaw_says_where_as_people_read_it() -> None:
    schema = {"properties": {"tasks": {"items": {"properties": {"key": {"type": "string"}}}}}}
    (flaw,) = schemas.flaws(schema, {"tasks": [{"key": 3}]})
    assert schemas.at(flaw.path) == "tasks[0].key"


def test_the_input_of_a_tool_with_a_foreign_schema_is_judged_in_linear_time() -> None:
    contract = SchemaContract({"type": "object", "properties": {"word": CATASTROPHE}})
    with pytest.raises(SkillError, match=r"word: .* does not match"):
        quickly(lambda: contract.check({"word": "a" * 5_000 + "!"}))


@pytest.mark.parametrize("pattern", ["^(?!a)", r"(a)\1"])
def test_a_definition_with_a_pattern_that_needs_backtracking_is_refused_where_it_stands(
    pattern: str,
) -> None:
    nodes = {
        "s": {"type": "core:start"},
        "t": {"type": "llm:generate", "output": {"type": "object", "properties": {"w": {"pattern": pattern}}}},
        "e": {"type": "core:end"},
    }
    edges = [{"from": "s", "to": "t"}, {"from": "t", "to": "e"}]
    definition = {"id": "a", "instructions": "x", "graph": {"nodes": nodes, "edges": edges}}
    (found,) = [finding for finding in validate(definition) if finding.code == "json_schema"]
    assert found.path == "graph.nodes.t.output"
    assert "look-around" in found.message


def test_a_pattern_nobody_asked_about_before_is_a_flaw_and_no_crash() -> None:
    (flaw,) = schemas.flaws({"pattern": "^(?!a)"}, "b")
    assert "look-around" in flaw.message
