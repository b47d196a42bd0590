"""What validation says: model nodes, tool nodes, and the rule that a model's calls are run (spec: engine 4.2)."""

import pytest

from tests.unit.graph.definitions import CALLS, STOP, agent, chain, found, looping, mapping


def test_a_model_node_speaks_with_a_prompt_of_the_agent():
    made = chain({"type": "llm:generate", "tools": [], "prompt": "plan"}, prompts={"plna": {"instructions": "x"}})
    assert found(made) == [
        ("prompt_missing", "graph.nodes.think.prompt"),
        ("prompt_missing", "graph.nodes.x.prompt"),
    ]
    made = agent()
    made["instructions"] = made.pop("prompts")["main"]["instructions"]
    assert found(made) == []


@pytest.mark.parametrize(
    "messages", ["$input.messages", "$state", "$state.a.b", "$state[0]", "($state.a)", "$state.a = 1", "'a'"]
)
def test_a_history_is_one_state_key(messages):
    made = chain({"type": "llm:generate", "tools": [], "messages": messages})
    assert found(made) == [("messages_path", "graph.nodes.x.messages")]


@pytest.mark.parametrize("messages", ["$state.a", "$state['a b']", '$state["a"]'])
def test_a_history_key_is_written_with_a_dot_or_in_brackets(messages):
    assert found(chain({"type": "llm:generate", "tools": [], "messages": messages})) == []


def test_no_assign_writes_a_history():
    made = chain({"type": "control:assign", "patch": {"log": [], "messages": [], "other": []}})
    made["graph"]["nodes"]["think"]["messages"] = "$state.log"
    assert sorted(found(made)) == [
        ("messages_write", "graph.nodes.x.patch.log"),
        ("messages_write", "graph.nodes.x.patch.messages"),
    ]


def test_some_properties_of_a_structured_answer_are_taken():
    names = ["input", "state", "output", "resume", "messages", "toolCalls", "finishReason", "text", "item", "usage"]
    schema = {"type": "object", "properties": {name: {} for name in names}}
    made = chain({"type": "llm:generate", "tools": [], "output": schema})
    assert found(made) == [("output_key_reserved", f"graph.nodes.x.output.properties.{name}") for name in names[:-2]]


@pytest.mark.parametrize(
    "schema",
    [
        True,
        "object",
        None,
        [],
        {"type": "thing"},
        {"properties": []},
        {"pattern": "("},
        {"minimum": "1"},
        {"$ref": "#/$defs/lost"},
        {"properties": {"a": {"$ref": "https://example.org/schema"}}},
        {"items": {"$ref": "lost.json"}},
    ],
)
def test_schemas_of_answers_are_valid_and_closed_in_themselves(schema):
    for node, path in [
        ({"type": "llm:generate", "tools": [], "output": schema}, "output"),
        ({"type": "control:interrupt", "reason": "?", "resumeSchema": schema}, "resumeSchema"),
        ({"type": "control:wait", "resumeSchema": schema}, "resumeSchema"),
        (
            {"type": "tool:call", "calls": [], "approve": {"tools": ["t"], "resumeSchema": schema}},
            "approve.resumeSchema",
        ),
    ]:
        assert found(chain(node)) == [("json_schema", f"graph.nodes.x.{path}")]


def test_a_schema_may_refer_to_its_own_parts():
    schema = {"$defs": {"n": {"type": "number"}}, "properties": {"a": {"$ref": "#/$defs/n"}, "$ref": {"const": 1}}}
    assert found(chain({"type": "llm:generate", "tools": [], "output": schema})) == []


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"name": "t", "calls": []},
        {"name": "t", "calls": [], "concurrency": "parallel"},
        {"args": {}},
        {"calls": [], "args": {}},
        {"name": "t", "concurrency": "parallel"},
        {"name": "t", "barrier": {"policy": "all"}},
        {"name": "t", "approve": {"tools": ["t"]}},
    ],
)
def test_a_tool_node_is_one_fixed_call_or_a_batch(fields):
    assert found(chain({"type": "tool:call", **fields})) == [("tool_call_shape", "graph.nodes.x")]


