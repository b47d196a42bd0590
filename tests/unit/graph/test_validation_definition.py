"""What validation says about everything outside the graph: codes, paths, and what stays silent."""

import pytest

from registry.graph.default import full_graph
from registry.graph.findings import CODES
from registry.graph.validation import parse_agent, validate
from tests.unit.graph.definitions import agent, chain, found

HOOK = {"event": "PreToolUse", "handler": {"command": ["check"]}}


def without_graph(**fields):
    return {"id": "ada", "instructions": "Do it.", **fields}


def test_the_base_of_these_tests_is_clean():
    assert found(agent()) == []
    assert found(without_graph()) == []


def test_every_field_at_its_best_is_clean():
    definition = agent(
        version="1.2.3-beta.1+build.5",
        name="Ada",
        role="analyst",
        description="",
        avatar="a.png",
        tier="deep",
        model={"model": "big", "effort": "high", "generation": {"temperature": 0, "maxTokens": 5}},
        models={"big": {"model": "x"}, "small": "y"},
        fallback=["small", {"model": "z"}],
        generation={"topP": 0.5, "frequencyPenalty": -1, "presencePenalty": 1.5},
        skills=["web.search", "workspace-ops"],
        packs={"core": True, "files": {"spec": {"root": "."}, "disabledTools": ["a"], "exposure": {"b": "deferred"}}},
        mcpServers=["m"],
        plugins=["p"],
        disallowedTools=["t"],
        permissions={"world": "deny", "fs.write": "allow", "own.thing": "ask"},
        mode="dont_ask",
        approvals="carryOn",
        budget={"maxSteps": 1, "maxTokens": 1, "deadlineMs": 1, "maxCostUsd": 0.01, "shared": True, "policy": "ask"},
        state={"initial": {"a": "$input"}, "reducers": {"a": "replace", "b": "merge"}},
        toolOutput={"maxChars": 10, "headChars": 5, "tailChars": 5},
        compaction={"thresholdRatio": 1, "protectRecentRatio": 0, "outputReserveTokens": 0, "auto": False},
        hooks=[HOOK, {"event": "Stop", "matcher": "*", "handler": {"http": "https://x"}, "when": {"mode": "ask"}}],
        ownerId="o",
        beingId=None,
        isPublic=True,
    ) | {"x-note": {"any": "thing"}}
    assert found(definition) == []
    parsed, findings = parse_agent(definition)
    assert findings == []
    assert parsed is not None and found(parsed.to_json()) == []


@pytest.mark.parametrize("definition", [None, 5, "text", [], True])
def test_a_definition_is_an_object(definition):
    assert found(definition) == [("definition_shape", "")]
    assert parse_agent(definition)[0] is None


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"id": 5}, "id"),
        ({"id": "a" * 121}, "id"),
        ({"name": 1}, "name"),
        ({"role": None}, "role"),
        ({"description": []}, "description"),
        ({"avatar": {}}, "avatar"),
        ({"tier": "huge"}, "tier"),
        ({"tier": 1}, "tier"),
        ({"model": 1}, "model"),
        ({"model": ""}, ""),
        ({"model": {}}, "model.model"),
        ({"model": {"model": "m", "effort": 1}}, "model.effort"),
        ({"model": {"model": "m", "generation": {"temperature": "hot"}}}, "model.generation.temperature"),
        ({"models": []}, "models"),
        ({"models": {"a": 1}}, "models.a"),
        ({"fallback": "m"}, "fallback"),
        ({"fallback": ["m", 1]}, "fallback[1]"),
        ({"generation": []}, "generation"),
        ({"generation": {"maxTokens": 1.5}}, "generation.maxTokens"),
        ({"generation": {"topP": True}}, "generation.topP"),
        ({"skills": "web.search"}, "skills"),
        ({"skills": ["a", None]}, "skills[1]"),
        ({"mcpServers": {}}, "mcpServers"),
        ({"plugins": [1]}, "plugins[0]"),
        ({"disallowedTools": 5}, "disallowedTools"),
        ({"permissions": []}, "permissions"),
        ({"mode": "yolo"}, "mode"),
        ({"approvals": "never"}, "approvals"),
        ({"budget": 5}, "budget"),
        ({"budget": {"maxSteps": 1, "shared": "yes"}}, "budget.shared"),
        ({"state": []}, "state"),
        ({"state": {"initial": []}}, "state.initial"),
        ({"state": {"reducers": "merge"}}, "state.reducers"),
        ({"graph": None}, "graph"),
        ({"toolOutput": {"maxChars": 0}}, "toolOutput.maxChars"),
        ({"compaction": {"thresholdRatio": 0}}, "compaction.thresholdRatio"),
        ({"compaction": {"protectRecentRatio": 0.95}}, "compaction.protectRecentRatio"),
        ({"compaction": {"auto": 1}}, "compaction.auto"),
        ({"hooks": {}}, "hooks"),
        ({"hooks": ["x"]}, "hooks[0]"),
        ({"hooks": [HOOK] * 33}, "hooks"),
        ({"hooks": [HOOK | {"matcher": 1}]}, "hooks[0].matcher"),
        ({"hooks": [HOOK | {"when": {"mode": "x"}}]}, "hooks[0].when.mode"),
        ({"hooks": [{"event": "Stop", "handler": {"command": "rm"}}]}, "hooks[0].handler.command"),
        ({"isPublic": "no"}, "isPublic"),
    ],
)
def test_a_wrong_type_or_value_is_reported_at_its_field(fields, path):
    expected = [("definition_shape", path)] if path else []
    assert found(without_graph(**fields)) == expected


