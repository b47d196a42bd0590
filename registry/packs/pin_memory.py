"""The pack `pin-memory`: few facts that an agent reads at each model call (spec: engine 15)."""

from typing import Annotated

from pydantic import Field

from registry.base import Json, Model
from registry.packs.notes import Kept, Key, wired, within
from registry.packs.pack import Pack
from registry.skills.context import SkillContext
from registry.skills.notebook import Pin
from registry.skills.secrets import refuse_secrets
from registry.skills.skill import tool
from registry.times import iso


class PinSpec(Model):
    """How much may be pinned, and how much of it is read at each model call."""

    budget_tokens: Annotated[int, Field(ge=1, le=100_000)] = 1_500
    max_items: Annotated[int, Field(ge=1, le=200)] = 32


class PinSet(Model):
    key: Key
    text: Kept


class PinList(Model):
    pass


class PinRemove(Model):
    key: Key


class Pinned(Model):
    key: str
    text: str
    created_at: str
    updated_at: str
    untrusted: bool = False


class Removed(Model):
    key: str


@tool(
    "pin_set",
    title="Pin",
    timeout_s=5,
    effect="idempotent",
    fails=("denied", "not_allowed", "quota"),
)
def pin_set(given: PinSet, context: SkillContext) -> Pinned:
    """Pins a text of at most 4,000 characters under a key, in place of what is pinned there. You read your pins each
    time before you answer, in later work too: pin little, and keep it short. Texts that look like a key, a token or a
    password are refused."""
    refuse_secrets([("text", given.text), ("key", given.key)], where="pins")
    most = context.spec(PinSpec).max_items
    return _shown(wired(context.notebook).pins.set(context.caller, given.key, given.text, most=most))


@tool("pin_list", title="List pins", timeout_s=5)
def pin_list(_given: PinList, context: SkillContext) -> list[dict[str, Json]]:
    """Lists all your pins, the newest first."""
    found = wired(context.notebook).pins.listed(context.caller, 1_000)
    return [_shown(pin).model_dump(mode="json", by_alias=True) for pin in found]


@tool(
    "pin_remove",
    title="Unpin",
    timeout_s=5,
    effect="idempotent",
    fails=("denied", "not_allowed"),
)
def pin_remove(given: PinRemove, context: SkillContext) -> Removed:
    """Takes a pin away."""
    wired(context.notebook).pins.remove(context.caller, given.key)
    return Removed(key=given.key)


def _shown(pin: Pin) -> Pinned:
    times = {"created_at": iso(pin.created_at), "updated_at": iso(pin.updated_at)}
    return Pinned(key=pin.key, text=pin.text, untrusted=pin.untrusted, **times)


def _note(context: SkillContext) -> str | None:
    if context.notebook is None:
        return None
    spec = context.spec(PinSpec)
    found = context.notebook.pins.listed(context.caller, spec.max_items)
    lines = ((f"- {pin.key}: {' '.join(pin.text.split())}", pin.untrusted) for pin in found)
    listed = within(lines, spec.budget_tokens)
    return None if listed is None else f"Your pins, the newest first:\n{listed}"


PACK = Pack("pin-memory", "pin facts that are read each time", (pin_set, pin_list, pin_remove), PinSpec, _note)
