"""The walk through a graph: what counts, in which order things are told, what is visible where (spec: engine 5, 6)."""

from typing import Any

import pytest

from tests.unit.engine.graphs import ACT, CALLS, THINK, agent, looper, once
from tests.unit.engine.stages import call, play


def assign(**patch: Any) -> dict[str, Any]:
    return {"type": "control:assign", "patch": patch}


def test_every_node_but_the_end_costs_one_step_gotos_too() -> None:
    jump = {"type": "control:goto", "target": '"b"'}

    played = play(agent({"a": assign(x=1), "g": jump, "b": assign(x=2)}, "start -> a", "a -> g", "b -> end"), [])

    assert played.report["steps"] == 4
    assert [e["step"] for e in played.events("node.completed")] == [1, 2, 3, 4]


def test_events_of_a_node_come_before_its_end_and_calls_before_results() -> None:
    played = play(looper(), [[call("echo", n=1), call("echo", n=2)], "done"], tools={"echo": {}})

    kinds = [e["kind"] for e in played.report["events"] if e["kind"] != "run.started"]
    assert kinds == [
        *("node.completed", "think", "message", "node.completed"),
        *("tool.call", "tool.call", "tool.result", "tool.result", "node.completed"),
        *("think", "message", "node.completed", "output", "run.completed"),
    ]


def test_numbers_of_a_trace_have_no_gaps() -> None:
    played = play(looper(), [[call("echo")], "done"], tools={"echo": {}})

    assert [e["seq"] for e in played.report["events"]] == list(range(1, len(played.report["events"]) + 1))


@pytest.mark.parametrize(
    ("given", "content"),
    [
        ("hello", "hello"),
        ({"text": "hello", "origin": "person"}, "hello"),
        ({"a": [1, "ä"]}, '{"a":[1,"ä"]}'),
        (False, "false"),
        (7, "7"),
    ],
)
def test_the_input_becomes_the_first_message(given: Any, content: str) -> None:
    played = play(once(assign(x=1)), [], input=given)

    assert played.report["messages"][0]["content"] == content
    assert played.report["messages"][0]["role"] == "user"


def test_no_input_is_no_message_and_messages_are_taken_as_they_are() -> None:
    history = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]

    assert play(once(assign(x=1)), []).report["messages"] == []
    assert play(once(assign(x=1)), [], input={"messages": history}).report["messages"] == history


def test_a_second_pass_over_the_start_appends_nothing() -> None:
    nodes = {
        "g": {"type": "control:goto", "target": '"start"'},
        "a": assign(n="$output.input"),
        "t": assign(twice=True),
    }
    edges = ("start -> a if $state.twice = true", "start -> t", "t -> g", "a -> end")

    played = play(agent(nodes, *edges, budget={"maxSteps": 9}), [], input="hello")

    assert played.report["state"]["n"] == "hello"
    assert len(played.report["messages"]) == 1


def test_the_output_of_a_run_is_what_was_said_last_where_the_end_says_nothing() -> None:
    played = play(looper(), [[call("echo")], {"text": "the last word"}], tools={"echo": {}})

    assert played.output["content"] == "the last word"
    assert play(agent({"a": assign(x=1)}, "start -> a", "a -> end", end=None), []).output == {"patched": ["x"]}


def test_an_end_whose_text_is_no_expression_is_that_text() -> None:
    assert play(once(assign(x=1), end="$ 5"), []).output == "$ 5"
    assert play(once(assign(x=1), end={"x": "$state.x", "y": "$$state.x"}), []).output == {"x": 1, "y": "$state.x"}


def test_the_first_edge_that_holds_is_taken() -> None:
    nodes = {"a": assign(x=1), "b": assign(y=1)}

    played = play(agent(nodes, "start -> a", "a -> b if $state.x = 1", "a -> end", "b -> end"), [])

    assert played.report["state"] == {"x": 1, "y": 1}, "the first edge that holds, in the order of the list"


def test_a_failed_end_leaves_a_history_that_can_go_on() -> None:
    nodes = {"think": THINK, "act": ACT, "a": assign(x="$state.missing")}
    played = play(
        agent(nodes, "start -> think", f"think -> act if {CALLS}", "think -> a", "act -> a", "a -> end"),
        [{"calls": [call("echo")]}],
        tools={"echo": {"raises": "broken"}},
    )

    assert (played.status, played.code) == ("failed", "unknown_path")
    assert [m["role"] for m in played.report["messages"]] == ["assistant", "tool"]
    failed = played.events("run.failed")[0]
    assert (failed["code"], played.report["events"][-1]["nodeId"]) == ("unknown_path", "a")