def test_prompts_hold_objects_with_instructions():
    made = agent(prompts={"main": {}, "b": "text", "c": {"instructions": 5}})
    assert found(made) == [
        ("definition_shape", "prompts.main.instructions"),
        ("definition_shape", "prompts.b"),
        ("definition_shape", "prompts.c.instructions"),
    ]
    assert found(agent(prompts=[])) == [("definition_shape", "prompts")]


def test_the_main_prompt_is_given_once():
    twice = {"prompts": {"main": {"instructions": "a"}}}
    assert found({"id": "a", "instructions": "b", **twice}) == [("definition_shape", "instructions")]
    assert found({"id": "a", "systemPrompt": "b", **twice}) == [("definition_shape", "systemPrompt")]
    assert found({"id": "a", "instructions": "b", "systemPrompt": "c"}) == [("definition_shape", "systemPrompt")]


def test_unknown_fields_are_errors_at_every_level():
    made = agent(
        instructons="x",
        prompts={"main": {"instructions": "Do it.", "tone": "dry"}},
        budget={"maxSteps": 5, "maxStep": 5},
        model={"model": "m", "key": "secret"},
        state={"start": {}},
        hooks=[HOOK | {"async": True}, {"event": "Stop", "handler": {"http": "x", "retries": 3}}],
    )
    made["graph"]["edges"][0]["label"] = "go"
    made["graph"]["nodes"]["think"]["args"] = {}
    made["graph"]["theme"] = "dark"
    assert sorted(found(made)) == sorted(
        ("unknown_field", path)
        for path in [
            "instructons",
            "prompts.main.tone",
            "budget.maxStep",
            "model.key",
            "state.start",
            "hooks[0].async",
            "hooks[1].handler.retries",
            "graph.edges[0].label",
            "graph.nodes.think.args",
            "graph.theme",
        ]
    )


def test_an_unknown_field_names_the_nearest_known_one():
    messages = [finding.message for finding in validate(without_graph(instrucions="x", zzz=1))]
    assert 'did you mean "instructions"?' in messages[0]
    assert "x-" in messages[1]


def test_notes_layout_and_free_values_may_hold_anything():
    made = chain(
        {"type": "control:assign", "label": "set", "patch": {"anything": {"goes": 1}}, "x-colour": "red"},
        state={"initial": {"free": {"form": []}}},
    )
    made["graph"] |= {"layout": {"any": ["thing"]}, "x-zoom": 2}
    made["graph"]["edges"][0]["x-bend"] = 3
    assert found(made) == []


def test_an_id_is_required():
    assert found({"instructions": "x"}) == [("id_required", "id")]
    assert found({"id": " \n", "instructions": "x"}) == [("id_required", "id")]


@pytest.mark.parametrize(
    "version", ["1", "1.2", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "v1.2.3", "1.2.3\n", 1, None]
)
def test_a_version_is_semver(version):
    assert found(without_graph(version=version)) == [("version_format", "version")]


@pytest.mark.parametrize("version", ["0.0.0", "1.2.3", "1.2.3-a.0b.-", "1.2.3+001", "1.2.3-rc.1+x.y"])
def test_semver_has_pre_releases_and_builds(version):
    assert found(without_graph(version=version)) == []


def test_budget_limits_are_whole_numbers_of_at_least_one():
    budget = {"maxSteps": 0, "maxTokens": "5", "deadlineMs": 1.5, "maxCostUsd": 0, "policy": "stop"}
    assert found(without_graph(budget=budget)) == [
        ("budget_policy", "budget.policy"),
        ("budget_value", "budget.maxSteps"),
        ("budget_value", "budget.maxTokens"),
        ("budget_value", "budget.deadlineMs"),
        ("budget_value", "budget.maxCostUsd"),
    ]
    assert found(without_graph(budget={"maxSteps": True})) == [("budget_value", "budget.maxSteps")]


def test_reducers_merge_or_replace():
    assert found(without_graph(state={"reducers": {"a": "append", "b": None, "c": "merge"}})) == [
        ("reducer_value", "state.reducers.a"),
        ("reducer_value", "state.reducers.b"),
    ]


