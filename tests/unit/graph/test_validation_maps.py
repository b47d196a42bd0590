"""What validation says: maps with their bodies, and waits."""

import pytest

from tests.unit.graph.definitions import agent, arrows, chain, found, mapping

BUDGET = {"budget": {"maxSteps": 9}}


def test_a_map_has_items_a_body_and_an_enter():
    made = mapping(
        {"items": None, "body": None, "enter": None}, {"y": {"type": "core:start"}, "w": {"type": "core:end"}}
    )
    paths = [item for item in found(made) if item[0].startswith("map_")]
    assert paths == [
        ("map_fields", "graph.nodes.m.items"),
        ("map_fields", "graph.nodes.m.body"),
        ("map_enter", "graph.nodes.m.enter"),
    ]


@pytest.mark.parametrize("body", ["w", ["w", 1], ["w", "y", "w"], {}])
def test_a_body_is_a_list_of_distinct_ids(body):
    made = mapping({"body": body})
    assert [item for item in found(made) if item[0] == "map_fields"] == [("map_fields", "graph.nodes.m.body")]


def test_an_empty_body_has_no_enter_and_no_yield():
    made = mapping({"body": []})
    assert [item for item in found(made) if item[0].startswith("map_")] == [
        ("map_fields", "graph.nodes.m.body"),
        ("map_enter", "graph.nodes.m.enter"),
        ("map_no_yield", "graph.nodes.m"),
    ]


def test_a_node_is_in_the_body_of_one_map():
    made = mapping(body={"m2": {"type": "control:map", "items": [1], "enter": "w", "body": ["w", "y"]}})
    made["graph"]["edges"] = arrows("start think", "think m", "m m2", "m2 end", "w y")
    assert found(made) == [("map_fields", "graph.nodes.m2.body")]


def test_items_are_known_or_warned_of_and_at_most_32():
    assert found(mapping({"items": "$state.items"})) == [("map_items_dynamic", "graph.nodes.m.items")]
    assert found(mapping({"items": list(range(32))})) == []
    assert found(mapping({"items": list(range(33))})) == [("map_item_limit", "graph.nodes.m.items")]
    assert found(mapping({"items": {"a": 1}})) == [("definition_shape", "graph.nodes.m.items")]


def test_a_body_names_nodes():
    assert found(mapping({"body": ["w", "y", "ghost", "phantom"]})) == [("map_body_unknown", "graph.nodes.m.body")]


def test_no_map_end_or_handoff_is_in_a_body():
    inside = {
        "m2": {"type": "control:map", "items": [1], "enter": "z", "body": ["z"]},
        "z": {"type": "control:yield"},
        "e": {"type": "core:end"},
        "h": {"type": "control:handoff", "agentId": "bob"},
    }
    made = mapping({"body": ["w", "y", "m2", "e", "h"]}, inside, ["w y", "m2 y", "h y"])
    assert found(made) == [
        ("map_nested", "graph.nodes.m.body"),
        ("end_in_map_body", "graph.nodes.m.body"),
        ("handoff_in_map_body", "graph.nodes.m.body"),
    ]


@pytest.mark.parametrize("enter", ["m", "ghost", 5, ""])
def test_enter_is_a_node_of_the_body(enter):
    assert found(mapping({"enter": enter})) == [("map_enter", "graph.nodes.m.enter")]


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({"timeoutMs": 0}, ["timeoutMs"]),
        ({"timeoutMs": "1"}, ["timeoutMs"]),
        ({"timeoutMs": True, "onTimeout": "stop"}, ["timeoutMs", "onTimeout"]),
        ({"onTimeout": "partial"}, ["onTimeout"]),
        ({"timeoutMs": 0.5, "onTimeout": "partial"}, []),
    ],
)
def test_a_maps_time_out_is_positive_and_onTimeout_goes_with_it(fields, paths):  # noqa: N802 -- the field's name
    assert found(mapping(fields)) == [("map_timeout", f"graph.nodes.m.{path}") for path in paths]


