"""Spawns and maps: shapes, limits, what children may not do, and what comes back (spec: engine 6, 9)."""

from typing import Any

import pytest

from orchestrator.limits import Limits
from tests.unit.engine.graphs import ACT, CALLS, SPEAK, THINK, agent, ask, looper, once, speaker
from tests.unit.engine.stages import call, play


def spawn(calls: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "control:spawn", "calls": calls} | fields


def mapping(
    items: Any, body: dict[str, Any], *edges: str, value: str | None = "$output", **fields: Any
) -> dict[str, Any]:
    """An agent that maps over items; the body begins at its first node and ends in `y`."""
    node = {"type": "control:map", "items": items, "enter": next(iter(body)), "body": [*body, "y"]} | fields
    yields = {"type": "control:yield"} | ({"value": value} if value else {})
    return agent({"m": node, **body, "y": yields}, "start -> m", "m -> end", *edges)


@pytest.mark.parametrize(
    "calls",
    [
        7,
        {"agentId": "kid"},
        ["kid"],
        [{"input": "x"}],
        [{"agentId": ""}],
        [{"agentId": 3}],
        [{"agentId": "kid", "colour": "red"}],
        [{"agentId": "kid", "budget": {}}],
        [{"agentId": "kid", "budget": {"maxSteps": 0}}],
        [{"agentId": "kid", "budget": {"maxSteps": True}}],
        [{"agentId": "kid", "budget": {"steps": 3}}],
        [{"agentId": "kid", "input": "fine"}, {"agentId": "kid", "budget": 3}],
    ],
)
def test_spawn_calls_of_another_shape_fail_the_run_before_any_child(calls: Any) -> None:
    played = play(once(spawn("$input")), ["never"], input=calls, agents={"kid": speaker()})

    assert (played.status, played.code) == ("failed", "spawn_calls_shape")
    assert not played.events("agent.spawned")


def test_fan_outs_beyond_their_limits_fail_the_run() -> None:
    limits = Limits(spawn_calls=2, map_items=2)
    three = [{"agentId": "kid"}] * 3

    assert (
        play(once(spawn("$input")), [], input=three, agents={"kid": speaker()}, limits=limits).code
        == "spawn_call_limit"
    )
    assert play(mapping("$input", {"w": SPEAK}, "w -> y"), [], input=[1, 2, 3], limits=limits).code == "map_item_limit"
    assert play(mapping("$input", {"w": SPEAK}, "w -> y"), [], input="abc").code == "map_items_shape"


def test_children_beyond_the_depth_fail_their_parent() -> None:
    inner = once(spawn([{"agentId": "leaf"}])) | {"id": "inner"}
    outer = once(spawn([{"agentId": "inner"}]))
    agents = {"inner": inner, "leaf": speaker("leaf")}

    deep = play(outer, ["leaf says"], agents=agents)
    shallow = play(outer, ["leaf says"], agents=agents, limits=Limits(spawn_depth=1))

    assert deep.output["results"][0]["output"]["results"][0]["output"]["content"] == "leaf says"
    assert shallow.output["results"][0]["error"]["code"] == "spawn_depth"
    assert shallow.status == "completed", "it is the child that fails"


def test_no_calls_and_no_items_are_no_children_and_no_note() -> None:
    empty = play(once(spawn("$input")), [], input=[])
    nothing = play(mapping([], {"w": SPEAK}, "w -> y"), [])

    for played in (empty, nothing):
        assert played.output == {"results": []}
        assert not [m for m in played.report["messages"] if m.get("kind") == "note"]
    assert nothing.events("map.completed") == [{"ok": 0, "failed": 0, "timedOut": False}]
    assert nothing.events("map.started")[0]["count"] == 0


def test_a_target_is_an_id_a_long_beginning_or_a_name() -> None:
    agents = {"researcher-one": speaker("researcher-one") | {"name": "Vera"}, "kid": speaker()}
    texts = ["researcher-one", "research", "Vera", "vera", "kid", "ki", "res"]

    played = play(once(spawn([{"agentId": text} for text in texts])), ["x"] * 7, agents=agents)

    found = [r.get("error", {}).get("code") for r in played.output["results"]]
    assert found == [None, None, None, None, None, "spawn_target_missing", "spawn_target_missing"]
    assert played.output["results"][5]["agentId"] == "ki", "as it was given"


def test_results_are_a_note_without_reasoning_and_usage_and_the_queue_is_cleared() -> None:
    state = {"initial": {"spawns": [{"agentId": "kid", "input": "a"}, {"agentId": "kid", "input": "b"}]}}

    played = play(once(spawn("$state.spawns"), state=state), ["one", "two"], agents={"kid": speaker()})

    note = played.report["messages"][-1]
    assert (note["role"], note["kind"]) == ("assistant", "note")
    assert note["content"].startswith("Spawn results: [")
    assert "usage" not in note["content"]
    assert "spawns" not in played.report["state"]
    assert [r["output"]["content"] for r in played.output["results"]] == ["one", "two"]


def test_a_child_cannot_ask_wait_or_hand_over() -> None:
    def child(node: dict[str, Any]) -> dict[str, Any]:
        return once(node) | {"id": "kid"}

    def code(node: dict[str, Any]) -> str:
        played = play(once(spawn([{"agentId": "kid"}])), [], agents={"kid": child(node)})
        return str(played.output["results"][0]["error"]["code"])

    assert code({"type": "control:interrupt", "reason": "May I?"}) == "sandbox_blocked"
    assert code({"type": "control:wait", "delayMs": 5}) == "sandbox_blocked"
    assert code({"type": "control:wait"}) == "sandbox_blocked"
    assert code({"type": "control:handoff", "agentId": "ada"}) == "handoff_in_sandbox"


