"""Each failure a pack's tool declares has a test that sees it; codes no tool declares fail the test that meets them
(`only_declared_failures` in tests/conftest.py)."""

import re
from pathlib import Path
from typing import Any

import pytest

from registry.packs import PACKS
from tests.unit.engine.stages import call, play

TESTS = Path(__file__).parents[2]
#: Where the tools of a pack are tested.
PLACES = {
    "core": ["unit/packs/test_failures.py"],
    "files": ["unit/packs/test_files.py"],
    "shell": ["integration/packs"],
    "fetch": ["integration/web/test_fetch_pack.py"],
    "agents": ["unit/engine/test_agents_pack.py", "unit/skills/test_agents_port.py"],
}
#: (tool, code) -> the test that sees it, where its words do not name both.
ELSEWHERE = {
    ("ask_user", "denied"): "test_in_a_child_what_needs_a_person_or_lasts_is_denied",
    ("wait", "denied"): "test_in_a_child_what_needs_a_person_or_lasts_is_denied",
    ("write_file", "blocked"): "test_blocked_names_are_refused_in_any_part_of_a_path_and_in_any_case",
    ("edit_file", "blocked"): "test_blocked_names_are_refused_in_any_part_of_a_path_and_in_any_case",
    ("fetch", "denied"): "test_the_worst_gate_of_a_call_counts_and_a_deny_stays_one_in_every_mode",
    ("fetch", "unknown"): "test_unknown",
    ("agents_create_subagent", "quota"): "test_there_is_an_end_to_them",
}
LASTING = ("plan_save", "plan_item_update", "schedule_set", "schedule_pause", "schedule_delete", "webhook_set")
LASTING += ("webhook_delete", "pin_set", "pin_remove")
ELSEWHERE |= {(tool, "denied"): "test_in_a_child_what_needs_a_person_or_lasts_is_denied" for tool in LASTING}
DECLARED = [(pack.name, tool.name, code) for pack in PACKS.values() for tool in pack.tools for code in tool.fails]


def sources(pack: str) -> list[str]:
    """Every test of a pack, from its decorators to its last line."""
    places = [TESTS / place for place in PLACES.get(pack, [f"unit/packs/test_{pack.replace('-', '_')}.py"])]
    files = [file for place in places for file in ([place] if place.is_file() else sorted(place.glob("test_*.py")))]
    assert files
    found = []
    for file in files:
        found += re.split(r"\n\n\n(?=@pytest|def test|async def test)", file.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize(("pack", "tool", "code"), DECLARED, ids=lambda value: str(value))
def test_a_declared_failure_has_a_test_that_names_tool_and_code(pack: str, tool: str, code: str) -> None:
    if (test := ELSEWHERE.get((tool, code))) is not None:
        assert any(f"def {test}" in file.read_text(encoding="utf-8") for file in TESTS.rglob("test_*.py")), test
        return
    short = tool.removeprefix("agents_")
    assert [one for one in sources(pack) if code in one and (tool in one or f".{short}(" in one)], (
        f"no test of {pack} speaks of {tool} ending in {code}"
    )


@pytest.mark.parametrize("tool", [(p.name, tool.name) for p in PACKS.values() for tool in p.tools], ids=str)
def test_every_tool_is_called_by_a_test(tool: tuple[str, str]) -> None:
    wanted = {
        "process_poll": ["integration/packs/test_jobs.py"],
        "process_kill": ["integration/packs/test_jobs.py"],
        "threads": ["unit/engine/test_threads.py"],
    }
    texts = sources(tool[0]) if tool[0] not in wanted else [(TESTS / f).read_text() for f in wanted[tool[0]]]
    assert any(tool[1] in text for text in texts)


#: What each of them takes.
ARGS: dict[str, dict[str, Any]] = {
    "ask_user": {"prompt": "Well?"},
    "wait": {"delayMs": 1},
    "plan_save": {"overview": "o", "items": [{"title": "t", "description": "d"}]},
    "plan_item_update": {"itemId": "0", "status": "completed"},
    "schedule_set": {"name": "S", "cron": "0 7 * * 1"},
    "schedule_pause": {"id": "x", "paused": True},
    "schedule_delete": {"id": "x"},
    "webhook_set": {"name": "W"},
    "webhook_delete": {"id": "x"},
    "pin_set": {"key": "k", "text": "t"},
    "pin_remove": {"key": "k"},
}


def test_in_a_child_what_needs_a_person_or_lasts_is_denied() -> None:
    packs = {"core": True, "plan": True, "scheduler": True, "webhook": True, "pin-memory": True}
    kid = {"id": "kid", "name": "Kid", "instructions": "Work.", "packs": packs}
    maker = {"id": "a", "instructions": "Work.", "packs": {"agents": True}}
    turns = [[call("agents_spawn", calls=[{"agentId": "kid", "input": "go"}])]]
    turns += [[call(name, **args) for name, args in ARGS.items()], "kid done", "done"]
    played = play(maker, turns, agents={"kid": kid}, mode="bypass")
    ended = {one["name"]: one["outcome"] for one in played.events("tool.result") if one["name"] != "agents_spawn"}
    assert set(LASTING) | {"ask_user", "wait"} == set(ARGS)
    assert ended == dict.fromkeys(ARGS, "denied")


@pytest.mark.parametrize(("tool", "args"), [("map", {"items": [1]}), ("wait", {"delayMs": 1})])
def test_without_its_node_a_control_tool_queues_nothing(tool: str, args: dict[str, Any]) -> None:
    played = play({"id": "a", "instructions": "Work."}, [[call(tool, **args)], "done"])
    assert [one["code"] for one in played.events("tool.result")] == ["no_control_node"]
    assert set(played.report["state"]) <= {"loadedTools"}
