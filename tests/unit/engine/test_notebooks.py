"""The packs that keep something, in whole runs: notes at model calls, children that may not write, outside text."""

from typing import Any

from orchestrator.known import load_presets, registries
from orchestrator.settings import Settings
from tests.unit.engine.stages import call, play

KEEPERS = ("plan", "episodic-memory", "semantic-memory", "knowledge-memory", "pin-memory")
STEPS = [{"title": "Read", "description": "Read it."}, {"title": "Write", "description": "Write it."}]


def holder(**about: Any) -> dict[str, Any]:
    return {"id": "ada", "instructions": "Work.", "packs": dict.fromkeys(KEEPERS, True)} | about


def notes(request: Any) -> str:
    return str(request.messages[-1]["content"])


def test_what_was_kept_is_read_at_the_next_model_call_and_never_stored() -> None:
    played = play(
        holder(),
        [
            [
                call("plan_save", overview="A report", items=STEPS),
                call("pin_set", key="tone", text="dry"),
                call("memory_write", scope="long", text="Ships leave at nine.", key="ships"),
            ],
            [call("plan_item_update", itemId=0, status="completed"), call("recall_search", query="ships")],
            "done",
        ],
    )
    assert played.status == "completed", played.report
    first, second, third = (notes(request) for request in played.requests)
    assert "A report" not in first and "dry" not in first
    for words in ('kind="plan"', "1. [pending] Write", 'kind="pin-memory"', "tone: dry", "ships: Ships leave at nine."):
        assert words in second
    assert "0. [completed] Read" in third
    assert "tone: dry" not in str(played.report["messages"])


def test_a_child_may_keep_memories_but_neither_plans_nor_pins() -> None:
    played = play(
        holder(packs={**dict.fromkeys(KEEPERS, True), "agents": True}, permissions={"agents": "allow"}),
        [
            [call("plan_save", overview="The parent's", items=STEPS)],
            [call("agents_spawn", calls=[{"agentId": "bob", "input": "go"}])],
            [
                call("plan_save", overview="The child's", items=STEPS),
                call("pin_set", key="k", text="x"),
                call("pin_remove", key="k"),
                call("plan_item_update", itemId=0, status="completed"),
                call("memory_write", scope="long", text="of the child"),
                call("pin_list"),
            ],
            "child done",
            [call("plan_get")],
            "done",
        ],
        agents={"bob": holder(id="bob")},
    )
    assert played.status == "completed", played.report
    results = {e["name"]: e for e in played.events("tool.result")}
    for name in ("pin_set", "pin_remove", "plan_item_update"):
        assert results[name]["outcome"] == "denied" and "subagent context" in results[name]["output"]
    assert results["memory_write"]["outcome"] == "ok" and results["pin_list"]["outcome"] == "ok"
    assert results["plan_get"]["output"]["plan"]["overview"] == "The parent's"


def test_a_list_with_something_from_outside_in_it_is_fenced_as_data() -> None:
    played = play(holder(), [[call("recall_search", query="x"), call("pin_list")], "done"])
    told = [m for m in played.report["messages"] if m["role"] == "tool"]
    assert [("outside" in message) for message in told] == [True, False]


def test_no_preset_lacks_a_pack_that_keeps_something() -> None:
    settings = Settings(_env_file=None, stand_in=True)  # type: ignore[call-arg]
    lacking = {i: [f.message for f in p.lacks] for i, p in load_presets(settings, registries(settings)).items()}
    assert not [words for found in lacking.values() for words in found if any(name in words for name in KEEPERS)]
