"""Scripted turns: one list, used up in order by whichever run asks."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from registry.errors import WrongUse
from workers.models.model import ModelFault, Request
from workers.models.scripted import ScriptedModel

REQUEST = Request(tier="standard")


def test_turns_come_in_order_and_then_there_are_none():
    model = ScriptedModel([{"calls": [{"id": "a", "name": "echo", "args": {"x": 1}}]}, {"text": "done"}])
    first, second = model.generate(REQUEST), model.generate(REQUEST)
    assert (first.finish_reason, first.calls[0].id, first.calls[0].arguments) == ("tool-calls", "a", {"x": 1})
    assert (second.finish_reason, second.text, second.calls) == ("stop", "done", [])
    with pytest.raises(ModelFault) as caught:
        model.generate(REQUEST)
    assert caught.value.code == "model_script_exhausted"


def test_a_call_without_args_has_an_empty_object_and_others_are_as_written():
    calls = [{"name": "a"}, {"name": "b", "args": None}, {"name": "c", "args": "text"}]
    reply = ScriptedModel([{"text": "both", "calls": calls}]).generate(REQUEST)
    assert reply.text == "both"
    assert [call.arguments for call in reply.calls] == [{}, None, "text"]


def test_every_call_counts_at_least_a_token():
    usage = ScriptedModel([{"text": ""}]).generate(REQUEST).usage
    assert usage.total >= 1
    assert usage.estimated


def test_threads_share_the_list_without_taking_a_turn_twice():
    model = ScriptedModel([{"text": str(n)} for n in range(400)])
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda _: model.generate(REQUEST).text, range(400)))
    assert sorted(said, key=int) == [str(n) for n in range(400)]


@pytest.mark.parametrize(
    ("turns", "path"),
    [
        ([{}], "model[0]"),
        ([{"text": "a"}, {"calls": [{"args": {}}]}], "model[1].calls[0].name"),
        ([{"say": "a"}], "model[0].say"),
        ([{"text": 5}], "model[0].text"),
        ({"text": "a"}, "model"),
        (["a"], "model[0]"),
    ],
)
def test_a_turn_of_another_shape_is_wrong_use_with_its_path(turns, path):
    with pytest.raises(WrongUse) as caught:
        ScriptedModel(turns)
    assert [fault.path for fault in caught.value.faults] == [path]
