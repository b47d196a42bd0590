"""llm.generate and llm.structured against a server that keeps the rules of the real API (spec: skills 7.17, 7.18)."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.settings import Settings
from registry.skills.context import Caller, SkillContext
from registry.skills.llm import SKILLS, capped
from registry.skills.registry import SkillRegistry, SkillResult
from registry.skills.structured import answer_faults, read_answer, schema_faults
from tests.stub_model import StubModel
from workers.models.asking import PlainModel

REGISTRY = SkillRegistry(SKILLS)
SCHEMA = {
    "type": "object",
    "properties": {"colours": {"type": "array", "items": {"type": "string"}, "minItems": 2}},
    "required": ["colours"],
    "additionalProperties": False,
}


class Desk:
    def __init__(self, home: Path, **settings: Any) -> None:
        self.settings = Settings(home=home, _env_file=None, **settings)  # type: ignore[call-arg]
        self.model = PlainModel(self.settings)

    def call(self, name: str, /, **arguments: Any) -> SkillResult:
        caller = Caller("person", tier="standard")
        return REGISTRY.invoke(name, {"prompt": "Name two colours."} | arguments, SkillContext(caller, llm=self.model))


@pytest.fixture
def server() -> Iterator[StubModel]:
    with StubModel([{"text": "Red and blue."}]) as made:
        yield made


@pytest.fixture
def desk(tmp_path: Path, server: StubModel) -> Desk:
    models = {
        "standard": {"name": "stub-standard", "input_price": 1, "output_price": 10},
        "fast": {"name": "stub-fast"},
        "deep": {"name": "stub-deep"},
    }
    return Desk(tmp_path, models=models, model_base_url=server.url, model_api_key="sk-test")


def test_a_question_is_answered_with_what_it_cost(desk: Desk, server: StubModel) -> None:
    result = desk.call("llm.generate", system="Be brief.", temperature=0.2, maxTokens=50, stop=["\n\n"])

    assert result.ok, result.error
    usage = result.output["usage"]
    assert result.output == {
        "text": "Red and blue.",
        "model": "stub-standard",
        "finishReason": "stop",
        "usage": usage,
        "costUsd": pytest.approx((usage["promptTokens"] + 10 * usage["completionTokens"]) / 1e6),
        "wired": True,
        "note": None,
        "standIn": False,
    }
    body = server.latest[-1]
    assert [m["role"] for m in body["messages"]] == ["system", "user"]
    assert (body["temperature"], body["max_tokens"], body["stop"]) == (0.2, 50, ["\n\n"])
    assert "tools" not in body and "response_format" not in body


def test_a_length_limit_an_unknown_price_and_missing_usage_are_told(desk: Desk, server: StubModel) -> None:
    server.turns = [{"text": "Re", "finish": "length", "usage": False}]
    said = desk.call("llm.generate", tier="fast").output

    assert (said["finishReason"], said["model"], said["costUsd"]) == ("length", "stub-fast", None)
    assert said["usage"]["estimated"] is True and said["usage"]["completionTokens"] >= 1


def test_a_tier_is_never_above_the_callers(desk: Desk) -> None:
    assert desk.call("llm.generate", tier="deep").output["model"] == "stub-standard"
    assert [capped(wanted, "standard") for wanted in (None, "fast", "standard", "deep")] == [
        "standard",
        "fast",
        "standard",
        "standard",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        {"prompt": ""},
        {"prompt": " \n"},
        {"prompt": "x" * 100_001},
        {"system": "x" * 20_001},
        {"tier": "huge"},
        {"temperature": 2.1},
        {"temperature": "hot"},
        {"maxTokens": 0},
        {"maxTokens": 8193},
        {"stop": ["a"] * 5},
        {"stop": [""]},
        {"stop": ["x" * 65]},
        {"tools": []},
        {"model": "other"},
    ],
)
def test_a_bad_question_is_refused_before_anything_is_asked(
    desk: Desk, server: StubModel, arguments: dict[str, Any]
) -> None:
    assert desk.call("llm.generate", **arguments).code == "invalid_input"
    assert server.requests == 0


@pytest.mark.parametrize(
    ("failure", "code", "retryable"),
    [
        ({"status": 429, "times": 9, "retryAfter": 60}, "rate_limited", True),
        ({"status": 429, "times": 9, "error": {"message": "out", "code": "insufficient_quota"}}, "remote_error", False),
        ({"status": 401, "times": 9, "error": {"message": "bad key sk-test"}}, "remote_error", False),
        ({"status": 400, "times": 9, "error": {"message": "no", "code": "content_filter"}}, "remote_error", False),
    ],
)
def test_a_failing_model_is_an_error_with_its_code(
    desk: Desk, server: StubModel, failure: dict[str, Any], code: str, retryable: bool
) -> None:
    server.turns = [{"fail": failure, "text": "x"}]
    refused = desk.call("llm.generate")

    assert (refused.code, refused.retryable) == (code, retryable)
    assert "sk-test" not in str(refused.to_json())


def test_what_passes_quickly_is_tried_again(desk: Desk, server: StubModel) -> None:
    server.turns = [{"fail": {"status": 503, "times": 1, "retryAfter": 0}, "text": "Red."}]

    assert desk.call("llm.generate").output["text"] == "Red."
    assert server.requests == 2


def test_no_model_is_no_answer_that_looks_like_one(tmp_path: Path) -> None:
    for desk in (Desk(tmp_path), Desk(tmp_path, models={"standard": {"name": "m"}})):
        said = desk.call("llm.generate")
        assert said.ok and (said.output["wired"], said.output["text"]) == (False, "")
        made = desk.call("llm.structured", schema=SCHEMA)
        assert made.ok and (made.output["wired"], made.output["value"], made.output["attempts"]) == (False, None, 0)
    unwired = REGISTRY.invoke("llm.generate", {"prompt": "x"}, SkillContext(Caller("person")))
    assert unwired.output["wired"] is False


def test_the_stand_in_says_that_it_stands_in_and_invents_no_data(tmp_path: Path) -> None:
    desk = Desk(tmp_path, stand_in=True)

    said = desk.call("llm.generate").output
    assert said["standIn"] is True and said["text"].startswith("[stand-in]") and said["costUsd"] == 0
    assert desk.call("llm.structured", schema=SCHEMA).output["wired"] is False


# Structured


def test_an_answer_that_fits_is_returned_as_data(desk: Desk, server: StubModel) -> None:
    server.turns = [{"text": '{"colours": ["red", "blue"]}'}]
    made = desk.call("llm.structured", schema=SCHEMA).output

    assert (made["value"], made["attempts"], made["wired"]) == ({"colours": ["red", "blue"]}, 1, True)
    assert made["costUsd"] > 0
    assert server.latest[-1]["response_format"] == {"type": "json_object"}


def test_an_answer_that_does_not_fit_is_asked_for_again_with_the_fault(desk: Desk, server: StubModel) -> None:
    server.turns = [
        {"text": "Here you are: red, blue"},
        {"text": '{"colours": ["red"], "mood": 1}'},
        {"text": 'Sure!\n```json\n{"colours": ["red", "blue"]}\n```'},
    ]
    made = desk.call("llm.structured", schema=SCHEMA).output

    assert (made["value"], made["attempts"]) == ({"colours": ["red", "blue"]}, 3)
    assert made["usage"]["promptTokens"] > 0
    words = [m["content"] for m in server.latest[-1]["messages"] if m["role"] == "user"]
    assert "not JSON" in words[1]
    assert "mood" in words[2] and "colours" in words[2]


def test_after_the_last_try_the_faults_are_told(desk: Desk, server: StubModel) -> None:
    server.turns = [{"text": json.dumps({"colours": list(range(20))})}]
    refused = desk.call("llm.structured", schema=SCHEMA, maxRetries=1)

    assert refused.code == "invalid_output"
    assert server.requests == 2
    assert 1 <= len(refused.details) <= 10
    assert refused.details[0].path == "value.colours[0]"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('  {"a": 1}\n', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}\n```', {"a": 1}),
        ('Look: {"a": {"b": 2}} done', {"a": {"b": 2}}),
        ('{"a": "```"}', {"a": "```"}),
    ],
)
def test_the_json_of_an_answer_is_found(text: str, value: Any) -> None:
    assert read_answer(text) == (value, None)


@pytest.mark.parametrize("text", ["", " ", "no", "{a: 1}", '{"a": NaN}', '{"a": 1', '{"a": 1, "a": 2}', "[" * 300])
def test_what_is_no_json_is_told(text: str) -> None:
    assert read_answer(text)[1]


def deep(levels: int) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        made = {"type": "object", "properties": {"a": made}}
    return made


def doubling(steps: int, **more: Any) -> dict[str, Any]:
    """Each of its parts refers twice to the next."""
    parts: dict[str, Any] = {f"p{n}": {"allOf": [{"$ref": f"#/$defs/p{n + 1}"}] * 2} for n in range(steps)}
    return {"type": "object", "$defs": parts | {f"p{steps}": {}}, "$ref": "#/$defs/p0"} | more


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (doubling(60), "schema"),
        ({"type": "object", "properties": {"a": {"pattern": "(" * 1000 + ")" * 1000}}}, "schema"),
        (doubling(60, unevaluatedProperties=False), "schema.unevaluatedProperties"),
        ({"type": "array", "items": {"type": "string"}}, "schema.type"),
        ({}, "schema.type"),
        ({"type": ["object"]}, "schema.type"),
        ({"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}, "schema.$schema"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, "schema.properties.a.type"),
        ({"type": "object", "required": "a"}, "schema.required"),
        ({"type": "object", "minProperties": -1}, "schema.minProperties"),
        ({"type": "object", "properties": {"a": {"$ref": "https://example.com/s.json"}}}, "schema.properties.a.$ref"),
        ({"type": "object", "properties": {"a": {"$ref": "other.json"}}}, "schema.properties.a.$ref"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}, "schema.properties.a.$ref"),
        ({"type": "object", "properties": {"a": {"$dynamicRef": "x#y"}}}, "schema.properties.a.$dynamicRef"),
        ({"type": "object", "$id": "https://example.com/"}, "schema.$id"),
        ({"type": "object", "allOf": [{"$ref": "#"}]}, "schema"),
        ({"type": "object", "properties": {"a": {"pattern": "(?=x)y"}}}, "schema.properties.a.pattern"),
        ({"type": "object", "properties": {"a": {"pattern": "(a)\\1"}}}, "schema.properties.a.pattern"),
        ({"type": "object", "patternProperties": {"(?<!a)b": {}}}, "schema.patternProperties.(?<!a)b"),
        ({"type": "object", "description": "x" * 33_000}, "schema"),
        ({"type": "object", "properties": {f"p{n}": {} for n in range(201)}}, "schema"),
        (deep(13), "schema" + ".properties.a" * 12),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_before_any_model_is_asked(
    desk: Desk, server: StubModel, schema: dict[str, Any], path: str
) -> None:
    refused = desk.call("llm.structured", schema=schema)

    assert (refused.code, server.requests) == ("invalid_input", 0)
    assert refused.details[0].path == path


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        deep(11),
        {"type": "object", "properties": {f"p{n}": {} for n in range(200)}},
        {"type": "object", "properties": {"$ref": {"type": "string"}, "pattern": {"const": {"$ref": "no"}}}},
        {
            "type": "object",
            "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
            "properties": {"first": {"$ref": "#/$defs/node"}},
        },
    ],
)
def test_a_schema_that_can_be_used_is(schema: dict[str, Any]) -> None:
    assert schema_faults(schema) == []
    assert answer_faults(schema, {}) == []


def test_a_hostile_pattern_and_answer_hold_nobody(desk: Desk, server: StubModel) -> None:
    text = "a" * 5_000 + "!"
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}},
        "patternProperties": {"^(b+)+$": {"type": "integer"}},
        "additionalProperties": {"type": "null"},
    }
    begun = time.monotonic()
    faults = answer_faults(schema, {"a": text, "b" * 5_000: "x", "b" * 5_000 + "!": 1})

    assert time.monotonic() - begun < 2
    assert len(faults) == 3
    assert schema_faults(schema) == []


def test_references_that_double_with_each_level_of_an_answer_hold_nobody() -> None:
    twice = {"properties": {"a": {"$ref": "#/$defs/node"}}}
    schema = {"type": "object", "$defs": {"node": {"allOf": [twice, twice]}}, "$ref": "#/$defs/node"}
    value: dict[str, Any] = {}
    for _ in range(60):
        value = {"a": value}

    assert schema_faults(schema) == []
    begun = time.monotonic()
    assert [fault.path for fault in answer_faults(schema, value)] == ["schema"]
    assert time.monotonic() - begun < 10
    assert answer_faults(schema, {"a": {"a": {}}}) == []


def test_the_counterpart_keeps_the_rules_of_the_real_api(server: StubModel) -> None:
    from tests.stub_model import broken_rule

    user = {"role": "user", "content": "hi"}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "x"}}]}
    good = {"model": "m", "messages": [user, call, {"role": "tool", "tool_call_id": "c1", "content": "1"}]}
    assert broken_rule(good) is None
    broken = [
        {"model": "m", "messages": []},
        {"messages": [user]},
        good | {"messages": [user, call]},
        good | {"messages": [user, call, user]},
        good | {"messages": [user, {"role": "tool", "tool_call_id": "c1", "content": "1"}]},
        good | {"tools": [{"function": {"name": "a.b", "parameters": {"type": "object"}}}]},
        good | {"tools": [{"function": {"name": "a", "parameters": {}}}]},
        good | {"temperature": 3},
        {"model": "m", "messages": [user], "response_format": {"type": "json_object"}},
    ]
    assert all(broken_rule(body) for body in broken)
