"""The pack `core`: asking a person, and queueing work for nodes of the running graph (spec: engine 15)."""

from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from registry.base import Json, Model
from registry.errors import SkillError
from registry.packs.pack import Pack
from registry.skills.context import NO_ANSWER, AskPerson, Control, Question, SkillContext
from registry.skills.skill import tool

Text = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
#: Between the chosen labels and the free text of an answer.
JOINT = " · "


class Option(Model):
    id: Annotated[str, StringConstraints(min_length=1, max_length=80)]
    label: Annotated[str, StringConstraints(min_length=1, max_length=200)]


class AskUser(Model):
    prompt: Text
    options: list[Option] = Field(default_factory=list, max_length=20)
    multi: bool = False

    @model_validator(mode="after")
    def _distinct(self) -> "AskUser":
        ids = [option.id for option in self.options]
        if len(set(ids)) != len(ids):
            raise ValueError("two options have the same id")
        return self


class MapOver(Model):
    items: Annotated[list[Json], Field(min_length=1, max_length=32)]
    instruction: Annotated[str, StringConstraints(min_length=1, max_length=8000)] | None = None
    max_tokens_per_item: Annotated[int, Field(ge=1)] | None = None


class Queued(Model):
    count: int


class WaitFor(Model):
    delay_ms: Annotated[int, Field(ge=1, le=604_800_000)]


class Waiting(Model):
    delay_ms: int
    wait_until_ms: int


@tool(
    "ask_user",
    title="Ask the person",
    timeout_s=5,
    effect="idempotent",
    fails=("denied",),
)
def ask_user(asked: AskUser, context: SkillContext) -> str:
    """Asks the person you work for a question and waits for the answer, with options to choose from if you give some.
    Use it only when you cannot go on without them. It does not approve any call."""
    if context.answer is NO_ANSWER:
        options = tuple({"id": o.id, "label": o.label} for o in asked.options)
        raise AskPerson(Question(asked.prompt.splitlines()[0][:120], asked.prompt, _schema(asked), options))
    answer = context.answer if isinstance(context.answer, dict) else {}
    labels = {option.id: option.label for option in asked.options}
    parts = [labels[chosen] for chosen in answer.get("optionIds", []) if chosen in labels]
    if text := str(answer.get("text") or "").strip():
        parts.append(text)
    return JOINT.join(parts) or "no answer"


def _schema(asked: AskUser) -> dict[str, Json]:
    properties: dict[str, Json] = {"text": {"type": "string", "maxLength": 4000}}
    if asked.options:
        chosen: dict[str, Json] = {
            "type": "array",
            "items": {"enum": [o.id for o in asked.options]},
            "uniqueItems": True,
        }
        properties["optionIds"] = chosen if asked.multi else chosen | {"maxItems": 1}
    return {"type": "object", "properties": properties, "additionalProperties": False}


@tool(
    "map",
    title="Map over items",
    timeout_s=5,
    effect="idempotent",
    fails=("no_control_node",),
)
def map_over(wanted: MapOver, context: SkillContext) -> Queued:
    """Queues one small run of yourself for each item, all with the same instruction; their results come back to you
    together. The items must be independent of each other."""
    control = _control(context)
    control.queue("control:map", "mapItems", wanted.items)
    if wanted.instruction is not None:
        control.queue("control:map", "mapInstruction", wanted.instruction)
    if wanted.max_tokens_per_item is not None:
        control.queue("control:map", "mapMaxTokensPerItem", wanted.max_tokens_per_item)
    return Queued(count=len(wanted.items))


@tool(
    "wait",
    title="Wait",
    timeout_s=5,
    effect="idempotent",
    fails=("denied", "no_control_node"),
)
def wait(wanted: WaitFor, context: SkillContext) -> Waiting:
    """Pauses your run for a time without costing anything; you go on afterwards with the same history."""
    until = context.now_ms() + wanted.delay_ms
    _control(context).queue("control:wait", "waitUntilMs", until)
    return Waiting(delay_ms=wanted.delay_ms, wait_until_ms=until)


def _control(context: SkillContext) -> Control:
    if context.control is None:
        raise SkillError("no_control_node", "this call is not part of a graph that could do it")
    return context.control


PACK = Pack("core", "ask a person, map over items, wait", (ask_user, map_over, wait))
