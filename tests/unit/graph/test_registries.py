"""The second level: names of skills, packs, tools, models and agents (spec: engine 4.3)."""

import pytest

from registry.agents import AgentDefinition
from registry.graph.targets import AgentCard, candidates
from registry.graph.validation import PackCard, Registries, check_registries
from tests.unit.graph.definitions import agent, chain

BOB = AgentCard("bob-the-builder", "Bob")
KNOWN = Registries(
    skills=frozenset({"web.search", "math.evaluate"}),
    documents=frozenset({"workspace-ops"}),
    packs={
        "core": PackCard(frozenset({"ask_user", "map", "wait"})),
        "files": PackCard(
            frozenset({"read_file", "write_file"}),
            lambda spec: "root must be a text" if spec.get("root") == 5 else None,
        ),
    },
    models=frozenset({"fast", "standard", "gpt"}),
    plugins={"maps": frozenset({"maps_route"})},
    mcp_servers=frozenset({"git"}),
    agents=(
        BOB,
        AgentCard("bob-the-banker", "bob"),
        AgentCard("ada-delegate", "Ada", "delegate"),
        AgentCard("cal-plugin", "Cal", "plugin"),
    ),
)


def found(definition, known=KNOWN, **options):
    made = AgentDefinition.model_validate(definition)
    return [(f.code, f.severity, f.path) for f in check_registries(made, known, **options)]


def test_what_exists_is_fine():
    made = chain(
        {"type": "control:handoff", "agentId": "bob-the-builder"},
        skills=["web.search", "workspace-ops"],
        packs={
            "files": {"spec": {"root": "."}, "disabledTools": ["write_file"], "exposure": {"read_file": "deferred"}}
        },
        plugins=["maps"],
        tier="fast",
        models={"small": "gpt"},
        fallback=["small"],
    )
    made["graph"]["nodes"]["think"] |= {
        "tools": ["web__search", "web.search", "load_tools", "maps_route"],
        "model": "small",
    }
    assert found(made) == []


def test_registries_that_cannot_be_asked_find_nothing():
    made = agent(skills=["no.such"], packs={"no": True}, model="no", plugins=["no"], mcpServers=["no"])
    assert found(made, Registries()) == []


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("web.search", {}),
        ("read_file", {"packs": {"files": False}}),
        ("write_file", {"packs": {"files": {"disabledTools": ["write_file"]}}}),
        ("web.search", {"skills": ["web.search"], "disallowedTools": ["web__search"]}),
        ("ask_user", {"packs": {"core": False}}),
    ],
)
def test_a_fixed_call_names_a_tool_the_agent_has(name, fields):
    made = chain({"type": "tool:call", "name": name}, **fields)
    assert found(made) == [("tools_unresolved", "error", "graph.nodes.x.name")]


def test_tools_of_a_node_that_it_will_never_have_are_warned_of():
    made = agent(skills=["web.search"])
    made["graph"]["nodes"]["think"]["tools"] = ["web.search", "web.serach"]
    assert found(made) == [("tools_unresolved", "warning", "graph.nodes.think.tools[1]")]


def test_tools_of_servers_are_known_only_when_they_run():
    made = chain({"type": "tool:call", "name": "git__log"}, mcpServers=["git"])
    assert found(made) == []


def test_models_aliases_and_tiers_need_a_model_behind_them():
    assert found(agent(tier="deep")) == [("model_unresolved", "error", "tier")]
    assert found(agent(tier="deep", model="gpt")) == []
    assert found(agent(model={"model": "lost"})) == [("model_unresolved", "error", "model")]
    made = agent(model="mine", models={"mine": "lost", "other": {"model": "gpt"}}, fallback=["other", "lost"])
    made["graph"]["nodes"]["think"]["model"] = "typo"
    made["compaction"] = {"summaryModel": "lost"}
    assert found(made) == [
        ("model_unresolved", "error", "models.mine"),
        ("model_unresolved", "error", "fallback[1]"),
        ("model_unresolved", "error", "graph.nodes.think.model"),
        ("model_unresolved", "error", "compaction.summaryModel"),
    ]


def test_skills_are_in_the_catalogue_or_are_documents():
    made = agent(skills=["web.search", "web.lost", "workspace-ops", "lost-ops"])
    assert found(made) == [("skill_unknown", "error", "skills[1]"), ("skill_unknown", "error", "skills[3]")]


def test_packs_are_registered_and_take_their_spec_and_tools():
    packs = {
        "lost": True,
        "gone": False,
        "files": {"spec": {"root": 5}, "disabledTools": ["read_file", "lost"], "exposure": {"gone": "direct"}},
    }
    assert found(agent(packs=packs)) == [
        ("pack_unknown", "error", "packs.lost"),
        ("pack_unknown", "error", "packs.gone"),
        ("pack_spec_invalid", "error", "packs.files.spec"),
        ("pack_tool_unknown", "error", "packs.files.disabledTools[1]"),
        ("pack_tool_unknown", "error", "packs.files.exposure.gone"),
    ]


@pytest.mark.parametrize(
    ("at_run_start", "message"),
    [(False, "unknown pack: lost"), (True, 'pack "lost" is not registered by the host')],
)
def test_an_unknown_pack_is_the_writers_fault_or_the_hosts(at_run_start, message):
    made = AgentDefinition.model_validate(agent(packs={"lost": True}))
    (finding,) = check_registries(made, KNOWN, at_run_start=at_run_start)
    assert finding.message == message


def test_plugins_are_installed_and_servers_configured():
    assert found(agent(plugins=["lost"], mcpServers=["git", "lost"])) == [
        ("plugin_unknown", "error", "plugins[0]"),
        ("mcp_server_unknown", "error", "mcpServers[1]"),
    ]


@pytest.mark.parametrize("target", ["nobody", "ada-delegate", "Ada", "cal-plugin", "BOB", "bob-the-b"])
def test_a_run_is_handed_to_one_top_level_agent(target):
    assert found(chain({"type": "control:handoff", "agentId": target})) == [
        ("handoff_target", "error", "graph.nodes.x.agentId")
    ]


def test_spawn_targets_that_are_not_there_now_are_warned_of():
    calls = [
        {"agentId": target} for target in ("Bob", "cal-plugin", "$state.who", "nobody", "ada-delegate", "bob-the-b")
    ]
    assert found(chain({"type": "control:spawn", "calls": calls})) == [
        ("spawn_target_missing", "warning", f"graph.nodes.x.calls[{i}].agentId") for i in (3, 4, 5)
    ]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("bob-the-builder", ["bob-the-builder"]),
        ("bob-the-bu", ["bob-the-builder"]),
        ("bob-the-b", ["bob-the-builder", "bob-the-banker"]),
        ("bob-the", []),
        ("Bob", ["bob-the-builder"]),
        ("bob", ["bob-the-banker"]),
        ("BOB", ["bob-the-builder", "bob-the-banker"]),
        ("CAL", ["cal-plugin"]),
        ("", []),
    ],
)
def test_an_agent_is_meant_by_id_start_of_id_or_name(text, ids):
    assert [card.id for card in candidates(text, KNOWN.agents or ())] == ids
