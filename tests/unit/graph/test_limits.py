"""The sizes a definition may have are the installation's: a raised limit may be used, a lowered one is heard."""

import pytest

from orchestrator.limits import Limits
from registry.graph.limits import GraphLimits
from registry.graph.validation import validate
from tests.unit.graph.definitions import agent, chain, mapping

LONG = "x" * 2000
#: Limit, a lower value of it, a definition beyond that, the code, and where the limit itself stands in the message.
CASES = [
    ("graph_nodes", 2, agent(), "graph_size"),
    ("graph_edges", 1, agent(), "graph_size"),
    ("map_items", 1, mapping(), "map_item_limit"),
    ("map_instruction_chars", 1000, mapping({"instruction": LONG}), "map_instruction"),
    ("prompt_chars", 1000, agent(prompts={"main": {"instructions": LONG}}), "definition_shape"),
    ("hooks_per_agent", 0, agent(hooks=[{"event": "Stop", "handler": {"command": ["x"]}}]), "definition_shape"),
    ("wait_delay_ms", 10, chain({"type": "control:wait", "delayMs": 11}), "wait_delay"),
    ("gate_timeout_ms", 10, chain({"type": "control:wait", "timeoutMs": 11}), "wait_timeout"),
]


@pytest.mark.parametrize(("name", "lower", "definition", "code"), CASES)
def test_a_lowered_limit_refuses_and_says_what_it_is(name, lower, definition, code):
    assert code not in [finding.code for finding in validate(definition)]
    refused = [f for f in validate(definition, GraphLimits(**{name: lower})) if f.code == code]
    assert len(refused) == 1 and str(lower) in refused[0].message


def test_a_raised_limit_is_no_longer_in_the_way():
    items = mapping({"items": list(range(33))})
    assert "map_item_limit" in [finding.code for finding in validate(items)]
    assert "map_item_limit" not in [finding.code for finding in validate(items, GraphLimits(map_items=1_000))]


def test_every_limit_of_definitions_is_a_setting():
    assert set(GraphLimits.model_fields) == {name for name, *_ in CASES}
    assert set(GraphLimits.model_fields) <= set(Limits.model_fields)