@pytest.mark.parametrize("tools", [None, [], "t", ["t", 1], {}])
def test_an_approval_names_its_tools(tools):
    approve = {} if tools is None else {"tools": tools}
    made = chain({"type": "tool:call", "calls": [], "approve": approve})
    assert found(made) == [("approve_tools", "graph.nodes.x.approve.tools")]


def test_an_approval_names_each_tool_once():
    made = chain({"type": "tool:call", "calls": [], "approve": {"tools": ["a", "b", "a", "b"]}})
    assert found(made) == [("duplicate_hitl", "graph.nodes.x.approve.tools")]


FANS = [{"type": "tool:call", "calls": []}, {"type": "control:spawn", "calls": []}]


@pytest.mark.parametrize("node", FANS)
def test_the_only_barrier_is_all(node):
    for policy in ("any", None, 1):
        assert found(chain(node | {"barrier": {"policy": policy}})) == [
            ("barrier_policy", "graph.nodes.x.barrier.policy")
        ]
    assert found(chain(node | {"barrier": {"policy": "all"}})) == []
    assert found(mapping({"barrier": {"policy": "any"}})) == [("barrier_policy", "graph.nodes.m.barrier.policy")]


@pytest.mark.parametrize("node", FANS)
def test_concurrency_is_one_of_two_words_or_an_expression(node):
    for text in ("serial", "", "Parallel"):
        assert found(chain(node | {"concurrency": text})) == [("concurrency_invalid", "graph.nodes.x.concurrency")]
    for text in ("parallel", "sequential", "$state.how"):
        assert found(chain(node | {"concurrency": text})) == []
    assert found(mapping({"concurrency": "serial"})) == [("concurrency_invalid", "graph.nodes.m.concurrency")]


def test_dynamic_spawns_are_warned_of():
    assert found(chain({"type": "control:spawn", "calls": "$state.spawns"})) == [
        ("spawn_targets_dynamic", "graph.nodes.x.calls")
    ]


@pytest.mark.parametrize(
    ("when", "think"),
    [
        (CALLS, {}),
        (CALLS, {"tools": ["web.search"]}),
        ("length($output.toolCalls) > 0", {}),
        ("$output.toolCalls[0].id", {}),
        ("$input = null && $resume = null && $state.messages = $state['messages']", {}),
    ],
)
def test_a_model_with_tools_is_fine_when_its_calls_are_run(when, think):
    assert found(looping(when, think)) == []


@pytest.mark.parametrize(
    "when",
    [STOP, "false", "$state.goOn", "$output.usage", "length($state.messages) > 0", "$item", "$output.toolCalls[1].id"],
)
def test_the_edge_is_chosen_as_the_engine_would(when):
    assert found(looping(when)) == [("tool_calls_unrouted", "graph.nodes.think")]


@pytest.mark.parametrize(
    "act",
    [
        {"type": "tool:call", "calls": "($output.toolCalls)"},
        {"type": "tool:call", "calls": "$state.toolCalls"},
        {"type": "tool:call", "calls": "$output.toolCalls[0]"},
        {"type": "tool:call", "calls": []},
        {"type": "tool:call", "name": "t"},
        {"type": "control:assign", "patch": {}},
    ],
)
def test_the_edge_leads_to_a_batch_over_exactly_the_models_calls(act):
    assert found(looping(act=act)) == [("tool_calls_unrouted", "graph.nodes.think")]


def test_brackets_name_the_same_path():
    assert found(looping(act={"type": "tool:call", "calls": " $output['toolCalls'] "})) == []


def test_gotos_with_literal_targets_are_followed():
    made = looping()
    made["graph"]["nodes"] |= {
        "g": {"type": "control:goto", "target": "('h')"},
        "h": {"type": "control:goto", "target": '"act"'},
    }
    made["graph"]["edges"][1]["to"] = "g"
    assert found(made) == []
    made["graph"]["nodes"]["h"]["target"] = "'g'"
    assert ("tool_calls_unrouted", "graph.nodes.think") in found(made)
    made["graph"]["nodes"]["h"]["target"] = "$state.act"
    assert ("tool_calls_unrouted", "graph.nodes.think") in found(made)


def test_a_model_without_tools_need_not_route_calls():
    assert found(looping("false", {"tools": []})) == []
