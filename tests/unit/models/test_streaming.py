"""Streamed answers of all the shapes servers give them."""

import json

import pytest

from workers.models.answers import BrokenAnswer, of
from workers.models.model import Request, Tool
from workers.models.streaming import read
from workers.models.tiers import Endpoint

MODEL = Endpoint("m", "http://127.0.0.1:1/v1", 100)
TOOLS = [Tool("files.read", "Reads.", {"type": "object"})]


def lines(*events, done=True):
    for event in events:
        yield f"data: {json.dumps(event)}"
        yield ""
    if done:
        yield "data: [DONE]"


def delta(finish=None, **fields):
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call(number, name=None, arguments="", id_=None):
    found = {"function": {"arguments": arguments} | ({"name": name} if name else {})}
    return found | ({"index": number} if number is not None else {}) | ({"id": id_} if id_ else {})


def reply(*events, **more):
    heard = []
    answer = read(lines(*events, **more), lambda piece, text: heard.append((piece, text)))
    return of(answer, MODEL, Request("standard", tools=TOOLS), duration_ms=1), heard


def test_words_are_heard_as_they_come_and_the_answer_is_whole():
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    said, heard = reply(
        delta(role="assistant", content=""),
        delta(reasoning_content="Hm."),
        delta(content="Hello "),
        delta(content="there."),
        delta("stop"),
        usage,
    )
    assert (said.text, said.reasoning, said.finish_reason, said.usage.total) == ("Hello there.", "Hm.", "stop", 10)
    assert heard == [("reasoning", "Hm."), ("text", "Hello "), ("text", "there.")]


@pytest.mark.parametrize(
    "pieces",
    [
        [[call(0, "files__read", '{"pa', "c1")], [call(0, None, 'th": "a"}')], [call(1, "files__read", "{}", "c2")]],
        [
            [call(None, "files__read", '{"pa', "c1")],
            [call(None, None, 'th": "a"}')],
            [call(None, "files__read", "{}", "c2")],
        ],
        [[call(0, "files__read", '{"path": "a"}', "c1"), call(1, "files__read", "{}", "c2")]],
        [
            [call(0, "files__read", '{"pa', "c1")],
            [call(0, "files__read", 'th": "a"}', "c1")],
            [call(1, "files__read", "{}", "c2")],
        ],
    ],
    ids=["numbered", "unnumbered", "whole", "names repeated"],
)
def test_calls_are_put_together(pieces):
    said, heard = reply(*[delta(tool_calls=calls) for calls in pieces], delta("tool_calls"))
    assert [(one.id, one.name, one.arguments) for one in said.calls] == [
        ("c1", "files.read", {"path": "a"}),
        ("c2", "files.read", {}),
    ]
    assert (said.finish_reason, heard) == ("tool-calls", [])


def test_a_call_that_the_length_limit_cut_off_was_never_made():
    said, _ = reply(delta(content="Read"), delta(tool_calls=[call(0, "files__read", '{"pa', "c1")]), delta("length"))
    assert (said.calls, said.finish_reason, said.usage.estimated) == ([], "length", True)


def test_an_end_without_the_word_for_it_is_one_where_the_answer_had_ended():
    assert reply(delta(content="Done."), delta("stop"), done=False)[0].text == "Done."


@pytest.mark.parametrize(
    "events",
    [
        [delta(content="Hel")],
        [delta(content="Hel"), {"error": {"message": "overloaded"}}],
        [delta(content="Hel"), ["no object"]],
        [],
    ],
)
def test_a_stream_that_breaks_off_is_no_answer(events):
    with pytest.raises(BrokenAnswer):
        reply(*events, done=False)


def test_what_is_no_json_is_no_answer():
    with pytest.raises(BrokenAnswer):
        read(iter(["data: {", ""]), lambda *_: None)


@pytest.mark.parametrize(
    "event",
    [
        {"choices": [{"delta": {"content": 7, "tool_calls": "x", "reasoning": []}}]},
        {"choices": ["x"]},
        {"choices": "x"},
        {"choices": [{"delta": {"tool_calls": [7, {"function": 7}]}}]},
        {},
    ],
)
def test_odd_events_do_no_harm(event):
    assert reply(event, delta(content="Well."), delta("stop"))[0].text == "Well."


def test_comments_and_other_fields_of_the_stream_are_passed_over():
    given = [": keep-alive", "", "event: message", "id: 1", *lines(delta(content="Hi."), delta("stop"))]
    assert read(given, lambda *_: None)["choices"][0]["message"]["content"] == "Hi."
