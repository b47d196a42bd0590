"""Forms made of schemas: which field each part becomes, and what is made of what people fill in."""

from typing import Any

import pytest

from orchestrator.api.desk.forms import fields, payload
from registry.errors import Refused


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": ["a"]}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, "long"),
        ({"type": "string", "maxLength": 40}, "text"),
        ({"type": "integer"}, "integer"),
        ({"type": "boolean"}, "truth"),
        ({"enum": [1, "one"]}, "choice"),
        ({"type": "array", "items": {"enum": ["x"]}}, "choices"),
        ({"type": "array", "items": {"type": "string"}}, "json"),
        ({"anyOf": [{"type": "string"}]}, "json"),
        (True, "json"),
    ],
)
def test_each_part_of_a_schema_becomes_the_field_that_can_ask_for_it(schema: Any, kind: str) -> None:
    assert [field.kind for field in fields(of(a=schema))] == [kind]


@pytest.mark.parametrize(
    ("schema", "given", "made"),
    [
        ({"type": "integer"}, {"a": "7"}, {"a": 7}),
        ({"type": "number"}, {"a": "7.5"}, {"a": 7.5}),
        ({"type": "string"}, {"a": "7"}, {"a": "7"}),
        ({"type": "string"}, {"a": ""}, {"a": ""}),
        ({"enum": [1, "one", None]}, {"a": "0"}, {"a": 1}),
        ({"type": "boolean"}, {"a": "false"}, {"a": False}),
        ({"type": "array", "items": {"enum": ["x", "y"]}}, {"a": ["0", "1"]}, {"a": ["x", "y"]}),
        ({"type": "array", "items": {"enum": ["x", "y"]}}, {}, {"a": []}),
        ({"type": "object"}, {"a": '{"b": [1]}'}, {"a": {"b": [1]}}),
    ],
)
def test_what_is_filled_in_gets_the_type_of_its_field(schema: Any, given: Any, made: Any) -> None:
    assert payload(of(a=schema), given) == made


def test_what_is_optional_and_empty_is_left_out_and_what_nobody_asked_for_is_not_taken() -> None:
    schema = of(a={"type": "string"}, b={"type": "integer"}, c={"type": "boolean"})
    assert payload(schema, {"a": "x", "b": " ", "approved": "true"}) == {"a": "x"}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "integer"}, "seven"),
        ({"type": "object"}, "{"),
        ({"enum": ["x"]}, "1"),
        ({"enum": ["x"]}, "-1"),
        ({"type": "number"}, "NaN"),
    ],
)
def test_what_fits_no_field_is_refused_by_its_name(schema: Any, text: str) -> None:
    with pytest.raises(Refused, match="'a'") as refused:
        payload(of(a=schema), {"a": text})
    assert refused.value.code == "resume_validation_failed"


def test_a_schema_that_is_no_object_is_one_field() -> None:
    assert payload({"type": "integer"}, {"answer": "3"}) == 3
    assert payload({"anyOf": [{"type": "null"}, {"type": "object"}]}, {"answer": "null"}) is None
