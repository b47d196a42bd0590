"""Budgets: a window that is used up, renewed, or ended by a last report (spec: engine 7)."""

from typing import Any

import pytest

from orchestrator.limits import Limits
from orchestrator.records import SignalRecord
from orchestrator.store import claims, loading
from registry.packs import PACKS
from tests.unit.engine.graphs import agent, looper, once
from tests.unit.engine.stages import call, play
from workers.engine import loop
from workers.inprocess.script import read_script
from workers.inprocess.stage import RUN_ID, stage

ECHO = {"echo": {"returns": "e"}}
YES, NO = {"approved": True}, {"approved": False}


def test_a_budget_is_looked_at_before_the_next_node_and_never_before_the_end() -> None:
    nodes = {"a": {"type": "control:assign", "patch": {"x": 1}}, "b": {"type": "control:assign", "patch": {"y": 1}}}
    edges = ("start -> a", "a -> b", "b -> end")

    enough = play(agent(nodes, *edges, budget={"maxSteps": 3}), [])
    short = play(agent(nodes, *edges, budget={"maxSteps": 2}), [])

    assert (enough.status, enough.report["steps"]) == ("completed", 3)
    assert (short.status, short.code, short.report["steps"]) == ("failed", "budget_exceeded", 2)
    failed = short.events("run.failed")[0]
    assert (failed["kind"], failed["limit"], failed["used"]) == ("steps", 2, 2)


@pytest.mark.parametrize(
    ("budget", "kind"),
    [({"maxSteps": 2, "maxTokens": 1}, "steps"), ({"maxTokens": 1}, "tokens"), ({"deadlineMs": 1}, "deadline")],
)
def test_limits_are_looked_at_in_their_order(budget: dict[str, Any], kind: str) -> None:
    slow = {"echo": {"returns": "e", "delayMs": 20}}
    nodes = {"think": {"type": "llm:generate", "tools": []}, "n": {"type": "tool:call", "name": "echo"}}
    chain = agent(nodes, "start -> n", "n -> think", "think -> z", "z -> end", budget=budget)
    chain["graph"]["nodes"]["z"] = {"type": "control:assign", "patch": {"z": 1}}

    played = play(chain, ["said"], tools=slow)

    assert (played.code, played.events("budget.exhausted")[0]["kind"]) == ("budget_exceeded", kind)


def test_continue_opens_a_window_of_the_same_size_and_totals_go_on() -> None:
    budget = {"maxSteps": 3, "policy": "ask"}
    turns = [[call("echo", n=n)] for n in range(3)] + ["done"]

    played = play(looper(budget=budget), turns, tools=ECHO, answers=[YES, YES])

    assert (played.status, played.report["steps"]) == ("completed", 8)
    assert [e["used"] for e in played.events("budget.exhausted")] == [3, 3]
    assert [e["step"] for e in played.events("node.completed")] == list(range(1, 9))


@pytest.mark.parametrize("answer", [NO, None])
def test_stop_cancels_the_run(answer: Any) -> None:
    played = play(looper(budget={"maxSteps": 2, "policy": "ask"}), [[call("echo")]], tools=ECHO, answers=[answer])

    assert (played.status, played.code) == ("cancelled", "budget_exceeded")
    assert played.report["messages"][-1]["role"] == "tool", "open calls are closed at every end"


def test_a_run_woken_by_something_else_keeps_waiting_for_its_budget() -> None:
    """Another question of the run was answered while its budget question is open."""
    ready = stage(looper(budget={"maxSteps": 2, "policy": "ask"}), read_script({}), PACKS, Limits())
    ready.begin()
    claim = ready.database.write(lambda c: claims.claim(c, RUN_ID, "me", 30_000))
    assert claim is not None
    with ready.database.read() as connection:
        session = loop.open_session(loading.load(connection, RUN_ID, claim.fence), ready.services)
    assert session is not None
    session.begun, session.node_id = True, "think"
    session.signals = {"q": SignalRecord("q", "budget", "Used up")}

    loop.drive(session)

    assert (session.status, session.parked.signal_ids) == ("needs_input", ["q"])
    assert session.steps == 0


def test_the_model_is_told_what_is_left() -> None:
    played = play(looper(budget={"maxSteps": 9, "maxTokens": 100_000}), [[call("echo")], "done"], tools=ECHO)

    notes = [request.messages[-1]["content"] for request in played.requests]
    assert "8 steps" in notes[0]
    assert "6 steps" in notes[1]
    assert all(m.get("kind") != "note" for m in played.report["messages"]), "said, and not stored"


def spawning(kid: dict[str, Any], **call_fields: Any) -> dict[str, Any]:
    return once({"type": "control:spawn", "calls": [{"agentId": kid["id"], "input": "do it"} | call_fields]})


def kid(**fields: Any) -> dict[str, Any]:
    return looper() | {"id": "kid"} | fields


def test_a_child_at_its_limit_reports_once_more_without_tools() -> None:
    child = kid(budget={"maxSteps": 3})
    turns = [[call("echo")], "my report"]

    played = play(spawning(child), turns, tools=ECHO, agents={"kid": child})

    result = played.output["results"][0]
    assert result["output"]["content"] == "my report"
    assert result["budget"] == {"kind": "steps", "limit": 3, "used": 4, "closingStep": True}
    assert played.requests[-1].tools == []
    assert (
        "report" in played.requests[-1].messages[-1]["content"].lower()
        or "last turn" in played.requests[-1].messages[-1]["content"]
    )


@pytest.mark.parametrize("last", [[call("echo")], {"text": ""}, {"text": "x", "calls": [call("echo")]}])
def test_a_closing_answer_with_calls_or_without_words_fails_the_child(last: Any) -> None:
    child = kid(budget={"maxSteps": 2})

    played = play(spawning(child), [[call("echo")], last], tools=ECHO, agents={"kid": child})

    assert played.output["results"][0]["error"]["code"] == "budget_exceeded"


@pytest.mark.parametrize(
    ("given", "own", "limit"), [({"maxSteps": 2}, {"maxSteps": 9}, 2), (None, {"maxSteps": 3}, 3), (None, None, 4)]
)
def test_the_limits_of_a_call_win_over_the_childs_and_its_over_the_parents(given: Any, own: Any, limit: int) -> None:
    child = kid(budget=own)
    boss = spawning(child, **({"budget": given} if given else {})) | {"budget": {"maxSteps": 4}}
    turns = [[call("echo", n=n)] for n in range(limit // 2)] + ["report"]

    played = play(boss, turns, tools=ECHO, agents={"kid": child})

    assert played.output["results"][0]["budget"]["limit"] == limit


def test_a_child_never_asks_a_person_for_more() -> None:
    child = kid(budget={"maxSteps": 2, "policy": "ask"})

    played = play(spawning(child), [[call("echo")], "report"], tools=ECHO, agents={"kid": child})

    assert played.status == "completed"
    assert played.report["interrupts"] == []
