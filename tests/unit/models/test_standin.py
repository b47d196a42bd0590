"""The stand-in: the turn follows from script and situation, and nothing else."""

import threading
import time

import pytest

from workers.models.model import ModelFault, Request, Situation, Tool, ToolResult
from workers.models.standin import StandIn

TASK = {
    "key": "sum",
    "title": "Add up",
    "role": "analyst",
    "instruction": "Add 40 and 2.",
    "deliverables": ["docs/sum.md"],
}
SCRIPT = {
    "tasks": {
        "sum": [
            {"say": "Counting.", "calls": [{"name": "math.evaluate", "args": {"expression": "40 + 2"}, "id": "m"}]},
            {
                "calls": [
                    {
                        "name": "docs.write_markdown",
                        "args": {"path": "docs/sum.md", "title": "Sum", "markdown": "It is {{ byId.m.output.value }}."},
                    },
                    {"name": "other", "args": {"exact": "{{ results[0].output.value }}"}},
                ]
            },
            {"say": "The sum is {{ results[0].output.value }} for {{ input.text }}."},
        ]
    },
    "agents": {"helper": [{"say": "Helped."}], "Ann": [{"say": "Ann here."}]},
    "items": {"sum": [{"say": "Item {{ index }}: {{ item.name }}"}]},
    "skills": {"llm.generate": ["first", {"say": "second"}], "llm.structured": [{"output": {"n": 1}}]},
}
RESULTS = [ToolResult("m", "math.evaluate", True, {"value": 42}, "42")]


def ask(*, script=SCRIPT, output=None, tools=(), cancelled=lambda: False, **where):
    where = {"task": TASK, "input": {"text": "T", "dependencies": {}}, **where}
    request = Request(
        tier="standard",
        messages=[{"role": "user", "content": "Add."}],
        tools=[Tool(name, "", {"type": "object"}) for name in tools],
        output=output,
        cancelled=cancelled,
        situation=Situation(script=script, **where),
    )
    return StandIn().generate(request)


def test_a_turn_says_and_calls_what_the_script_says():
    reply = ask(turn=0)
    assert (reply.text, reply.finish_reason) == ("Counting.", "tool-calls")
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [
        ("m", "math.evaluate", {"expression": "40 + 2"})
    ]


def test_later_turns_are_filled_with_the_real_results_and_keep_their_types():
    reply = ask(turn=1, results=RESULTS)
    assert reply.calls[0].arguments["markdown"] == "It is 42."
    assert reply.calls[1].arguments == {"exact": 42}
    assert reply.calls[1].id is None


def test_the_last_turn_without_calls_ends_with_words():
    reply = ask(turn=2, results=RESULTS)
    assert (reply.text, reply.calls, reply.finish_reason) == ("The sum is 42 for T.", [], "stop")


def test_a_reply_is_labelled_free_and_counted_by_characters():
    reply = ask(turn=0)
    assert (reply.stand_in, reply.model, reply.cost_micro) == (True, "stand-in", 0)
    assert reply.usage.estimated and reply.usage.input_tokens >= 1 and reply.usage.output_tokens >= 1


def test_the_same_script_and_situation_give_the_same_answer_from_any_instance():
    first, second = ask(turn=1, results=RESULTS), ask(turn=1, results=RESULTS)
    assert (first.text, first.calls, first.usage) == (second.text, second.calls, second.usage)


def test_children_and_items_have_turns_of_their_own():
    assert ask(kind="spawn", agent_id="helper").text == "Helped."
    assert ask(kind="spawn", agent_id="x1", agent_name="Ann").text == "Ann here."
    assert ask(kind="item", item={"name": "pear"}, index=3).text == "Item 3: pear"
    assert ask(task=None, agent_id="helper").text == "Helped."


def test_answers_inside_skills_come_from_the_list_of_the_skill():
    assert [ask(skill="llm.generate", turn=turn).text for turn in (0, 1)] == ["first", "second"]
    assert ask(skill="llm.structured", output={"type": "object"}).text == '{"n":1}'


def test_a_structured_answer_nobody_scripted_inside_a_skill_is_not_wired():
    with pytest.raises(ModelFault) as caught:
        ask(skill="web.research", output={"type": "object"})
    assert caught.value.code == "model_unresolved"


def test_output_is_the_text_where_a_structured_answer_is_wanted():
    script = {"tasks": {"sum": [{"say": "words", "output": {"n": "{{ results[0].output.value }}"}}]}}
    assert ask(script=script, results=RESULTS, output={"type": "object"}).text == '{"n":42}'
    assert ask(script=script, results=RESULTS).text == "words"


def test_a_script_that_runs_out_says_which_and_how_to_end_it():
    with pytest.raises(ModelFault) as caught:
        ask(turn=3)
    assert caught.value.code == "model_script_exhausted"
    assert "task 'sum'" in caught.value.message and "3 turns" in caught.value.message


def test_a_closing_call_gets_words_and_no_calls():
    assert (ask(turn=0, closing=True).text, ask(turn=0, closing=True).calls) == ("Counting.", [])
    past = ask(turn=9, closing=True)
    assert past.text.startswith("[stand-in] ") and past.calls == []


def test_a_template_that_fails_names_task_turn_and_place():
    script = {"tasks": {"sum": [{"calls": [{"name": "x", "args": {"a": ["{{ results[0].output.nope }}"]}}]}]}}
    with pytest.raises(ModelFault) as caught:
        ask(script=script, results=RESULTS)
    assert (caught.value.code, caught.value.passing) == ("model_failed", False)
    assert "task 'sum', turn 1" in caught.value.message
    assert "calls[0].a[0]" in caught.value.message and "'nope'" in caught.value.message


def test_item_and_index_are_unknown_outside_item_runs():
    with pytest.raises(ModelFault, match="'item' is undefined"):
        ask(script={"tasks": {"sum": [{"say": "{{ item }}"}]}})


def test_otherwise_fail_refuses_what_no_script_covers():
    with pytest.raises(ModelFault) as caught:
        ask(script={"tasks": {}, "otherwise": "fail"})
    assert caught.value.code == "model_script_exhausted"
    assert "task 'sum'" in caught.value.message


def test_a_pause_ends_when_the_run_is_cancelled():
    # Given a turn that pauses for a long time
    stop, begun = threading.Event(), time.monotonic()
    timer = threading.Timer(0.1, stop.set)
    timer.start()
    # When the run is cancelled meanwhile
    with pytest.raises(ModelFault) as caught:
        ask(script={**SCRIPT, "delayMs": 30_000}, cancelled=stop.is_set)
    # Then the call ends, as something that may be tried again
    assert caught.value.passing
    assert time.monotonic() - begun < 5


def test_a_pause_counts_as_the_duration_of_the_call():
    assert ask(script={**SCRIPT, "delayMs": 30}).duration_ms >= 30