def test_a_maps_instruction_and_tokens_are_bounded():
    for text in ("", " \n", "a" * 8001):
        assert found(mapping({"instruction": text})) == [("map_instruction", "graph.nodes.m.instruction")]
    assert found(mapping({"instruction": 5})) == [("definition_shape", "graph.nodes.m.instruction")]
    assert found(mapping({"instruction": "a" * 8000, "maxTokensPerItem": 1})) == []
    for number in (0, 1.5, "1", True):
        assert found(mapping({"maxTokensPerItem": number})) == [("map_max_tokens", "graph.nodes.m.maxTokensPerItem")]


def test_nothing_leads_out_of_a_body():
    made = mapping(
        {"body": ["w", "y", "g"]},
        {"g": {"type": "control:goto", "target": "'end'"}},
        ["w g when $input", "w end when $item", "w think when $index", "w y", "y end"],
        **BUDGET,
    )
    assert found(made) == [
        ("edge_ignored", "graph.edges[7]"),
        ("map_escape", "graph.edges.from:w"),
        ("map_escape", "graph.edges.from:g"),
    ]


def test_an_item_can_reach_a_yield():
    assert found(mapping({"body": ["w"]}, edges=["w y"])) == [
        ("map_escape", "graph.edges.from:w"),
        ("map_no_yield", "graph.nodes.m"),
        ("yield_outside_map", "graph.nodes.y"),
    ]
    lost = mapping({"body": ["w", "y", "v"]}, {"v": {"type": "control:assign", "patch": {}}}, ["w v", "v w"], **BUDGET)
    assert found(lost) == [("map_no_yield", "graph.nodes.m")]


def test_a_yield_reached_by_a_literal_goto_counts():
    made = mapping({"body": ["w", "y", "g"]}, {"g": {"type": "control:goto", "target": "'y'"}}, ["w g"])
    assert found(made) == []


def test_a_yield_stands_in_a_body_and_its_value_is_an_expression():
    made = agent({"y": {"type": "control:yield", "value": "done"}}, arrows())
    made["graph"]["edges"] = arrows("start think", "think y when $input", "think end")
    assert found(made) == [("yield_outside_map", "graph.nodes.y"), ("yield_value", "graph.nodes.y.value")]
    for value in (5, None, {}, "done"):
        assert found(mapping(body={"y": {"type": "control:yield", "value": value}})) == [
            ("yield_value", "graph.nodes.y.value")
        ]


@pytest.mark.parametrize(
    "fields",
    [
        {"delayMs": 5, "untilMs": "$state.t"},
        {"delayMs": 5, "timeoutMs": 5},
        {"untilMs": "$state.t", "onTimeout": "fail"},
        {"delayMs": 5, "resumeSchema": {}},
        {"untilMs": 5},
        {"untilMs": "5"},
        {"untilMs": None},
        {"delayMs": 5, "untilMs": 7, "timeoutMs": 5, "onTimeout": "x"},
    ],
)
def test_a_wait_is_a_sleep_or_a_gate(fields):
    assert found(chain({"type": "control:wait", **fields})) == [("wait_mode", "graph.nodes.x")]


@pytest.mark.parametrize("delay", [0, -1, 1.5, "5", 604800001, True, None])
def test_a_sleep_is_a_millisecond_to_seven_days(delay):
    assert found(chain({"type": "control:wait", "delayMs": delay})) == [("wait_delay", "graph.nodes.x.delayMs")]


def test_the_longest_sleep_and_gate_are_fine():
    assert found(chain({"type": "control:wait", "delayMs": 604800000})) == []
    assert (
        found(chain({"type": "control:wait", "timeoutMs": 2592000000, "onTimeout": "interrupt", "reason": "r"})) == []
    )
    assert found(chain({"type": "control:wait"})) == []


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({"timeoutMs": 0}, ["timeoutMs"]),
        ({"timeoutMs": 2592000001}, ["timeoutMs"]),
        ({"timeoutMs": 1.5, "onTimeout": "partial"}, ["timeoutMs", "onTimeout"]),
        ({"onTimeout": "continue"}, ["onTimeout"]),
    ],
)
def test_a_gates_time_out_is_bounded_and_onTimeout_goes_with_it(fields, paths):  # noqa: N802 -- the field's name
    assert found(chain({"type": "control:wait", **fields})) == [("wait_timeout", f"graph.nodes.x.{p}") for p in paths]
