"""The loop guard: said at the third time, stopped at the fifth."""

from typing import Any

import pytest

from orchestrator.limits import Limits
from tests.unit.engine.stages import TASK, Played, call, play

TOOLS = {"look": {"returns": {"found": 0}}, "peek": {"returns": 1}, "broken": {"raises": "no such drawer"}}
ADA = {"id": "ada", "instructions": "Work."}
DELEGATING = ADA | {"packs": {"agents": True}, "permissions": {"agents": "allow"}}
TO_BOB, TO_ADA = [call("agents_handoff", agentId="bob")], [call("agents_handoff", agentId="ada")]


def team(turns: list[Any], agent: dict[str, Any] = ADA, **script: Any) -> Played:
    return play(agent, turns, task=TASK, tools=TOOLS, input="Begin.", **script)


def test_the_third_same_call_running_is_told_so_and_the_fifth_never_runs() -> None:
    same = [call("look", where="here")]

    run = team([same] * 5)

    assert (run.status, run.code) == ("failed", "loop_detected")
    assert ["times running" in text for text in run.said] == [False, False, True, True, False]
    assert '{"found":0}\n\n[warning] You made this very call 3 times running' in run.said[2]
    assert [e["outcome"] for e in run.events("tool.result")] == ["ok"] * 4 + ["skipped"]


def test_a_model_that_heeds_the_warning_goes_on() -> None:
    same, other = [call("look", where="here")], [call("look", where="there")]

    run = team([same, same, same, other, same, same, "Nothing there."])

    assert (run.status, run.output["content"]) == ("completed", "Nothing there.")
    assert ["[warning]" in text for text in run.said] == [False, False, True, False, False, False]


def test_equal_arguments_are_equal_in_any_order_and_under_either_name() -> None:
    agent = ADA | {"packs": {"agents": True}}
    turns = [[call("look", a=1, b=2)], [call("look", b=2, a=1)], [call("look", a=1, b=2)], "Done."]

    assert "[warning]" in team(turns, agent).said[2]


def test_calls_of_one_answer_are_warned_about_together_but_never_stopped_unwarned() -> None:
    seven = [call("look", where="here")] * 7

    run = team([seven, [call("look", where="here")]])

    assert [e["outcome"] for e in run.events("tool.result")] == ["ok"] * 7 + ["skipped"]
    assert all("[warning]" in text for text in run.said[:7])
    assert run.code == "loop_detected"


def test_a_call_repeated_beside_others_is_seen() -> None:
    run = team([[call("look", where="here"), call("peek", n=n)] for n in range(5)])

    assert run.code == "loop_detected"
    assert ["[warning]" in text for text in run.said[:8]] == [False] * 4 + [True, False, True, False]


def test_the_same_error_from_different_inputs_is_a_loop_too() -> None:
    run = team([[call("broken", n=n)] for n in range(6)])

    assert (run.code, run.report["steps"]) == ("loop_detected", 10)
    assert [e["outcome"] for e in run.events("tool.result")] == ["error"] * 5
    assert "You got this very error 3 times running" in run.said[2]


def test_another_error_in_between_begins_anew() -> None:
    errors = [[call("broken", n=n)] for n in range(4)]

    run = team([*errors, [call("look", where=1)], *errors[:2], "I cannot."])

    assert run.status == "completed"


def test_a_tool_that_is_not_there_is_answered_with_the_names_and_the_third_time_ends_the_run() -> None:
    run = team([[call("conjure", n=n)] for n in range(3)])

    assert run.code == "loop_detected"
    assert len(run.events("tool.result")) == 3
    assert all("you may call: " in text and "look" in text for text in run.said[:2])
    assert "conjure" in run.events("run.failed")[0]["message"]


def test_three_unknown_tools_in_one_answer_are_told_before_they_count() -> None:
    run = team([[call("conjure"), call("summon"), call("banish")], "I have none of these."])

    assert run.status == "completed"


