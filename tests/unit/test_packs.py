"""Packs as the host registers them: their settings are checked, and what one says is read at each model call."""

from dataclasses import replace
from typing import Annotated

import pytest
from pydantic import Field

from orchestrator.limits import Limits
from registry.base import Model
from registry.packs import PACKS, NoSpec, Pack
from registry.skills.context import SkillContext
from registry.skills.skill import skill
from workers.inprocess.script import read_script
from workers.inprocess.stage import stage


class Greeting(Model):
    word: Annotated[str, Field(max_length=10)] = "hello"


class Nothing(Model):
    pass


class Said(Model):
    word: str


@skill("greet", title="Greet", timeout_s=5, catalogued=False, documented=False)
def greet(_asked: Nothing, context: SkillContext) -> Said:
    """Says the word of the settings."""
    return Said(word=context.spec(Greeting).word)


GREETER = Pack("greeter", "say a word", (greet,), Greeting, lambda context: f"greet with {context.spec(Greeting).word}")


def played(packs, spec):
    definition = {"id": "a", "instructions": "Greet.", "packs": {"greeter": {"spec": spec}}}
    turns = [{"calls": [{"name": "greet", "args": {}}]}, {"text": "done"}]
    ready = stage(definition, read_script({"model": turns}), packs, Limits())
    asked = []
    model = ready.services.model

    def listening(run):
        client = model(run)

        class Listening:
            def __getattr__(self, name):
                return getattr(client, name)

            def generate(self, request):
                asked.append(request)
                return client.generate(request)

        return Listening()

    ready.services.model = listening
    return ready.play(), asked


def test_a_tool_reads_the_settings_the_agent_gives_its_pack() -> None:
    report, _ = played({**PACKS, "greeter": GREETER}, {"word": "ahoy"})
    assert report["status"] == "completed"
    (result,) = [e["data"]["output"] for e in report["events"] if e["kind"] == "tool.result"]
    assert result == {"word": "ahoy"}


def test_what_a_pack_has_to_say_is_read_at_each_model_call_and_kept_nowhere() -> None:
    report, asked = played({**PACKS, "greeter": GREETER}, {})
    assert len(asked) == 2
    assert all(
        'kind="greeter"' in r.messages[-1]["content"] and "greet with hello" in r.messages[-1]["content"] for r in asked
    )
    assert "greet with" not in str(report["messages"])


def test_a_pack_with_nothing_to_say_is_not_mentioned() -> None:
    silent = replace(GREETER, note=lambda _context: None)
    _, asked = played({**PACKS, "greeter": silent}, {})
    assert not any("greeter" in str(request.messages[-1]) for request in asked)


@pytest.mark.parametrize(
    ("spec", "names"), [({"wrod": "x"}, "wrod"), ({"word": 3}, "word"), ({"word": "x" * 11}, "word")]
)
def test_settings_that_do_not_fit_are_refused_by_the_field(spec, names) -> None:
    assert names in str(GREETER.spec_fault(spec))
    report, _ = played({**PACKS, "greeter": GREETER}, spec)
    assert (report["status"], report["code"]) == ("failed", "agent_invalid")


def test_no_two_packs_have_a_tool_of_the_same_name_and_each_says_what_it_is_for() -> None:
    names = [name for pack in PACKS.values() for name in pack.tool_names]
    assert len(names) == len(set(names))
    assert all(pack.about and pack.spec_fault({}) is None for pack in PACKS.values())
    assert NoSpec().to_json() == {}
