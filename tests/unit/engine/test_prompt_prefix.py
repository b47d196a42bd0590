"""Consecutive model calls of a run share their beginning byte for byte: providers keep what they have read of it."""

from itertools import pairwise

import pytest

from registry.jsontext import compact
from tests.unit.engine.graphs import looper
from tests.unit.engine.stages import call, play
from workers.models import payload
from workers.models.tiers import Endpoint

MODEL = Endpoint("m", "http://127.0.0.1:1/v1", 100)
TOOLS = {"echo": {}, "alpha": {}, "zulu": {}}


def sent(request):
    """What a provider reads, in its order: tools, then messages; without the notes, which come last and are new."""
    body = payload.build(MODEL, request)
    messages = body["messages"]
    noted = str(messages[-1]["content"]).startswith("<note")
    return compact(body["tools"]), [compact(message) for message in (messages[:-1] if noted else messages)], noted


@pytest.mark.parametrize("budget", [None, {"maxSteps": 40, "maxTokens": 100_000}], ids=["plain", "with notes"])
def test_each_call_sends_the_bytes_of_the_call_before_and_goes_on(budget):
    definition = looper() | ({"budget": budget} if budget else {})
    turns = [[call("zulu", n=1), call("alpha", n=2)], [call("echo", n=3)], [call("echo", n=4)], "done"]
    played = play(definition, turns, tools=TOOLS)
    assert played.status == "completed"
    calls = [sent(request) for request in played.requests]
    assert len(calls) == 4
    for (tools, messages, _), (tools_next, messages_next, _) in pairwise(calls):
        assert tools_next == tools
        assert messages_next[: len(messages)] == messages
        assert len(messages_next) > len(messages)
    if budget:
        assert all(noted for _, _, noted in calls), "what changes from call to call stands at the end"
