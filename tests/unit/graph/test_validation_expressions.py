"""What validation says: expressions where they stand, and the declared state."""

import pytest

from tests.unit.graph.definitions import agent, arrows, chain, found, mapping


@pytest.mark.parametrize(
    ("node", "path"),
    [
        ({"type": "llm:generate", "tools": [], "messages": "$state."}, "messages"),
        ({"type": "llm:generate", "tools": [], "messages": ""}, "messages"),
        ({"type": "tool:call", "name": "t", "args": {"a": [{"b": "$("}]}}, "args.a[0].b"),
        ({"type": "tool:call", "calls": "results"}, "calls"),
        ({"type": "tool:call", "calls": [{"name": "t", "args": {"a": "$x"}}]}, "calls[0].args.a"),
        ({"type": "tool:call", "calls": [], "concurrency": "$x"}, "concurrency"),
        ({"type": "control:assign", "patch": {"a": {"b": ["$x"]}}}, "patch.a.b[0]"),
        ({"type": "control:assign", "patch": {"a": "n is {$x}"}}, "patch.a"),
        ({"type": "control:spawn", "calls": [{"agentId": "a", "input": "$x"}]}, "calls[0].input"),
        ({"type": "control:spawn", "calls": [], "concurrency": "$x"}, "concurrency"),
        ({"type": "control:wait", "untilMs": "$x"}, "untilMs"),
        ({"type": "control:handoff", "agentId": "$x"}, "agentId"),
        ({"type": "control:handoff", "agentId": "a", "input": ["$x"]}, "input[0]"),
    ],
)
def test_an_expression_that_does_not_parse_is_reported_at_its_leaf(node, path):
    assert found(chain(node)) == [("expr_syntax", f"graph.nodes.x.{path}")]


def test_expressions_of_maps_gotos_edges_states_and_prompts_are_parsed_too():
    made = mapping(
        {"items": ["$x"], "concurrency": "$x"},
        {"y": {"type": "control:yield", "value": "$x"}},
        state={"initial": {"a": ["$x"]}},
        prompts={"main": {"instructions": "see {$x} and {not}"}},
    )
    made["graph"]["edges"].append({"from": "w", "to": "y", "when": "$x"})
    assert [path for code, path in found(made) if code == "expr_syntax"] == [
        "prompts.main.instructions",
        "state.initial.a[0]",
        "graph.nodes.m.items[0]",
        "graph.nodes.m.concurrency",
        "graph.nodes.y.value",
        "graph.edges[4].when",
    ]
    assert found({"id": "a", "instructions": "{$x}"}) == [("expr_syntax", "instructions")]


@pytest.mark.parametrize(
    "node",
    [
        {"type": "tool:call", "name": "t", "args": {"price": "$$5", "$x": 1, "note": "5 $x {$x}"}},
        {"type": "control:assign", "patch": {"a": "$$x {$x}", "b": "{ $x}", "c": "{$state.x}"}},
        {"type": "control:interrupt", "reason": "{$x} or $x?"},
        {"type": "core:start", "label": "$x"},
    ],
)
def test_texts_that_are_no_expressions_are_left_alone(node):
    codes = [code for code, _ in found(chain(node))]
    assert "expr_syntax" not in codes


@pytest.mark.parametrize(
    ("output", "warned"),
    [
        ("$state.", True),
        ("$x", True),
        ("$state.list[-1]", True),
        ("$state.list[0]", False),
        ("$$5", False),
        ("5 $x", False),
        (["$x"], False),
        ("$input || 1", False),
    ],
)
def test_an_output_that_will_be_its_own_text_is_warned_of(output, warned):
    made = agent({"end": {"type": "core:end", "output": output}})
    assert found(made) == ([("end_output_literal", "graph.nodes.end.output")] if warned else [])


DECLARED = {"state": {"initial": {"known": 1}}}


@pytest.mark.parametrize("key", ["known", "patched", "log", "messages", "spawns", "loadedTools", "waitUntilMs"])
def test_declared_are_initial_patched_and_history_keys_and_the_engines_own(key):
    made = agent({"end": {"type": "core:end"}, "x": {"type": "control:assign", "patch": {"patched": 1}}}, **DECLARED)
    made["graph"]["nodes"]["think"]["messages"] = "$state.log"
    made["graph"]["edges"] = arrows("start think", f"think x when $state.{key}", "think end", "x end")
    assert found(made) == []


@pytest.mark.parametrize(
    "text", ["$state.k", "$state['k'].deep[0]", "exists($state.k)", "1 = 1 || length($state.k) > 0"]
)
def test_any_other_key_is_an_error_wherever_it_is_read(text):
    part = f"{{$input || {text}}}"
    made = chain(
        {"type": "control:assign", "patch": {"a": part}},
        prompts={"main": {"instructions": part}},
        **DECLARED,
    )
    made["graph"]["nodes"]["end"]["output"] = {"deep": ["$state.k"]}
    made["graph"]["edges"].insert(2, {"from": "x", "to": "end", "when": text})
    assert found(made) == [
        ("expr_path", "prompts.main.instructions"),
        ("expr_path", "graph.nodes.x.patch.a"),
        ("expr_path", "graph.edges[2].when"),
        ("expr_path", "graph.nodes.end.output.deep[0]"),
    ]


def test_without_initial_keys_nothing_is_declared_and_nothing_checked():
    made = agent({"end": {"type": "core:end", "output": "$state.k"}}, state={"initial": {}})
    assert found(made) == []


def test_the_whole_state_and_other_slots_are_free():
    made = agent({"end": {"type": "core:end", "output": ["$state", "$input.k", "$state[0]"]}}, **DECLARED)
    assert found(made) == []
