"""Presets: the six that ship, and what becomes of files that people put beside them (spec: engine 16)."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from orchestrator import planning
from orchestrator.settings import Settings
from registry.errors import WrongUse
from registry.graph.default import full_graph, loop_graph
from registry.graph.validation import PackCard, Registries, parse_agent, validate
from registry.plans import PlannedTask
from registry.presets import SHIPPED, Presets, load
from workers import probes

IDS = ["assistant", "coder", "explorer", "general", "orchestrator", "researcher"]
MEMORY = ["episodic-memory", "semantic-memory", "knowledge-memory", "pin-memory"]
SHELL = ["shell", "process_poll", "process_kill"]
BUDGETS = {
    "assistant": (400, 3_600_000, "ask"),
    "coder": (300, 2_700_000, "ask"),
    "orchestrator": (200, 1_800_000, "ask"),
    "researcher": (250, 3_600_000, "ask"),
    "explorer": (60, 600_000, "error"),
    "general": (100, 900_000, "error"),
}
PACKS = {
    "assistant": ["core", "files", *SHELL, "fetch", "plan", "agents", "threads", "scheduler", "webhook", *MEMORY],
    "coder": ["core", "files", *SHELL, "plan", "agents", "threads", MEMORY[0], MEMORY[1], MEMORY[3]],
    "orchestrator": ["core", "files", *SHELL, "plan", "agents", "threads", MEMORY[0]],
    "researcher": ["core", "files", "fetch", "plan", "agents", "threads", MEMORY[0], *MEMORY[2:1:-1], *MEMORY[1::2]],
    "explorer": ["core", "files"],
    "general": ["core", "files", *SHELL, "plan"],
}
GATES = {
    "assistant": ["ask", "ask", "ask", "ask"],
    "coder": ["allow", "allow", "ask", "ask"],
    "orchestrator": ["ask", "ask", "ask", "ask"],
    "researcher": ["ask", "ask", "allow", "ask"],
    "explorer": ["deny", "deny", "deny", "deny"],
    "general": ["allow", "allow", "deny", "deny"],
}
#: An installation in which everything the shipped presets name is there.
WHOLE = Registries(
    skills=frozenset({"web.search", "web.fetch", "web.research"}),
    documents=frozenset({"workspace-ops"}),
    packs={
        name: PackCard(frozenset({"ask_user", "map", "wait", "write_file", "edit_file"}))
        for names in PACKS.values()
        for name in names
    },
)


def written(root: Path, name: str, /, **changes: Any) -> Path:
    """A preset file that is good but for the changes; a change to `...` leaves the key out."""
    whole = {"name": "Scout", "role": "scout", "instructions": "Look around."} | changes
    file = root / name
    file.write_text(json.dumps({key: value for key, value in whole.items() if value is not ...}))
    return file


def refusal(root: Path, name: str = "scout.json", /, **changes: Any) -> str:
    """What is said about a file that has to be left out."""
    written(root, name, **changes)
    found = load([root])
    assert not found
    (fault,) = found.faults
    return f"{fault.code}: {fault.message}"


@pytest.fixture(scope="module")
def shipped() -> Presets:
    return load([SHIPPED])


def test_six_presets_ship_sorted_by_id_and_none_is_faulty(shipped: Presets) -> None:
    assert list(shipped) == IDS
    assert not shipped.faults
    for file in SHIPPED.glob("*.json"):
        assert not [f for f in validate({"id": file.stem, **json.loads(file.read_text())}) if f.severity == "error"]


@pytest.mark.parametrize("id_", IDS)
def test_a_shipped_preset_is_what_the_table_says(id_: str, shipped: Presets) -> None:
    agent = shipped[id_].agent
    steps, deadline, policy = BUDGETS[id_]
    assert agent.budget is not None
    assert agent.budget.to_json() == {"maxSteps": steps, "deadlineMs": deadline, "policy": policy}
    assert sorted(agent.enabled_packs()) == sorted(PACKS[id_])
    assert agent.permissions == dict(zip(["fs.write", "process", "network", "mcp"], GATES[id_], strict=True))
    assert agent.graph is not None
    assert agent.graph.to_json() == (loop_graph() if id_ in ("explorer", "general") else full_graph()).to_json()


def test_those_that_are_safe_to_spawn_hold_no_agents_and_cannot_ask(shipped: Presets) -> None:
    for id_ in ("explorer", "general"):
        packs = shipped[id_].agent.enabled_packs()
        assert "agents" not in packs
        assert packs["core"].disabled_tools == ["ask_user", "map", "wait"]
    assert shipped["explorer"].agent.enabled_packs()["files"].disabled_tools == ["write_file", "edit_file"]


def test_every_shipped_prompt_is_its_own_and_fits_a_page(shipped: Presets) -> None:
    prompts = [preset.agent.prompts["main"].instructions for preset in shipped.values()]
    assert len({prompt.splitlines()[0] for prompt in prompts}) == len(prompts)
    assert all(300 < len(prompt) < 2_500 and "{$" not in prompt for prompt in prompts)


def test_where_everything_is_there_every_shipped_preset_can_run() -> None:
    assert not any(preset.lacks for preset in load([SHIPPED], WHOLE).values())


def test_a_preset_stays_in_the_list_and_says_which_pack_is_missing() -> None:
    found = load([SHIPPED], Registries(packs={"core": WHOLE.packs["core"]} if WHOLE.packs else {}))
    assert list(found) == IDS
    assert [(lack.code, lack.path) for lack in found["explorer"].lacks] == [("pack_unknown", "packs.files")]


def test_a_later_folder_wins_by_id(tmp_path: Path, shipped: Presets) -> None:
    written(tmp_path, "coder.json", name="My coder")
    found = load([SHIPPED, tmp_path])
    assert list(found) == IDS
    assert found["coder"].agent.name == "My coder"
    assert not found["coder"].shipped
    assert found["general"].agent == shipped["general"].agent


def test_a_bad_file_hides_neither_the_others_nor_the_preset_it_would_replace(tmp_path: Path) -> None:
    written(tmp_path, "scout.json")
    (tmp_path / "coder.json").write_text('{"name": "My coder"')
    found = load([SHIPPED, tmp_path])
    assert list(found) == sorted([*IDS, "scout"])
    assert found["coder"].shipped
    assert [(Path(fault.path).name, fault.code) for fault in found.faults] == [("coder.json", "invalid_json")]


def test_a_folder_that_is_not_there_has_no_presets(tmp_path: Path) -> None:
    found = load([tmp_path / "none"])
    assert not found
    assert not found.faults


def test_without_packs_a_preset_has_core_alone(tmp_path: Path) -> None:
    written(tmp_path, "scout.json")
    assert list(load([tmp_path])["scout"].agent.enabled_packs()) == ["core"]


def test_packs_may_stand_under_their_old_name(tmp_path: Path) -> None:
    written(tmp_path, "scout.json", capabilities={"plan": True})
    assert list(load([tmp_path])["scout"].agent.enabled_packs()) == ["core", "plan"]


def test_both_names_of_packs_at_once_are_refused(tmp_path: Path) -> None:
    assert "packs and capabilities" in refusal(tmp_path, packs={}, capabilities={})


def test_tools_are_refused_with_what_replaces_them(tmp_path: Path) -> None:
    assert refusal(tmp_path, tools=["web.search"]) == "unknown_field: tools removed; use packs"


@pytest.mark.parametrize("key", ["id", "hooks", "model", "x-note", "persmissions"])
def test_a_key_presets_do_not_have_is_refused_by_name(key: str, tmp_path: Path) -> None:
    assert f'"{key}"' in refusal(tmp_path, **{key: {}})


@pytest.mark.parametrize("key", ["name", "role", "instructions"])
@pytest.mark.parametrize("value", [..., None, "", " \n", 7, {}])
def test_a_preset_has_a_name_a_role_and_instructions(key: str, value: Any, tmp_path: Path) -> None:
    assert key in refusal(tmp_path, **{key: value})


@pytest.mark.parametrize("name", ["Scout.json", "my scout.json", "-x.json", ".json", "scöut.json", "scout.json.json"])
def test_a_file_whose_name_is_no_id_is_left_out(name: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, name).startswith("preset_id")


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b"\xff\xfe", b'{"a": NaN}', b"[" * 100_000, b'{"name":1,"name":2}']
)
def test_a_file_that_is_no_object_of_json_is_left_out(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "scout.json").write_bytes(content)
    assert [fault.code for fault in load([tmp_path]).faults] in (["invalid_json"], ["definition_shape"])


def test_what_is_no_ordinary_file_is_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    assert [fault.code for fault in load([tmp_path]).faults] == ["unreadable"] * 3


def test_a_file_that_is_too_large_is_not_read_whole(tmp_path: Path) -> None:
    (tmp_path / "scout.json").write_text(" " * (1024 * 1024 + 1))
    assert [fault.code for fault in load([tmp_path]).faults] == ["too_large"]


def test_every_fault_of_a_definition_is_told_with_its_field(tmp_path: Path) -> None:
    written(tmp_path, "scout.json", permissions={"world": "allow", "network": "perhaps"}, tier="huge")
    found = load([tmp_path])
    assert not found
    told = " | ".join(fault.message for fault in found.faults)
    assert all(field in told for field in ("permissions.world", "permissions.network", "tier"))


def task(**fields: Any) -> PlannedTask:
    return PlannedTask.model_validate({"key": "look", "role": "lead", "instruction": "Look."} | fields)


def test_a_task_may_name_a_preset_by_id_or_by_name() -> None:
    presets = load([SHIPPED], WHOLE)
    named = planning.named_agents([task(agent="explorer"), task(agent="Coder")], {}, presets)
    assert {text: agent.id for text, agent in named.items()} == {"explorer": "explorer", "Coder": "coder"}


def test_an_agent_of_the_project_hides_the_preset_of_its_id() -> None:
    own, _ = parse_agent({"id": "coder", "name": "Ours", "instructions": "Code."})
    assert own is not None
    assert planning.named_agents([task(agent="coder")], {"coder": own}, load([SHIPPED], WHOLE)) == {"coder": own}


def test_a_preset_that_cannot_run_here_is_refused_where_the_task_names_it() -> None:
    with pytest.raises(WrongUse) as refused:
        planning.named_agents([task(), task(agent="explorer")], {}, load([SHIPPED], Registries(packs={})))
    assert [fault.path for fault in refused.value.faults] == ["tasks[1].agent"] * 2
    assert {fault.code for fault in refused.value.faults} == {"pack_unknown"}


def test_a_handoff_to_a_preset_that_cannot_run_here_is_refused_too() -> None:
    graph = {
        "nodes": {
            "start": {"type": "core:start"},
            "over": {"type": "control:handoff", "agentId": "general"},
            "end": {"type": "core:end"},
        },
        "edges": [{"from": "start", "to": "over"}, {"from": "over", "to": "end"}],
    }
    desk, _ = parse_agent({"id": "desk", "instructions": "Receive.", "graph": graph})
    assert desk is not None
    with pytest.raises(WrongUse) as refused:
        planning.named_agents(
            [task()], {"desk": desk}, load([SHIPPED], Registries(packs={"core": PackCard(frozenset())}))
        )
    assert refused.value.faults[0].path == "agents.desk.graph.nodes.over.agentId"


def test_the_doctor_tells_of_a_file_that_was_left_out(tmp_path: Path) -> None:
    written(tmp_path, "scout.json")
    written(tmp_path, "guide.json", tools=["web.search"])
    head, bad = probes.presets(Settings(presets_root=tmp_path))
    assert (head.verdict, head.words.split(",")[0]) == ("ok", "7 found")
    assert bad.verdict == "broken"
    assert "guide.json" in bad.words
    assert "tools removed; use packs" in bad.words
