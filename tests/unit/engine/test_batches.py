"""Batches of calls: ids, order, questions to a person, and what the model hears (spec: engine 6, 8)."""

from typing import Any

import pytest

from orchestrator.limits import Limits
from tests.unit.engine.graphs import ask, looper, once
from tests.unit.engine.stages import Played, call, play

YES, NO = {"approved": True}, {"approved": False}


def batch(*calls: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool:call", "calls": list(calls)} | fields


def outcomes(played: Played) -> list[tuple[str, str]]:
    return [(r["name"], r["outcome"]) for r in played.events("tool.result")]


def test_a_fixed_call_gets_an_id_of_its_place_and_is_held_by_a_message_of_its_own() -> None:
    played = play(once({"type": "tool:call", "name": "echo", "args": {"n": 1}}), [], tools={"echo": {"returns": 5}})

    result = played.output["results"][0]
    assert result == {"id": "run:n:1:0", "name": "echo", "result": 5, "isError": False}
    held, answer = played.report["messages"]
    assert (held["kind"], held["content"], held["toolCalls"][0]["id"]) == ("call", "", "run:n:1:0")
    assert (answer["role"], answer["toolCallId"], answer["content"]) == ("tool", "run:n:1:0", "5")


def test_a_hand_written_id_is_kept_unless_the_run_has_used_it() -> None:
    calls = [{"id": "mine", "name": "echo", "args": {}}, {"id": "mine", "name": "echo", "args": {}}, call("echo")]

    played = play(once(batch(*calls)), [], tools={"echo": {}})

    assert [r["id"] for r in played.output["results"]] == ["mine", "run:n:1:1", "run:n:1:2"]


def test_an_id_the_model_uses_twice_is_made_anew() -> None:
    turn = [{"id": "c1", "name": "echo", "args": {}}]

    played = play(looper(), [turn, turn, "done"], tools={"echo": {}})

    ids = [e["toolCallId"] for e in played.events("tool.call")]
    assert ids[0] == "c1"
    assert len(set(ids)) == 2
    assert [m["toolCallId"] for m in played.report["messages"] if m["role"] == "tool"] == ids


@pytest.mark.parametrize("calls", [7, "text", [1], [{"args": {}}], [{"name": 3}], {"name": "echo"}])
def test_calls_of_another_shape_fail_the_run_before_any_runs(calls: Any) -> None:
    played = play(once({"type": "tool:call", "calls": "$input"}), [], input=calls, tools={"echo": {}})

    assert (played.status, played.code) == ("failed", "tool_call_shape")
    assert not played.events("tool.call")


def test_a_batch_beyond_the_limit_fails_the_run_before_any_runs() -> None:
    calls = [call("echo")] * 4

    played = play(
        once({"type": "tool:call", "calls": "$input"}),
        [],
        input=calls,
        tools={"echo": {}},
        limits=Limits(calls_per_batch=3),
    )

    assert (played.code, played.events("tool.result")) == ("tool_call_limit", [])


def test_results_of_a_batch_that_has_not_run_are_not_ready() -> None:
    node = {"type": "tool:call", "calls": "$output.results"}

    played = play(once(node), [], tools={"echo": {}})

    assert (played.status, played.code) == ("failed", "output_not_ready")


@pytest.mark.parametrize("value", ["both", 3, None])
def test_a_computed_concurrency_is_one_of_two_words(value: Any) -> None:
    node = batch(call("echo"), concurrency="$input")

    assert play(once(node), [], input=value, tools={"echo": {}}).code == "concurrency_invalid"
    assert play(once(node), [], input="sequential", tools={"echo": {}}).status == "completed"


def test_results_stand_in_the_order_of_the_calls_and_faults_are_results() -> None:
    calls = [call("slow"), call("broken"), call("ghost"), {"name": "echo", "args": [1]}, call("echo", n=1)]
    tools = {"slow": {"delayMs": 60, "returns": "s"}, "broken": {"raises": "oh"}, "echo": {"returns": {"a": 1}}}

    played = play(looper(), [calls, "done"], tools=tools)

    assert played.said == ["s", "tool_failed: oh", played.said[2], played.said[3], '{"a":1}']
    assert {r.get("code") for r in played.events("tool.result")} == {
        None,
        "tool_failed",
        "unknown_skill",
        "invalid_input",
    }
    assert played.status == "completed"


def test_a_model_may_call_only_what_its_node_offered() -> None:
    agent = looper()
    agent["graph"]["nodes"]["think"] = {"type": "llm:generate", "tools": ["echo"]}

    played = play(agent, [[call("echo"), call("other")], "done"], tools={"echo": {}, "other": {}})

    assert [r.get("code") for r in played.events("tool.result")].count("tool_not_offered") == 1
    assert len(played.requests[0].tools) == 1
    assert play(once(batch(call("other"))), [], tools={"other": {"returns": 1}}).output["results"][0]["result"] == 1


def test_a_long_result_is_cut_for_the_model_and_whole_in_the_output() -> None:
    text = "a" * 400 + "b" * 400

    played = play(
        once(batch(call("read")), toolOutput={"maxChars": 100, "headChars": 20, "tailChars": 10}),
        [],
        tools={"read": {"returns": text}},
    )

    assert played.output["results"][0]["result"] == text
    (said,) = played.said
    assert said.startswith("a" * 20)
    assert said.endswith("b" * 10)
    assert "770 characters left out" in said


def test_gated_calls_ask_together_while_the_rest_of_a_parallel_batch_finishes() -> None:
    calls = [call("write", n=1), call("read"), call("write", n=2)]
    tools = {"write": ask("fs.write"), "read": ask("fs.read")}

    played = play(looper(), [calls, "done"], tools=tools)

    assert played.status == "needs_input"
    assert outcomes(played) == [("read", "ok")]
    assert [s["action"]["input"] for s in played.report["interrupts"]] == [{"n": 1}, {"n": 2}]
    assert played.said == [], "messages wait for the whole batch"


def test_each_answer_runs_its_own_call_and_finished_ones_never_again() -> None:
    calls = [call("write", n=1), call("read"), call("write", n=2)]

    played = play(
        looper(), [calls, "done"], tools={"write": ask("fs.write"), "read": ask("fs.read")}, answers=[YES, NO]
    )

    assert outcomes(played) == [("read", "ok"), ("write", "ok"), ("write", "rejected")]
    assert played.said[:2] == ["did it", "did it"]
    assert played.said[2].startswith("denied: a person said no")
    assert len(played.events("tool.call")) == 3


def test_in_a_sequence_the_calls_behind_a_gated_one_wait_for_it() -> None:
    calls = [call("read", n=1), call("write"), call("read", n=2)]
    tools = {"write": ask("fs.write"), "read": ask("fs.read")}

    parked = play(looper("sequential"), [calls, "done"], tools=tools)
    answered = play(looper("sequential"), [calls, "done"], tools=tools, answers=[YES])

    assert outcomes(parked) == [("read", "ok")]
    assert outcomes(answered) == [("read", "ok"), ("write", "ok"), ("read", "ok")]
    assert [e["name"] for e in answered.events("tool.call")] == ["read", "write", "read"], "announced once, in order"


@pytest.mark.parametrize("how", ["carry on", "no room"])
def test_a_sequence_goes_on_behind_a_gated_call_that_needs_nobody_after_all(how: str) -> None:
    calls = [call("read", n=1), call("write"), call("read", n=2)]
    tools = {"write": ask("fs.write"), "read": ask("fs.read")}
    agent = looper("sequential", **({"approvals": "carryOn"} if how == "carry on" else {}))
    limits = Limits() if how == "carry on" else Limits(open_decisions_per_project=1)

    def full(stage: Any) -> None:
        if how == "no room":
            stage.services.journal.open_decisions = lambda _project: 1

    played = play(agent, [calls, "done"], tools=tools, limits=limits, prepare=full)

    assert played.status == "completed"
    assert [name for name, _ in outcomes(played)] == ["read", "write", "read"]
    assert outcomes(played)[1][1] == ("deferred" if how == "carry on" else "denied")
    assert len(played.said) == 3


def test_what_the_graph_says_to_approve_is_asked_whatever_the_gate() -> None:
    node = batch(call("read"), call("echo"), approve={"tools": ["read"], "reason": "It is private"})

    asked = play(once(node), [], tools={"read": ask("fs.read"), "echo": {}})
    done = play(once(node), [], tools={"read": ask("fs.read"), "echo": {}}, answers=[YES])

    assert [s["reason"] for s in asked.report["interrupts"]] == ["ada asks: It is private"]
    assert outcomes(asked) == [("echo", "ok")]
    assert [r["result"] for r in done.output["results"]] == ["did it", None]


def test_a_no_holds_for_the_same_call_and_not_for_another() -> None:
    turns = [[call("write", n=1)], [call("write", n=1)], [call("write", n=2)], "done"]

    played = play(looper(), turns, tools={"write": ask("fs.write")}, answers=[NO, YES])

    assert outcomes(played) == [("write", "rejected"), ("write", "rejected"), ("write", "ok")]
    assert len(played.report["interrupts"]) == 2


@pytest.mark.parametrize(
    ("mode", "operation", "outcome"),
    [
        (None, "fs.read", "ok"),
        (None, "fs.write", "asked"),
        (None, "something.else", "asked"),
        ("auto", "fs.write", "ok"),
        ("auto", "network", "asked"),
        ("plan", "fs.write", "denied"),
        ("plan", "process", "denied"),
        ("plan", "network", "asked"),
        ("dont_ask", "network", "denied"),
        ("dont_ask", "world", "denied"),
        ("bypass", "process", "ok"),
        ("bypass", "world", "asked"),
        ("ask", "fs.read", "ok"),
        ("ask", "mcp", "asked"),
    ],
)
def test_what_a_mode_makes_of_an_operation(mode: Any, operation: str, outcome: str) -> None:
    played = play(once(batch(call("tool"))), [], tools={"tool": ask(operation)}, mode=mode)

    assert outcomes(played) == ([] if outcome == "asked" else [("tool", outcome)])
    assert (played.status == "needs_input") == (outcome == "asked")
    if outcome == "denied":
        result = played.output["results"][0]
        assert (result["isError"], result["denied"], result["code"]) == (True, True, "denied")
        assert operation in result["result"]


def test_the_worst_gate_of_a_call_counts_and_a_deny_stays_one_in_every_mode() -> None:
    agent = once(batch(call("both")), permissions={"process": "deny", "network": "allow"})

    for mode in (None, "bypass", "auto"):
        played = play(agent, [], tools={"both": ask("network", "process")}, mode=mode)
        assert outcomes(played) == [("both", "denied")]
    own = play(agent, [], tools={"both": ask("network", "process")}, permissions={"process": "allow"})
    assert outcomes(own) == [("both", "ok")], "the run's own map is given by a person"


def test_a_call_without_operations_runs_in_every_mode() -> None:
    for mode in ("ask", "plan", "dont_ask"):
        assert outcomes(play(once(batch(call("echo"))), [], tools={"echo": {}}, mode=mode)) == [("echo", "ok")]


def test_control_tools_run_first_so_that_a_queue_has_the_order_of_the_calls() -> None:
    agent = {"id": "ada", "instructions": "x", "packs": {"agents": True}, "permissions": {"agents": "allow"}}
    spawns = [call("agents_spawn", calls=[{"agentId": "kid", "input": f"n{n}"}]) for n in range(3)]

    played = play(
        agent,
        [[call("slow"), *spawns], "one", "two", "three", "done"],
        agents={"kid": {"id": "kid", "instructions": "x"}},
        tools={"slow": {"delayMs": 50}},
    )

    assert played.status == "completed", played.code
    assert [e["input"] for e in played.events("agent.spawned")] == ["n0", "n1", "n2"]
    assert [e["name"] for e in played.events("tool.result")][-1] == "slow"