def test_initial_state_sees_only_the_input_and_what_is_carried_in_wins() -> None:
    state = {"initial": {"a": "$input.x", "b": "from the definition"}}
    played = play(once(assign(c="$state.b"), state=state), [], input={"x": 5}, startState={"b": "carried"})

    assert played.report["state"] == {"a": 5, "b": "carried", "c": "carried"}
    blind = play(once(assign(c=1), state={"initial": {"a": "$state.b", "b": 1}}), [])
    assert (blind.status, blind.code, blind.report["steps"]) == ("failed", "unknown_path", 0)


def test_a_patch_is_evaluated_whole_before_any_of_it_is_written() -> None:
    state = {"initial": {"a": 1, "b": 2}, "reducers": {"a": "replace", "b": "replace"}}

    swapped = play(once(assign(a="$state.b", b="$state.a"), state=state), [])
    broken = play(once(assign(a=9, b="$state.zzz"), state={"initial": {"a": 1, "b": 2, "zzz": None}}), [])

    assert swapped.report["state"] == {"a": 2, "b": 1}
    assert broken.status == "completed"
    failing = play(once(assign(a=9, b="$input.zzz"), state=state), [])
    assert (failing.code, failing.report["state"]) == ("unknown_path", {"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("reducer", "old", "new", "result"),
    [
        ("merge", [1], [2], [1, 2]),
        ("merge", {"a": [1], "b": 1}, {"a": [2], "c": 3}, {"a": [1, 2], "b": 1, "c": 3}),
        ("merge", [1], "x", "x"),
        ("merge", {"a": 1}, None, None),
        ("replace", [1], [2], [2]),
        ("replace", {"a": 1}, {"b": 2}, {"b": 2}),
    ],
)
def test_reducers(reducer: str, old: Any, new: Any, result: Any) -> None:
    state = {"initial": {"k": old}, "reducers": {"k": reducer}}

    assert play(once(assign(k=new), state=state), []).report["state"]["k"] == result


def test_an_answer_is_seen_by_the_edge_and_the_next_node_but_a_goto_and_is_then_gone() -> None:
    nodes = {
        "i": {"type": "control:interrupt", "reason": "Which?"},
        "g": {"type": "control:goto", "target": '"seen"'},
        "seen": assign(seen="$resume.way"),
        "after": assign(after="$resume"),
    }
    edges = ("start -> i", 'i -> g if $resume.way = "left"', "i -> end", "seen -> after", "after -> end")

    played = play(agent(nodes, *edges), [], answers=[{"way": "left"}])

    assert played.report["state"] == {"seen": "left", "after": None}


def test_a_rejected_interrupt_goes_on_with_nothing_in_hand() -> None:
    nodes = {"i": {"type": "control:interrupt", "reason": "Which?"}, "a": assign(got="$resume")}

    played = play(agent(nodes, "start -> i", "i -> a", "a -> end"), [], answers=[None])

    assert (played.status, played.report["state"]) == ("completed", {"got": None})


def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays() -> None:
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}

    played = play(
        once({"type": "control:interrupt", "reason": "How many?", "resumeSchema": schema}), [], answers=[{"n": "x"}]
    )

    assert (played.status, played.code) == ("needs_input", "resume_validation_failed")
    assert played.report["interrupts"][0]["status"] == "open"


@pytest.mark.parametrize("target", ["$state.none", "$state.n", '"nowhere"'])
def test_a_goto_to_nowhere_fails_the_run(target: str) -> None:
    nodes = {"g": {"type": "control:goto", "target": "$state.to"}}
    to = {"$state.none": None, "$state.n": 7, '"nowhere"': "nowhere"}[target]

    played = play(agent(nodes, "start -> g", budget={"maxSteps": 5}, state={"initial": {"to": to}}), [])

    assert (played.status, played.code) == ("failed", "goto_target_missing")


def test_a_history_of_another_key_is_kept_apart() -> None:
    nodes = {"think": THINK | {"messages": "$state.notes", "tools": []}}

    played = play(agent(nodes, "start -> think", "think -> end", end=None), ["noted"], input="hello")

    assert [m["content"] for m in played.report["messages"]] == ["hello"]
    assert [m["content"] for m in played.report["state"]["notes"]] == ["noted"]
    assert played.output["content"] == "noted"


@pytest.mark.parametrize("value", [3, {"role": "user"}, "text", ["text"], [{"content": "x"}], [None]])
@pytest.mark.parametrize("key", ["notes", "messages"])
def test_a_history_that_holds_no_messages_fails_the_run(key: str, value: Any) -> None:
    nodes = {"think": THINK | {"messages": f"$state.{key}", "tools": []}}

    played = play(agent(nodes, "start -> think", "think -> end", state={"initial": {key: value}}), ["x"])

    assert (played.status, played.code) == ("failed", "messages_path")
