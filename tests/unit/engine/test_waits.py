"""Waits, handoffs and structured answers (spec: engine 6)."""

from typing import Any

import pytest

from orchestrator.limits import Limits
from tests.unit.engine.graphs import THINK, agent, once, speaker
from tests.unit.engine.stages import play

GOT = {"type": "control:assign", "patch": {"got": "$resume"}}


def waiting(**fields: Any) -> dict[str, Any]:
    return agent({"w": {"type": "control:wait"} | fields, "a": GOT}, "start -> w", "w -> a", "a -> end")


def test_a_sleep_ends_by_its_timer_and_leaves_the_output_alone() -> None:
    nodes = {"x": {"type": "control:assign", "patch": {"x": 1}}, "w": {"type": "control:wait", "delayMs": 60_000}}

    played = play(agent(nodes, "start -> x", "x -> w", "w -> end"), [])

    assert played.output == {"patched": ["x"]}
    assert played.events("wait.ended") == [{"timedOut": False, "by": "timer"}]
    assert [e["on"] for e in played.events("run.parked")] == ["timer"]
    assert play(waiting(delayMs=5), []).report["state"]["got"] == {"timedOut": False}


def test_a_time_in_the_past_is_due_at_once_and_the_key_is_removed() -> None:
    made = waiting(untilMs="$state.waitUntilMs") | {"state": {"initial": {"waitUntilMs": 5}}}

    played = play(made, [])

    assert played.status == "completed"
    assert "waitUntilMs" not in played.report["state"]


@pytest.mark.parametrize("value", ["soon", None, True, [5]])
def test_a_time_that_is_none_fails_the_run(value: Any) -> None:
    played = play(waiting(untilMs="$input"), [], input=value)

    assert (played.status, played.code) == ("failed", "wait_mode")


def test_a_gate_opens_by_an_answer_that_fits() -> None:
    schema = {"type": "object", "required": ["n"]}

    opened = play(waiting(resumeSchema=schema, timeoutMs=50), [], answers=[{"n": 1}])
    refused = play(waiting(resumeSchema=schema), [], answers=[{"m": 1}])
    rejected = play(waiting(), [], answers=[None])
    patient = play(waiting(), [])

    assert opened.report["state"]["got"] == {"n": 1}
    assert opened.events("wait.ended") == [{"timedOut": False, "by": "answer"}]
    assert (refused.status, refused.code) == ("waiting", "resume_validation_failed")
    assert (rejected.status, rejected.report["state"]["got"]) == ("completed", None)
    assert (patient.status, [s["kind"] for s in patient.report["interrupts"]]) == ("waiting", ["gate"])


def test_a_gate_that_nobody_opens_in_time() -> None:
    fails = play(waiting(timeoutMs=50), [])
    goes_on = play(waiting(timeoutMs=50, onTimeout="continue"), [])
    asks = play(waiting(timeoutMs=50, onTimeout="interrupt"), [])

    assert (fails.status, fails.code) == ("failed", "wait_timeout")
    assert goes_on.report["state"]["got"] == {"timedOut": True}
    assert [s["status"] for s in goes_on.report["interrupts"]] == ["expired"], "it cannot be opened any more"
    assert len(goes_on.events("signal.expired")) == 1
    assert (asks.status, [s["status"] for s in asks.report["interrupts"]]) == ("needs_input", ["open"])


def test_a_gate_stands_open_for_all_of_its_time_and_a_question_for_as_long_as_the_settings_say() -> None:
    def life(definition: dict[str, Any], **settings: int) -> float:
        (signal,) = play(definition, [], limits=Limits(**settings)).report["interrupts"]
        return (signal["expiresAt"] - signal["createdAt"]) / 86_400_000

    asks = agent({"i": {"type": "control:interrupt", "reason": "Go on?"}}, "start -> i", "i -> end")
    assert life(waiting(timeoutMs=30 * 86_400_000, onTimeout="interrupt")) >= 37
    assert [round(life(one, signal_life_days=3), 3) for one in (waiting(), asks)] == [3, 3]


def handing(text: str = "bob", **fields: Any) -> dict[str, Any]:
    return agent({"h": {"type": "control:handoff", "agentId": text} | fields}, "start -> h", "h -> end")


