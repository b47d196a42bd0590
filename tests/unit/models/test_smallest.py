"""The smallest value of a schema: it fits, or there is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.models.smallest import fits, smallest

SCHEMAS = {
    "anything": ({}, None),
    "object": ({"type": "object", "properties": {"a": {"type": "string"}}}, {}),
    "required": ({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}, {"a": ""}),
    "unknown required": ({"required": ["x"]}, {"x": None}),
    "list": ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [0, 0]),
    "unique list": ({"type": "array", "items": {"enum": ["aa", "b"]}, "minItems": 2, "uniqueItems": True}, ["b", "aa"]),
    "tuple": ({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "minItems": 2}, [1, 2]),
    "length": ({"type": "string", "minLength": 3}, "aaa"),
    "slug": ({"type": "string", "pattern": "^[a-z][a-z0-9-]*$"}, "a"),
    "date": ({"type": "string", "format": "date"}, "2026-01-01"),
    "at least": ({"type": "integer", "minimum": 3}, 3),
    "between": ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
    "multiple": ({"type": "integer", "multipleOf": 7, "minimum": 15}, 21),
    "shortest of an enum": ({"enum": ["long", "s", "mid"]}, "s"),
    "shortest branch": ({"anyOf": [{"type": "object", "required": ["x"]}, {"type": "integer"}]}, 0),
    "nullable": ({"type": ["object", "null"], "required": ["x"]}, None),
    "all of": (
        {"allOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"const": 1}}}]},
        {"a": None, "b": 1},
    ),
    "reference": ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer", "minimum": 1}}}, 1),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_value_is_small_and_fits(name):
    schema, value = SCHEMAS[name]
    assert smallest(schema) == value
    assert fits(schema, smallest(schema))


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {}},
        {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{9}$"},
        {"type": "no such type"},
        {"type": "object", "required": 5},
        {"type": "array", "minItems": "two"},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}},
        {
            "$ref": "#/$defs/x",
            "$defs": {"x": {"type": "object", "required": ["x"], "properties": {"x": {"$ref": "#/$defs/x"}}}},
        },
        {
            "$ref": "#/$defs/x",
            "$defs": {
                "x": {
                    "type": "object",
                    "required": ["l", "r"],
                    "properties": {"l": {"$ref": "#/$defs/x"}, "r": {"$ref": "#/$defs/x"}},
                }
            },
        },
    ],
)
def test_a_schema_without_a_small_value_is_a_lookup_error_and_ends_soon(schema):
    with pytest.raises(LookupError):
        smallest(schema)


leaves = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 2},
        {"type": "integer", "minimum": -3},
        {"type": "number", "maximum": -1},
        {"type": "boolean"},
        {"const": {"k": [1]}},
        {"enum": [None, "x"]},
    ]
)


def _grown(inner):
    objects = st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(
        lambda known: {"type": "object", "properties": known, "required": sorted(known), "additionalProperties": False}
    )
    lists = st.builds(
        lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 3)
    )
    branches = st.lists(inner, min_size=1, max_size=3).map(lambda found: {"anyOf": found})
    return objects | lists | branches


@given(st.recursive(leaves, _grown, max_leaves=8))
def test_every_plain_schema_has_a_value(schema):
    assert fits(schema, smallest(schema))
