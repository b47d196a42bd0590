"""What validation says: JSON types, required and unknown fields of nodes and edges."""

import typing

import pytest

from registry.agents import AgentDefinition
from registry.graph.model import Node
from tests.unit.graph.definitions import agent, chain, found


@pytest.mark.parametrize(
    ("node", "path"),
    [
        ("text", ""),
        ({"type": "control:assign", "patch": {}, "label": 5}, ".label"),
        ({"type": "llm:generate", "prompt": 5, "tools": []}, ".prompt"),
        ({"type": "llm:generate", "messages": ["x"], "tools": []}, ".messages"),
        ({"type": "llm:generate", "tools": "all"}, ".tools"),
        ({"type": "llm:generate", "tools": [], "model": 5}, ".model"),
        ({"type": "tool:call", "name": 5}, ".name"),
        ({"type": "tool:call", "name": "t", "args": [1]}, ".args"),
        ({"type": "tool:call", "calls": 5}, ".calls"),
        ({"type": "tool:call", "calls": ["text"]}, ".calls[0]"),
        ({"type": "tool:call", "calls": [{"args": {}}]}, ".calls[0].name"),
        ({"type": "tool:call", "calls": [{"name": "t", "args": "text"}]}, ".calls[0].args"),
        ({"type": "tool:call", "calls": [], "concurrency": 2}, ".concurrency"),
        ({"type": "tool:call", "calls": [], "barrier": "all"}, ".barrier"),
        ({"type": "tool:call", "calls": [], "approve": ["t"]}, ".approve"),
        ({"type": "tool:call", "calls": [], "approve": {"tools": ["t"], "reason": 5}}, ".approve.reason"),
        ({"type": "control:assign"}, ".patch"),
        ({"type": "control:assign", "patch": []}, ".patch"),
        ({"type": "control:interrupt"}, ".reason"),
        ({"type": "control:interrupt", "reason": ""}, ".reason"),
        ({"type": "control:interrupt", "reason": "a" * 501}, ".reason"),
        ({"type": "control:spawn"}, ".calls"),
        ({"type": "control:spawn", "calls": {}}, ".calls"),
        ({"type": "control:spawn", "calls": [{"input": "x"}]}, ".calls[0].agentId"),
        (
            {"type": "control:spawn", "calls": [{"agentId": "a", "budget": {"maxSteps": 0}}]},
            ".calls[0].budget.maxSteps",
        ),
        ({"type": "control:wait", "delayMs": 5, "reason": ""}, ".reason"),
        ({"type": "control:handoff"}, ".agentId"),
        ({"type": "control:handoff", "agentId": 5}, ".agentId"),
    ],
)
def test_a_node_with_a_field_of_the_wrong_type_is_reported_there(node, path):
    assert found(chain(node)) == [("definition_shape", f"graph.nodes.x{path}")]


def test_computed_calls_may_stand_where_written_ones_do():
    calls = ["$state.call", {"name": "t", "args": "$state.args", "id": "1"}]
    assert found(chain({"type": "tool:call", "calls": calls})) == []
    children = ["$state.call", {"agentId": "$state.who", "budget": {"maxSteps": "$state.n", "maxCostUsd": 0.5}}]
    assert found(chain({"type": "control:spawn", "calls": children})) == []


def test_unknown_fields_of_written_calls_are_reported():
    assert found(chain({"type": "tool:call", "calls": [{"name": "t", "arguments": {}}]})) == [
        ("unknown_field", "graph.nodes.x.calls[0].arguments")
    ]
    assert found(chain({"type": "control:spawn", "calls": [{"agentId": "a", "budget": {"steps": 1}}]})) == [
        ("unknown_field", "graph.nodes.x.calls[0].budget.steps")
    ]


def test_graph_nodes_and_edges_are_an_object_and_a_list():
    assert found(agent() | {"graph": {}}) == [
        ("definition_shape", "graph.nodes"),
        ("definition_shape", "graph.edges"),
    ]
    assert found(agent() | {"graph": {"nodes": [], "edges": {}}}) == [
        ("definition_shape", "graph.nodes"),
        ("definition_shape", "graph.edges"),
    ]


def test_edges_have_two_ends_and_a_condition_of_text():
    made = agent()
    made["graph"]["edges"] += [
        5,
        {"from": "think"},
        {"from": 1, "to": "end"},
        {"from": "think", "to": "end", "when": 1},
    ]
    assert [item for item in found(made) if item[0] == "definition_shape"] == [
        ("definition_shape", "graph.edges[2]"),
        ("definition_shape", "graph.edges[3].to"),
        ("definition_shape", "graph.edges[4].from"),
        ("definition_shape", "graph.edges[5].when"),
    ]


@pytest.mark.parametrize("node_id", ["", " ", "a" * 81])
def test_a_node_id_is_a_text_up_to_80_characters(node_id):
    made = agent({node_id: {"type": "control:assign", "patch": {}}})
    made["graph"]["edges"] = [
        {"from": "start", "to": "think"},
        {"from": "think", "to": node_id},
        {"from": node_id, "to": "end"},
    ]
    assert found(made) == [("definition_shape", f"graph.nodes.{node_id}")]


def test_every_field_of_the_models_is_a_known_field():
    node_types = typing.get_args(typing.get_args(Node)[0])
    for model in (AgentDefinition, *node_types):
        names = [field.alias or name for name, field in model.model_fields.items()]
        made = dict.fromkeys(names) | ({} if model is AgentDefinition else {"type": model.model_fields["type"].default})
        definition = made if model is AgentDefinition else chain(made)
        assert [item for item in found(definition) if item[0] == "unknown_field"] == []
