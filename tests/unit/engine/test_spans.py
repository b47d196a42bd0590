"""A run as spans: legs, tools, model calls, and the waits between, all in one trace."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.telemetry import Memory, remembered
from tests.unit.engine.graphs import SPEAK, agent, ask, looper, once, speaker
from tests.unit.engine.stages import TASK, call, play
from workers.inprocess.stage import Stage
from workers.models.spans import traced

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
SECRET = "the recipe of the sauce"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with remembered() as found:
        yield found


def with_model_spans(stage: Stage) -> None:
    """The scripted model of a test, as spans show a model."""
    model = stage.services.model
    stage.services.model = lambda run: traced(model(run), "small-one", "script")


def test_a_run_is_an_agents_span_with_its_model_calls_and_tools_below(memory: Memory) -> None:
    script: dict[str, Any] = {"tools": {"oven": ask("fs.read")}, "input": SECRET}
    play(looper(name="Ada"), [[call("oven", heat=SECRET)], SECRET], task=TASK, prepare=with_model_spans, **script)

    leg = memory.spans.one("invoke_agent Ada")
    assert memory.spans.below(leg) == ["chat small-one", "execute_tool oven", "chat small-one"]
    assert {s.trace_id for s in memory.spans} == {leg.trace_id}
    assert (leg.kind, leg.parent, leg.failed) == ("INTERNAL", "", False)
    about = leg.attributes
    assert (about["gen_ai.operation.name"], about["gen_ai.agent.id"]) == ("invoke_agent", "ada")
    assert (about["officina.task.key"], about["officina.run.kind"]) == ("draft", "root")
    assert (about["officina.run.status"], about["officina.run.steps"]) == ("completed", 4)


def test_a_model_call_names_model_usage_and_reason_and_a_tool_its_call(memory: Memory) -> None:
    turns = [[call("oven", heat=200)], "Done."]
    played = play(looper(), turns, prepare=with_model_spans, tools={"oven": ask("fs.read")}, input="x")

    first, last = memory.spans.named("chat small-one")
    assert first.kind == last.kind == "CLIENT"
    assert first.attributes["gen_ai.response.finish_reasons"] == ("tool_call",)
    assert last.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert (last.attributes["gen_ai.request.model"], last.attributes["gen_ai.provider.name"]) == ("small-one", "script")
    told = played.events("think")[-1]["usage"]
    assert last.attributes["gen_ai.usage.input_tokens"] == told["inputTokens"] > 0
    assert last.attributes["gen_ai.usage.output_tokens"] == told["outputTokens"] > 0
    tool = memory.spans.one("execute_tool oven").attributes
    assert (tool["gen_ai.operation.name"], tool["gen_ai.tool.name"]) == ("execute_tool", "oven")
    assert (tool["gen_ai.tool.type"], tool["officina.tool.outcome"]) == ("function", "ok")
    assert tool["gen_ai.tool.call.id"]


@pytest.mark.parametrize("shown", [False, True])
def test_what_was_said_is_in_no_span_unless_the_standard_variable_asks_for_it(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, shown: bool
) -> None:
    if shown:
        monkeypatch.setenv(CONTENT, "true")
    definition = looper(instructions=f"Keep {SECRET}.")
    turns = [[call("oven", heat=SECRET)], SECRET]
    play(definition, turns, prepare=with_model_spans, tools={"oven": {"returns": SECRET}}, input=SECRET)

    holding = {
        (span.name, key) for span in memory.spans for key, value in span.attributes.items() if SECRET in str(value)
    }
    in_tools = {("execute_tool oven", f"gen_ai.tool.call.{part}") for part in ("arguments", "result")}
    in_calls = {("chat small-one", f"gen_ai.{part}") for part in ("input.messages", "output.messages")}
    assert holding == (in_tools | in_calls | {("chat small-one", "gen_ai.system_instructions")} if shown else set())


def test_a_tool_that_fails_and_a_run_that_fails_say_so_by_code_alone(memory: Memory) -> None:
    tools = {"oven": {"raises": SECRET}}
    play(looper(), [[call("oven")]], tools=tools, input="x")

    tool, leg = memory.spans.one("execute_tool oven"), memory.spans.one("invoke_agent ada")
    assert tool.failed and leg.failed
    assert leg.attributes["error.type"] == "model_script_exhausted"
    assert SECRET not in str([span.attributes for span in memory.spans])


def test_a_tool_that_the_model_made_up_gives_no_span_its_name(memory: Memory) -> None:
    play(looper(), [[call("the-recipe-of-the-sauce")], "Done."], input="x")

    tool = memory.spans.one("execute_tool unknown")
    assert tool.failed
    assert "recipe" not in str([(span.name, span.attributes) for span in memory.spans])


def test_a_run_that_goes_on_after_an_answer_is_a_new_span_linked_to_the_one_before(memory: Memory) -> None:
    turns = [[call("oven", heat=1)], "Done."]
    tools = {"oven": ask("process")}
    play(looper(), turns, tools=tools, answers=[{"approved": True}], permissions={"process": "ask"}, input="x")

    before, after = memory.spans.named("invoke_agent ada")
    assert (before.attributes["officina.run.status"], before.attributes["officina.park.on"]) == (
        "needs_input",
        "signals",
    )
    assert after.links == {before.id: "answer"}
    assert after.attributes["officina.resumed_by"] == "answer"
    assert after.trace_id == before.trace_id
    approval = memory.spans.one("approval")
    assert approval.parent == before.id
    assert approval.attributes["officina.signal.answer"] == "approved"
    assert approval.attributes["officina.signal.skill"] == "oven"
    asked, done = memory.spans.named("execute_tool oven")
    assert asked.attributes["officina.tool.outcome"] == "approval_required" and not asked.failed
    assert (done.parent, done.attributes["officina.tool.outcome"]) == (after.id, "ok")


def test_a_no_is_an_approval_span_too(memory: Memory) -> None:
    tools, answers = {"oven": ask("process")}, [{"approved": False}]
    play(looper(), [[call("oven")], "Done."], tools=tools, answers=answers, permissions={"process": "ask"}, input="x")

    assert memory.spans.one("approval").attributes["officina.signal.answer"] == "rejected"


def test_an_interrupt_is_a_span_from_the_question_to_the_answer(memory: Memory) -> None:
    node = {"type": "control:interrupt", "reason": "Which?", "resumeSchema": {"type": "object"}}
    play(once(node), [], answers=[{"pick": 1}], input="x")

    asked = memory.spans.one("ask interrupt")
    assert asked.attributes["officina.signal.answer"] == "answered"
    assert asked.parent == memory.spans.named("invoke_agent ada")[0].id


def test_a_handoff_ends_the_span_of_one_speaker_and_begins_that_of_the_next(memory: Memory) -> None:
    nodes = {"go": {"type": "control:handoff", "agentId": "bob"}}
    ada = agent(nodes, "start -> go", "go -> end", end=None)
    play(ada, ["Done."], agents={"bob": speaker("bob")}, input="x")

    ada_leg, bob_leg = memory.spans.one("invoke_agent ada"), memory.spans.one("invoke_agent bob")
    handoff = memory.spans.one("handoff bob")
    assert handoff.parent == ada_leg.id
    assert (handoff.attributes["officina.handoff.from"], handoff.attributes["officina.handoff.to"]) == ("ada", "bob")
    assert bob_leg.links == {ada_leg.id: "handoff"}
    assert ada_leg.ended <= bob_leg.begun
    assert ada_leg.attributes["officina.run.status"] == "handed_over"
    assert bob_leg.trace_id == ada_leg.trace_id


def test_children_hang_under_the_leg_that_made_them_and_the_fan_out_spans_all_of_them(memory: Memory) -> None:
    calls = [{"agentId": "kid", "input": n} for n in range(3)]
    play(once({"type": "control:spawn", "calls": calls}), ["a", "b", "c"], agents={"kid": speaker()}, input="x")

    made, took = memory.spans.named("invoke_agent ada")
    children = memory.spans.named("invoke_agent kid")
    assert [child.parent for child in children] == [made.id] * 3
    assert took.links == {made.id: "children"}
    fan_out = memory.spans.one("spawn")
    assert (fan_out.parent, fan_out.attributes["officina.fanout.children"]) == (made.id, 3)
    assert fan_out.attributes["officina.fanout.failed"] == 0
    assert all(fan_out.begun <= child.begun and child.ended <= fan_out.ended for child in children)


def test_a_map_counts_the_items_that_failed(memory: Memory) -> None:
    nodes = {
        "m": {"type": "control:map", "items": [1, 2], "enter": "w", "body": ["w", "y"]},
        "w": SPEAK,
        "y": {"type": "control:yield"},
    }
    play(agent(nodes, "start -> m", "m -> end", "w -> y"), ["only one"], input="x")

    fan_out = memory.spans.one("map")
    assert (fan_out.attributes["officina.fanout.children"], fan_out.attributes["officina.fanout.failed"]) == (2, 1)
