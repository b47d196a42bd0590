"""Whatever stands in a definition, validation answers with findings; and what it lets through can be run."""

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from registry.graph.default import full_graph
from registry.graph.findings import CODES
from registry.graph.validation import parse_agent, validate

WHOLE = {
    "id": "ada",
    "version": "1.0.0",
    "prompts": {"main": {"instructions": "Do it: {$input}"}},
    "model": {"model": "m", "generation": {"temperature": 0.5}},
    "models": {"a": "b"},
    "fallback": ["a"],
    "skills": ["web.search"],
    "packs": {"files": {"spec": {}, "disabledTools": ["t"], "exposure": {"u": "direct"}}},
    "permissions": {"world": "ask"},
    "budget": {"maxSteps": 5, "policy": "ask"},
    "state": {"initial": {"k": "$input"}, "reducers": {"k": "merge"}},
    "toolOutput": {"maxChars": 5},
    "compaction": {"auto": True},
    "hooks": [{"event": "Stop", "handler": {"command": ["x"]}, "when": {"mode": "ask"}}],
    "graph": full_graph().to_json(),
}
WHOLE["graph"]["nodes"] |= {
    "fixed": {"type": "tool:call", "name": "t", "args": {"a": ["$state.k"]}},
    "batch": {
        "type": "tool:call",
        "calls": [{"name": "t", "args": {}}],
        "approve": {"tools": ["t"], "resumeSchema": {}},
    },
    "set": {"type": "control:assign", "patch": {"a": "x {$input}"}},
    "ask": {"type": "control:interrupt", "reason": "why", "resumeSchema": {"type": "object"}},
    "jump": {"type": "control:goto", "target": "'set'"},
    "gate": {"type": "control:wait", "timeoutMs": 5, "onTimeout": "continue"},
    "answer": {"type": "llm:generate", "tools": [], "output": {"type": "object", "properties": {"a": {}}}},
    "team": {"type": "control:spawn", "calls": [{"agentId": "b", "input": "$input", "budget": {"maxSteps": 1}}]},
}
WHOLE["graph"]["edges"] += [
    {"from": node, "to": "end"} for node in ("fixed", "batch", "set", "ask", "gate", "answer", "team")
]

keys = st.sampled_from(
    ["type", "tools", "calls", "name", "body", "when", "from", "x-note", "core:end", "control:map", "$state.k"]
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 40)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | keys
    | st.sampled_from(["", "$", "$state.", "'think'", "$output.toolCalls", "{$x}", "main", "think", "llm:generate"])
)
json = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4))


def places(value, found=None):
    """Every container in a value with a key of it."""
    found = [] if found is None else found
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found.append((value, key))
        places(item, found)
    return found


@st.composite
def broken(draw):
    """The whole definition with up to three places replaced, renamed or taken out."""
    made = copy.deepcopy(WHOLE)
    for _ in range(draw(st.integers(1, 3))):
        holder, key = draw(st.sampled_from(places(made)))
        how = draw(st.sampled_from(["replace", "remove", "add"]))
        if how == "replace":
            holder[key] = draw(json)
        elif how == "remove":
            del holder[key]
        elif isinstance(holder, dict):
            holder[draw(keys)] = draw(json)
        if not places(made):
            break
    return made


def test_the_whole_definition_has_no_errors():
    agent, findings = parse_agent(WHOLE)
    assert agent is not None
    assert {finding.severity for finding in findings} == {"warning"}


@settings(deadline=None, max_examples=300)
@given(json | broken())
def test_anything_gives_findings_in_order_once_each_with_words(definition):
    findings = validate(definition)
    places = [CODES.index(finding.code) for finding in findings]
    assert places == sorted(places)
    assert len({(finding.code, finding.path) for finding in findings}) == len(findings)
    assert all(finding.message and len(finding.message) < 1000 for finding in findings)


@settings(deadline=None, max_examples=300)
@given(broken())
def test_what_passes_is_read_whole_and_passes_again_as_written(definition):
    agent, findings = parse_agent(definition)
    assert (agent is None) == any(finding.severity == "error" for finding in findings)
    if agent is not None:
        assert [f for f in validate(agent.to_json()) if f.severity == "error"] == []
        assert parse_agent(agent.to_json())[0] == agent


@settings(deadline=None, max_examples=300)
@given(broken())
def test_a_definition_is_only_read(definition):
    before = copy.deepcopy(definition)
    validate(definition)
    assert definition == before