def test_a_handoff_goes_on_as_another_with_state_history_and_counters() -> None:
    bob = speaker("bob") | {"instructions": "You are Bob."}
    made = handing() | {"state": {"initial": {"kept": 1}}}

    played = play(made, ["Bob here"], input="hello", agents={"bob": bob})

    assert played.output["content"] == "Bob here"
    assert played.report["state"] == {"kept": 1}
    assert played.report["steps"] == 4
    assert played.requests[0].system.startswith("You are Bob.")
    assert [m["content"] for m in played.report["messages"] if m["role"] == "user"] == ["hello"]
    assert [m["kind"] for m in played.report["messages"] if m.get("kind")] == ["note"]


def test_an_input_of_its_own_is_appended_unless_it_is_the_same() -> None:
    bob = speaker("bob")

    other = play(handing(input="and now this"), ["ok"], input="hello", agents={"bob": bob})
    same = play(handing(input="$input"), ["ok"], input="hello", agents={"bob": bob})

    assert [m["content"] for m in other.report["messages"] if m["role"] == "user"] == ["hello", "and now this"]
    assert [m["content"] for m in same.report["messages"] if m["role"] == "user"] == ["hello"]


@pytest.mark.parametrize(
    ("text", "given", "code"),
    [
        ("ghost", None, "handoff_target"),
        ("ada", None, "handoff_self"),
        ("$input", 3, "handoff_target"),
        ("$input", "", "handoff_target"),
    ],
)
def test_a_handoff_that_cannot_be(text: str, given: Any, code: str) -> None:
    assert play(handing(text), [], input=given, agents={"bob": speaker("bob")}).code == code


def test_a_run_changes_its_speaker_only_so_often() -> None:
    ping = handing("bob") | {"id": "ada"}
    pong = handing("ada") | {"id": "bob"}

    played = play(ping, [], agents={"bob": pong}, limits=Limits(handoffs_per_run=3))

    assert (played.status, played.code) == ("failed", "handoff_limit")
    assert [e["agentId"] for e in played.events("agent.handoff")] == ["bob", "ada", "bob"]


SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


def structured() -> dict[str, Any]:
    return once(THINK | {"output": SCHEMA, "tools": []}, end="$output.structured")


@pytest.mark.parametrize("text", ['{"n": 1}', '```json\n{"n": 1}\n```', 'Here it is:\n```\n{"n": 1}\n```'])
def test_a_structured_answer_is_read_whole_or_from_its_first_fence(text: str) -> None:
    assert play(structured(), [text]).output == {"n": 1}


def test_an_answer_that_does_not_fit_is_asked_for_once_more() -> None:
    repaired = play(structured(), ['{"n": "one"}', '{"n": 1}'])
    hopeless = play(structured(), ["no", "never"])

    assert (repaired.output, repaired.report["steps"]) == ({"n": 1}, 2)
    assert "n: 'one' is not of type" in str(repaired.requests[1].messages)
    assert len(repaired.events("think")) == 2
    assert (hopeless.status, hopeless.code, len(hopeless.requests)) == ("failed", "output_invalid", 2)


@pytest.mark.parametrize("text", ['{"n": NaN}', '{"n": 1, "n": 2}', "[" * 150 + "]" * 150])
def test_an_answer_that_nobody_could_store_is_asked_for_once_more(text: str) -> None:
    loose = once(THINK | {"output": {"properties": {"n": {}}}, "tools": []}, end="$output.structured")

    played = play(loose, [text, '{"n": 1}'])

    assert (played.status, played.output, len(played.requests)) == ("completed", {"n": 1}, 2)


def test_texts_of_a_structured_answer_can_be_stored() -> None:
    loose = once(THINK | {"output": {"properties": {"n": {}}}, "tools": []}, end="$output.structured")

    assert play(loose, [r'{"n": ["a\u0000b", {"\ud800": "\udfff"}]}']).output == {
        "n": ["a\ufffdb", {"\ufffd": "\ufffd"}]
    }


def test_keys_of_a_structured_answer_stand_in_the_output_but_never_over_the_reserved() -> None:
    schema = {"type": "object", "properties": {"colour": {}, "text": {}}}
    nodes = {"t": THINK | {"output": schema, "tools": []}}

    played = play(
        agent(nodes, "start -> t", "t -> end", end=["$output.colour", "$output.text"]),
        ['{"colour": "red", "text": "x"}'],
    )

    assert played.output == ["red", '{"colour": "red", "text": "x"}']
