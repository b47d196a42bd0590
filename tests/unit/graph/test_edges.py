"""Which way a run goes, and the graphs that ship."""

import pytest

from registry.agents import AgentDefinition
from registry.graph.default import default_graph, full_graph, loop_graph
from registry.graph.edges import choose
from registry.graph.expressions import Slots
from registry.graph.model import Edge, End, Generate, Goto, Graph, Start, ToolCall
from registry.graph.validation import validate

CALLS = Slots(output={"finishReason": "tool-calls"})


def graph(*edges: Edge) -> Graph:
    return Graph(nodes={"start": Start(), "a": Generate(), "b": Generate(), "end": End()}, edges=list(edges))


def test_the_first_edge_in_list_order_whose_condition_holds_is_taken():
    made = graph(
        Edge(source="a", target="start", when="false"),
        Edge(source="b", target="start"),
        Edge(source="a", target="b", when="1"),
        Edge(source="a", target="end"),
    )
    assert choose(made, "a", Slots()) == "b"


@pytest.mark.parametrize("when", ["$state.absent", "(", "", "0"])
def test_a_condition_that_fails_or_is_false_does_not_match(when):
    made = graph(Edge(source="a", target="b", when=when), Edge(source="a", target="end"))
    assert choose(made, "a", Slots()) == "end"


def test_without_a_matching_edge_there_is_no_way():
    assert choose(graph(Edge(source="a", target="b", when="false")), "a", Slots()) is None
    assert choose(graph(), "a", Slots()) is None


def test_edges_keep_their_order_per_node():
    made = default_graph()
    assert [edge.target for edge in made.edges_from("act")] == ["spawn", "handoff", "think"]
    assert made.edges_from("end") == ()
    assert made.start_id == "start"


@pytest.mark.parametrize(
    ("state", "way"),
    [
        ({}, "think"),
        ({"spawns": []}, "think"),
        ({"spawns": [{}]}, "spawn"),
        ({"spawns": [{}], "handoffAgentId": "x"}, "spawn"),
        ({"handoffAgentId": "x", "mapItems": [1]}, "handoff"),
        ({"mapItems": [1], "waitUntilMs": 5}, "map"),
        ({"mapItems": [], "waitUntilMs": 5}, "wait"),
    ],
)
def test_after_its_calls_the_full_shape_looks_at_the_queues_in_order(state, way):
    assert choose(full_graph(), "act", Slots(state=state)) == way


def test_from_a_queue_the_full_shape_goes_on_to_the_later_ones():
    everything = Slots(state={"spawns": [{}], "mapItems": [1], "waitUntilMs": 5})
    assert choose(full_graph(), "spawn", everything) == "map"
    assert choose(full_graph(), "map", everything) == "wait"
    assert choose(full_graph(), "wait", everything) == "think"


@pytest.mark.parametrize("shape", [default_graph, full_graph, loop_graph])
def test_every_shape_runs_the_models_calls_and_else_ends(shape):
    assert choose(shape(), "think", CALLS) == "act"
    assert choose(shape(), "think", Slots(output={"finishReason": "stop"})) == "end"


@pytest.mark.parametrize("shape", [default_graph, full_graph, loop_graph])
def test_every_shape_is_valid_with_a_budget(shape):
    definition = {"id": "a", "instructions": "Do it.", "budget": {"maxSteps": 9}, "graph": shape().to_json()}
    assert [f for f in validate(definition) if f.severity == "error"] == []


def test_only_a_batch_over_the_models_calls_answers_the_model():
    assert ToolCall(calls="$output.toolCalls").answers_model
    assert ToolCall(calls='$output["toolCalls"]').answers_model
    assert not ToolCall(calls="$state.toolCalls").answers_model
    assert not ToolCall(calls=[]).answers_model
    assert not ToolCall(name="x").answers_model
    assert not ToolCall(calls="(").answers_model


def test_a_definition_survives_being_written_and_read():
    agent = AgentDefinition(
        id="ada",
        state={"initial": {"nil": None}},
        packs={"files": None, "core": True},
        compaction=None,
        graph=graph(Edge(source="start", target="end")),
    )
    written = agent.to_json()
    assert written["compaction"] is None
    assert written["state"] == {"initial": {"nil": None}}
    assert written["graph"]["nodes"]["start"] == {"type": "core:start"}
    assert written["graph"]["edges"] == [{"from": "start", "to": "end"}]
    again = AgentDefinition.model_validate(written)
    assert again == agent
    assert again.definition_digest == agent.definition_digest


def test_a_written_null_output_is_not_an_absent_one():
    assert End.model_validate({"type": "core:end", "output": None}).has_output
    assert not End().has_output


@pytest.mark.parametrize("short", ["instructions", "systemPrompt"])
def test_short_forms_become_the_main_prompt(short):
    agent = AgentDefinition.model_validate({"id": "ada", short: "Do it.", "prompts": {"b": {"instructions": "B"}}})
    assert agent.prompts["main"].instructions == "Do it."
    assert agent.to_json()["prompts"] == {"b": {"instructions": "B"}, "main": {"instructions": "Do it."}}


def test_notes_of_other_tools_are_dropped_at_every_level():
    agent = AgentDefinition.model_validate(
        {
            "id": "ada",
            "x-source": "drawing",
            "graph": {
                "x-a": 1,
                "nodes": {"x-start": {"type": "core:start", "x-b": 2}, "g": {"type": "control:goto", "target": "'g'"}},
                "edges": [{"from": "x-start", "to": "g", "x-c": 3}],
            },
        }
    )
    assert "x-source" not in agent.to_json()
    assert list(agent.effective_graph().nodes) == ["x-start", "g"]
    assert isinstance(agent.effective_graph().nodes["g"], Goto)


def test_an_agent_without_a_graph_runs_the_default_one():
    agent = AgentDefinition(id="ada")
    assert agent.effective_graph() is default_graph()
    assert (agent.name, agent.tier, agent.approvals) == ("ada", "standard", "park")


@pytest.mark.parametrize(
    ("packs", "on"),
    [
        ({}, ["core"]),
        ({"core": False}, []),
        ({"files": True, "shell": False, "plan": None, "fetch": {}}, ["core", "files", "fetch"]),
    ],
)
def test_packs_that_are_true_or_an_object_are_on_and_core_unless_it_is_off(packs, on):
    assert list(AgentDefinition.model_validate({"id": "a", "packs": packs}).enabled_packs()) == on
