"""What validation says: node types, edges, gotos, cycles and reach."""

import time

import pytest

from registry.graph.validation import validate
from tests.unit.graph.definitions import BUDGET, STOP, agent, arrows, chain, found, graph, looping, mapping


def test_there_is_one_start_and_at_least_one_end():
    nodes = {"think": {"type": "llm:generate", "tools": []}}
    assert found(graph(nodes, "think think", **BUDGET)) == [
        ("start_count", "graph.nodes"),
        ("end_count", "graph.nodes"),
    ]
    two = agent({"s2": {"type": "core:start"}, "e2": {"type": "core:end"}}, arrows("s2 e2"))
    assert found(two) == [("start_count", "graph.nodes")]


@pytest.mark.parametrize("node", [{"type": "core:begin"}, {"type": 5}, {"type": None}, {}, {"type": ["core:start"]}])
def test_an_unknown_type_is_unsupported_and_its_fields_are_not_judged(node):
    assert found(chain(node | {"whatever": 1})) == [("unsupported_node", "graph.nodes.x.type")]


def test_a_graph_has_at_most_500_nodes_and_2000_edges():
    def sized(nodes, edges):
        made = agent({f"n{i}": {"type": "control:yield"} for i in range(nodes - 3)})
        made["graph"]["edges"] += arrows("start think") * (edges - 2)
        return [code for code, path in found(made) if (code, path) == ("graph_size", "graph")]

    assert sized(500, 2000) == []
    assert sized(501, 2) == ["graph_size"]
    assert sized(3, 2001) == ["graph_size"]


def test_each_end_of_an_edge_names_a_node():
    made = agent(edges=arrows("ghost phantom"))
    assert found(made) == [("edge_endpoint", "graph.edges[2].from"), ("edge_endpoint", "graph.edges[2].to")]


def test_every_node_but_the_last_ones_leads_somewhere():
    made = agent({"x": {"type": "control:assign", "patch": {}}, "g": {"type": "control:goto", "target": "'end'"}})
    made["graph"]["edges"] = arrows("start think", "think x")
    assert found(made) == [
        ("outgoing_required", "graph.nodes.x"),
        ("unreachable", "graph.nodes.end"),
        ("unreachable", "graph.nodes.g"),
    ]


def test_an_edge_to_nowhere_is_an_edge_all_the_same():
    made = agent()
    made["graph"]["edges"][1]["to"] = "ghost"
    assert found(made) == [("edge_endpoint", "graph.edges[1].to"), ("unreachable", "graph.nodes.end")]


def test_edges_out_of_ends_gotos_and_yields_are_only_warned_of():
    made = mapping(
        body={"g": {"type": "control:goto", "target": "'end'"}},
        edges=["w y", "y end", "end start", "g think when $input", "g think", "g ghost when ("],
    )
    made["graph"]["edges"][2] = {"from": "m", "to": "g"}
    assert found(made) == [
        ("edge_endpoint", "graph.edges[8].to"),
        ("expr_syntax", "graph.edges[8].when"),
        *[("edge_ignored", f"graph.edges[{i}]") for i in (4, 5, 6, 7, 8)],
    ]


def test_conditions_need_a_default_after_them():
    made = agent()
    made["graph"]["edges"] = arrows("start think", f"think end when {STOP}")
    assert found(made) == [("missing_default", "graph.edges.from:think")]


@pytest.mark.parametrize(
    "edges",
    [
        ["think end", "think end"],
        ["think end", f"think end when {STOP}"],
        ["think end", f"think end when {STOP}", "think end"],
    ],
)
def test_the_one_default_is_the_last_edge(edges):
    made = agent()
    made["graph"]["edges"] = arrows("start think", *edges)
    assert found(made) == [("default_edge", "graph.edges.from:think")]


def test_a_null_condition_is_none():
    made = agent()
    made["graph"]["edges"][1]["when"] = None
    assert found(made) == []


@pytest.mark.parametrize("target", [None, "", "  ", "'ghost'"])
def test_a_goto_has_a_target_that_exists(target):
    node = {"type": "control:goto"} | ({} if target is None else {"target": target})
    made = agent({"x": node})
    made["graph"]["edges"] = arrows("start think", "think x")
    assert found(made)[0] == ("goto_target", "graph.nodes.x.target")
    assert [code for code, _ in found(made)] == ["goto_target", "unreachable"]


@pytest.mark.parametrize("budget", [None, {"maxTokens": 5}, {"maxCostUsd": 5}, {"policy": "ask"}])
def test_a_cycle_needs_steps_or_a_deadline(budget):
    fields = {} if budget is None else {"budget": budget}
    made = looping("false", {"tools": []}, **fields)
    if budget is None:
        del made["budget"]
    assert found(made) == [("cycle_budget", "budget")]


@pytest.mark.parametrize("budget", [{"maxSteps": 5}, {"deadlineMs": 5}])
def test_steps_or_a_deadline_bound_a_cycle(budget):
    assert found(looping(budget=budget)) == []


def test_self_loops_literal_gotos_and_unreachable_cycles_count():
    own = agent({"x": {"type": "control:assign", "patch": {}}})
    own["graph"]["edges"] = arrows("start think", "think end", "x x when $input", "x end")
    assert found(own) == [("cycle_budget", "budget"), ("unreachable", "graph.nodes.x")]
    back = agent({"g": {"type": "control:goto", "target": "'think'"}})
    back["graph"]["edges"] = arrows("start think", "think g when $input", "think end")
    assert found(back) == [("cycle_budget", "budget")]


def test_edges_that_are_never_followed_close_no_cycle():
    made = agent(edges=arrows("end think"))
    assert found(made) == [("edge_ignored", "graph.edges[2]")]


@pytest.mark.parametrize("target", ["$state.next", "$input = 'a'", "!'end'"])
def test_a_computed_goto_may_go_anywhere(target):
    made = agent({"g": {"type": "control:goto", "target": target}, "x": {"type": "control:assign", "patch": {}}})
    made["graph"]["edges"] = arrows("start think", "think g", "x end")
    assert found(made) == [("cycle_budget", "budget")]
    assert found(made | BUDGET) == []


def test_a_computed_goto_that_is_never_reached_makes_nothing_reachable():
    made = agent({"g": {"type": "control:goto", "target": "$state.next"}}, **BUDGET)
    assert found(made) == [("unreachable", "graph.nodes.g")]


def test_reach_goes_over_edges_gotos_and_bodies():
    made = mapping(body={"alone": {"type": "control:assign", "patch": {}}}, edges=["w y", "alone y"])
    made["graph"]["nodes"]["m"]["body"].append("alone")
    assert found(made) == []


@pytest.mark.parametrize("what", ["nodes", "edges"])
def test_a_graph_far_over_its_limits_is_refused_without_a_look_at_the_rest(what: str) -> None:
    nodes: dict[str, object] = {"s": {"type": "core:start"}, "e": {"type": "core:end"}}
    edges: list[object] = [{"from": "s", "to": "e"}]
    if what == "nodes":
        nodes |= {f"n{number}": {"type": "core:start", "bad": 1} for number in range(30_000)}
    else:
        edges *= 30_000
    began = time.process_time()
    found = validate({"id": "a", "graph": {"nodes": nodes, "edges": edges}})
    assert time.process_time() - began < 1
    assert [one.code for one in found if one.code == "graph_size"] == ["graph_size"]
    assert len(found) <= 2