def test_permissions_are_gates_and_world_never_allows():
    permissions = {"fs.write": "yes", "mcp": None, "world": "allow", "network": "deny"}
    assert found(without_graph(permissions=permissions)) == [
        ("permissions_value", "permissions.fs.write"),
        ("permissions_value", "permissions.mcp"),
        ("permission_world", "permissions.world"),
    ]
    assert found(without_graph(permissions={"world": "often"})) == [("permissions_value", "permissions.world")]


@pytest.mark.parametrize("packs", [[], "files", None, 1])
def test_packs_is_an_object(packs):
    assert found(without_graph(packs=packs)) == [("packs_type", "packs")]


def test_a_pack_is_a_switch_or_an_object_of_three_fields():
    packs = {
        "a": "on",
        "b": 1,
        "c": [],
        "d": {"tools": [], "spec": 5, "disabledTools": ["x", 1], "exposure": {"x": "hidden"}},
        "e": {"disabledTools": {}, "exposure": ["x"], "x-note": 1},
        "f": None,
        "g": False,
    }
    assert found(without_graph(packs=packs)) == [
        ("packs_value", "packs.a"),
        ("packs_value", "packs.b"),
        ("packs_value", "packs.c"),
        ("packs_value", "packs.d"),
        ("packs_spec", "packs.d.spec"),
        ("packs_disabled_tools", "packs.d.disabledTools"),
        ("packs_disabled_tools", "packs.e.disabledTools"),
        ("packs_exposure", "packs.d.exposure"),
        ("packs_exposure", "packs.e.exposure"),
    ]


@pytest.mark.parametrize(
    "hook",
    [
        {"handler": {"plugin": "p"}},
        {"event": "preToolUse", "handler": {"plugin": "p"}},
        {"event": 5, "handler": {"plugin": "p"}},
        {"event": "Stop"},
        {"event": "Stop", "handler": "p"},
        {"event": "Stop", "handler": {}},
        {"event": "Stop", "handler": {"python": "p"}},
        {"event": "Stop", "handler": {"http": "x", "plugin": "p"}},
        {"event": "stop", "handler": {}},
    ],
)
def test_a_hook_has_a_known_event_and_one_handler(hook):
    assert found(without_graph(hooks=[HOOK, hook])) == [("hook_shape", "hooks[1]")]


def test_the_default_graph_needs_the_main_prompt():
    assert found({"id": "a"}) == [("prompt_missing", "prompts.main")]
    assert found({"id": "a", "prompts": {"other": {"instructions": "x"}}}) == [("prompt_missing", "prompts.main")]


@pytest.mark.parametrize("budget", [{}, {"maxTokens": 5}, {"policy": "ask"}, {"maxCostUsd": 1}])
def test_the_default_graph_needs_an_end_when_a_budget_is_given(budget):
    assert found(without_graph(budget=budget)) == [("cycle_budget", "budget")]


@pytest.mark.parametrize("budget", [{"maxSteps": 5}, {"deadlineMs": 5}])
def test_steps_or_a_deadline_bound_the_default_graph(budget):
    assert found(without_graph(budget=budget)) == []


def test_what_cannot_be_written_down_is_refused_whole():
    deep = []
    for _ in range(200_000):
        deep = [deep]
    for state in (deep, float("nan"), "\ud800", 10**5000):
        assert found(without_graph(state={"initial": {"a": state}})) == [("definition_shape", "")]


def test_findings_stand_in_the_order_of_the_table():
    made = agent(
        {"lost": {"type": "control:assign", "patch": {"a": "$("}}, "odd": {"type": "x"}},
        id="",
        version="1",
        packs=[],
        permissions={"a": 1},
        more=1,
        tier="no",
        budget={"policy": "x"},
    )
    codes = [code for code, _ in found(made)]
    assert len(codes) > 8
    assert codes == sorted(codes, key=CODES.index)


def test_two_findings_with_one_code_and_path_are_one():
    made = agent(prompts={"main": {"instructions": "{$a} {$b} {$input}"}})
    assert found(made) == [("expr_syntax", "prompts.main.instructions")]


def test_a_refused_definition_gives_no_agent_and_a_warned_one_does():
    refused, findings = parse_agent({"id": "a"})
    assert refused is None and findings
    warned, findings = parse_agent(chain({"type": "control:spawn", "calls": "$state.spawns"}))
    assert warned is not None and [finding.severity for finding in findings] == ["warning"]


def test_a_full_graph_passes_and_reads_back_as_it_was_written():
    definition = without_graph(graph=full_graph().to_json(), budget={"maxSteps": 5})
    parsed, findings = parse_agent(definition)
    assert parsed is not None
    assert {finding.severity for finding in findings} == {"warning"}
    assert parsed.graph == full_graph()


def test_a_finding_says_what_was_found_but_never_much_of_it():
    (finding,) = validate(without_graph(tier="s" * 5000))
    assert finding.to_json() == {
        "code": "definition_shape",
        "severity": "error",
        "path": "tier",
        "message": f'must be one of fast, standard, deep, found "{"s" * 60}…"',
    }
