"""The pack `webhook`: doors for others to start work, each with a secret no model sees (spec: engine 15)."""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from registry.base import Json, Model
from registry.errors import SkillError
from registry.packs.agents import top_level
from registry.packs.pack import Pack
from registry.skills.context import SkillContext
from registry.skills.skill import Effect, tool
from registry.skills.triggers import Hand, Hooked, Webhooks
from registry.text import one_line, storable

NOT_WIRED: Final = "no webhooks are kept here: nothing was done"

Id = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=120, strip_whitespace=True), AfterValidator(one_line)]
Detail = Annotated[str, StringConstraints(max_length=4000), AfterValidator(storable)]


class ListWebhooks(Model):
    pass


class SetWebhook(Model):
    id: Id | None = Field(default=None, description="of the webhook to change; a new one when left out")
    name: Name | None = None
    detail: Detail | None = Field(default=None, description="what is said where a delivery brings no text")
    agent_id: Id | None = Field(default=None, description="who it speaks to; you when left out")
    status: Literal["active", "paused"] | None = None

    @model_validator(mode="after")
    def _fits(self) -> "SetWebhook":
        if self.id is None and self.name is None:
            raise ValueError("a new webhook needs a name; to change one, give its id")
        return self


class Delete(Model):
    id: Id


class Deleted(Model):
    id: str


def _effect(given: SetWebhook) -> Effect:
    return "once" if given.id is None else "idempotent"


@tool("webhook_list", title="List webhooks", timeout_s=5, needs=("webhooks",))
def list_webhooks(_asked: ListWebhooks, context: SkillContext) -> list[dict[str, Json]]:
    """Lists your webhooks: those you made, and those that speak to you. Their secrets are known to the person alone."""
    return _webhooks(context).rows(context.caller)


@tool(
    "webhook_set",
    title="Set a webhook",
    timeout_s=10,
    effect=_effect,
    needs=("webhooks",),
    fails=("denied", "not_found", "quota"),
)
def set_webhook(wanted: SetWebhook, context: SkillContext) -> dict[str, Json]:
    """Makes a webhook, or changes the one whose id you give. What is posted to its endpoint, signed with its secret, is
    said in its thread to its agent as data, in mode ask. The person gets the secret on their desk; you never see it."""
    webhooks = _webhooks(context)
    if wanted.id is not None and not wanted.to_json().keys() - {"id"}:
        raise SkillError("invalid_input", "there is nothing to change: give name, detail, agentId or status")
    agent_id = top_level(wanted.agent_id, context.roster).card.id if wanted.agent_id is not None else None
    hooked = Hooked(wanted.id, wanted.name, wanted.detail, agent_id, wanted.status)
    return webhooks.save(Hand(context.caller, context.agent, context.policy), hooked)


@tool(
    "webhook_delete",
    title="Delete a webhook",
    timeout_s=5,
    effect="idempotent",
    needs=("webhooks",),
    fails=("denied", "not_found"),
)
def delete(wanted: Delete, context: SkillContext) -> Deleted:
    """Deletes a webhook and what it has waiting. Its thread and runs stay."""
    _webhooks(context).delete(context.caller, wanted.id)
    return Deleted(id=wanted.id)


def _webhooks(context: SkillContext) -> Webhooks:
    if context.webhooks is None:
        raise SkillError("not_wired", NOT_WIRED)
    return context.webhooks


PACK = Pack("webhook", "let others start work through a signed door", (list_webhooks, set_webhook, delete))