@pytest.mark.parametrize("arguments", [[1], "not an object", {"half": "\ud800"}, None])
def test_arguments_no_tool_takes_are_counted_and_never_crash_the_guard(arguments: Any) -> None:
    run = team([[{"name": "look", "args": arguments}]] * 5)

    assert run.code == "loop_detected"


def test_counts_survive_a_question_to_a_person() -> None:
    ask = [call("ask_user", prompt="Which one?")]

    run = team([ask] * 5, answers=[{"text": "any"}] * 4)

    assert (run.status, run.code) == ("failed", "loop_detected")
    assert len(run.events("signal.raised")) == 4
    assert "[warning]" in run.said[2]


@pytest.mark.parametrize(
    "circle",
    [
        [TO_BOB, TO_ADA],
        [[call("look", where="here"), *TO_BOB], TO_ADA],
        [[call("look", where="here")], TO_BOB, TO_ADA],
    ],
    ids=["nothing else", "work beside the handoff", "work before the handoff"],
)
def test_agents_that_hand_over_in_circles_are_stopped_by_what_each_repeats(circle: list[Any]) -> None:
    bob = DELEGATING | {"id": "bob"}

    run = team(circle * 5, DELEGATING, agents={"bob": bob}, limits=Limits(agent_turns=30))

    assert (run.status, run.code) == ("failed", "loop_detected")
    assert any("[warning]" in text for text in run.said)
    assert run.events("agent.handoff")[-1]["agentId"] == "ada", "it was the fifth round"
    assert len(run.events("agent.handoff")) == 8


def test_a_guarded_run_stays_guarded_under_an_agent_with_a_graph_of_its_own() -> None:
    graph = {
        "nodes": {
            "start": {"type": "core:start"},
            "think": {"type": "llm:generate"},
            "act": {"type": "tool:call", "calls": "$output.toolCalls"},
            "end": {"type": "core:end"},
        },
        "edges": [
            {"from": "start", "to": "think"},
            {"from": "think", "to": "act", "when": '$output.finishReason = "tool-calls"'},
            {"from": "think", "to": "end"},
            {"from": "act", "to": "think"},
        ],
    }
    bob = {"id": "bob", "instructions": "Work.", "graph": graph, "budget": {"maxSteps": 50}}

    run = team([TO_BOB, *[[call("look", where="here")]] * 5], DELEGATING, agents={"bob": bob})

    assert run.code == "loop_detected"


def test_the_guard_is_for_team_agents() -> None:
    run = play(ADA, [[call("look", where="here")]] * 6 + ["Done."], tools=TOOLS, input="Begin.")

    assert run.status == "completed"
    assert not any("[warning]" in text for text in run.said)


def test_calls_the_graph_makes_itself_are_no_loop_of_the_model() -> None:
    graph = {
        "nodes": {
            "start": {"type": "core:start"},
            "look": {"type": "tool:call", "name": "look", "args": {"where": "here"}},
            "count": {"type": "control:assign", "patch": {"rounds": [1]}},
            "end": {"type": "core:end"},
        },
        "edges": [
            {"from": "start", "to": "look"},
            {"from": "look", "to": "count"},
            {"from": "count", "to": "end", "when": "length($state.rounds) >= 6"},
            {"from": "count", "to": "look"},
        ],
    }

    run = team([], {"id": "ada", "graph": graph, "budget": {"maxSteps": 50}})

    assert run.status == "completed"
    assert len(run.events("tool.result")) == 6


def test_an_eleventh_turn_has_no_tools_and_is_the_last() -> None:
    looks = [[call("look", where=str(n))] for n in range(20)]

    ends = team([*looks[:10], "This is how far I came."])
    goes_on = team(looks)

    assert (ends.status, ends.output["content"], len(ends.requests)) == ("completed", "This is how far I came.", 11)
    assert [bool(request.tools) for request in ends.requests] == [True] * 10 + [False]
    assert (goes_on.status, goes_on.code, len(goes_on.requests)) == ("failed", "budget_exceeded", 11)
    assert len(goes_on.said) == 10, "the calls of the last were never made"