def test_what_a_child_was_denied_is_told_to_its_parent() -> None:
    child = looper() | {"id": "kid"}
    tools = {"shell": ask("process"), "send": ask("world"), "read": ask("fs.read")}

    played = play(
        once(spawn([{"agentId": "kid"}]), permissions={"process": "allow"}),
        [[call("shell"), call("send"), call("read")], "could not"],
        agents={"kid": child},
        tools=tools,
        mode="bypass",
    )

    result = played.output["results"][0]
    assert [b["tool"] for b in result["blocked"]] == ["send"], "bypass reaches children; the world does not"
    assert all(b["reason"].startswith("denied") for b in result["blocked"])


def test_a_child_is_never_freer_than_its_parent() -> None:
    child = looper(permissions={"network": "allow", "process": "allow"}) | {"id": "kid"}

    played = play(
        once(spawn([{"agentId": "kid"}]), permissions={"network": "deny"}),
        [[call("fetch"), call("shell")], "done"],
        agents={"kid": child},
        tools={"fetch": ask("network"), "shell": ask("process")},
    )

    assert {r["outcome"] for r in played.events("tool.result")} == {"denied"}
    assert played.status == "completed"


def test_items_begin_with_a_copy_of_the_state_and_write_only_their_own() -> None:
    body = {"w": {"type": "control:assign", "patch": {"seen": ["$item"], "n": "$index"}}}
    made = mapping(["a", "b"], body, "w -> y", value="$state", concurrency="sequential")
    made["state"] = {"initial": {"seen": [], "spawns": []}}

    played = play(made, [])

    assert [r["output"]["seen"] for r in played.output["results"]] == [["a"], ["b"]]
    assert [r["output"]["n"] for r in played.output["results"]] == [0, 1]
    assert all("spawns" not in r["output"] for r in played.output["results"]), "queues are the parent's alone"
    assert played.report["state"]["seen"] == []


def test_the_first_message_of_an_item_is_filled_in_one_pass() -> None:
    made = mapping("$input", {"w": SPEAK}, "w -> y", value="$output.text", instruction="No $index: $item!")

    played = play(made, ["one", "two"], input=["$index and $item", {"k": 1}])

    said = [request.messages[0]["content"] for request in played.requests]
    assert said[0] == "No 0: $index and $item!\n\nMap item [0]:\n$index and $item"
    assert '{\n  "k": 1\n}' in said[1]
    assert [r["output"] for r in played.output["results"]] == ["one", "two"]


def test_an_item_ends_with_its_value_or_its_last_words() -> None:
    valued = play(mapping([1, 2], {"w": SPEAK}, "w -> y", value="$index"), ["a", "b"])
    spoken = play(mapping([1, 2], {"w": SPEAK}, "w -> y", value=None), ["a", "b"])
    silent = play(mapping([1], {"w": {"type": "control:assign", "patch": {"x": 1}}}, "w -> y", value=None), [])
    broken = play(mapping([1], {"w": SPEAK}, "w -> y", value="$state.none"), ["a"])

    assert [r["output"] for r in valued.output["results"]] == [0, 1]
    assert [r["output"]["content"] for r in spoken.output["results"]] == ["a", "b"]
    assert silent.output["results"][0]["error"]["code"] == "map_item_empty"
    assert broken.output["results"][0]["error"]["code"] == "unknown_path"
    assert broken.events("map.completed") == [{"ok": 0, "failed": 1, "timedOut": False}]


@pytest.mark.parametrize(("value", "expected"), [("$output.text", "12345678"), (None, "12345678")])
def test_an_output_is_cut_to_its_share_of_tokens(value: str | None, expected: str) -> None:
    played = play(mapping([1], {"w": SPEAK}, "w -> y", value=value, maxTokensPerItem=2), ["1234567890"])

    output = played.output["results"][0]["output"]
    assert (output if isinstance(output, str) else output["content"]) == expected


def test_an_item_lacks_the_tools_that_are_its_parents() -> None:
    body = {"w": THINK, "act": ACT}
    made = mapping([1], body, f"w -> act if {CALLS}", "w -> y", "act -> w", value="$output.text")
    made |= {"packs": {"agents": True}, "budget": {"maxSteps": 20}, "permissions": {"agents": "allow"}}

    played = play(made, ["done"])

    offered = {tool.name for tool in played.requests[0].tools}
    assert not offered & {"ask_user", "wait", "map", "agents_handoff"}
    assert "agents_spawn" in offered


def test_fan_outs_nest_and_their_results_keep_their_places() -> None:
    boss = once(spawn([{"agentId": "kid", "input": n} for n in range(2)]), end="$output.results") | {"id": "boss"}
    body = {"sp": spawn([{"agentId": "boss", "input": "$item"}])}
    made = mapping(["x", "y"], body, "sp -> y", value="$output.results[0].output")

    played = play(made, ["a", "b", "c", "d"], agents={"boss": boss, "kid": speaker()})

    words = [[kid["output"]["content"] for kid in item["output"]] for item in played.output["results"]]
    assert words == [["a", "b"], ["c", "d"]]
    depths = sorted(e["depth"] for e in played.events("run.started"))
    assert depths == [0, 1, 1, 2, 2, 3, 3, 3, 3]


def test_a_map_whose_time_is_over_fails_where_it_says_so() -> None:
    made = mapping([1, 2], {"w": {"type": "tool:call", "name": "slow"}}, "w -> y", timeoutMs=30)

    played = play(made, [], tools={"slow": {"delayMs": 60}})

    assert (played.status, played.code) == ("failed", "timed_out")
    assert [e["code"] for e in played.events("map.item.failed")] == ["timeout", "timeout"]
