"""What a person does with webhooks: makes one, shows or changes its secret, pauses and resumes it, deletes it."""

from typing import Literal

from orchestrator import saved
from orchestrator.ports.webhooks import StoredWebhooks
from orchestrator.ports.wiring import wire
from orchestrator.settings import Settings
from registry.base import Json
from registry.errors import Refused, SkillError
from registry.skills import catalogue
from registry.skills.context import Caller
from registry.skills.triggers import Hand, Hooked

Mode = Literal["ask", "auto", "dont_ask", "bypass"]


def listed(settings: Settings) -> list[dict[str, Json]]:
    """The owner's webhooks, without secrets."""
    return _port(settings).rows(_person(settings))


def add(
    settings: Settings,
    name: str,
    agent_id: str,
    *,
    detail: str = "",
    mode: Mode = "ask",
    projects: bool = False,
    generator_id: str | None = None,
) -> dict[str, Json]:
    """Makes a webhook; its secret is in the answer and is not shown again.

    Args:
        agent_id: who hears what arrives.
        detail: what is said where a delivery brings no text.
        mode: of the runs it begins.
        projects: each delivery starts a project, planned from `detail` and what arrived.
        generator_id: each delivery runs this generator, filled from its `inputs`.

    Raises:
        Refused: `invalid_input`, `unknown_generator`, `quota`.
    """
    action: dict[str, Json] | None = {"kind": "brief"} if projects else None
    if generator_id is not None:
        action = {"kind": "generator", "generatorId": saved.generator(settings, generator_id)["id"]}
    port = _port(settings)
    try:
        made = port.save(Hand(_person(settings)), Hooked(name=name, detail=detail, agent_id=agent_id))
    except SkillError as error:
        raise Refused(error.message, code=error.code) from None
    port.set_mode(settings.owner, str(made["id"]), mode, action)
    return made | {"mode": mode, "secret": port.reveal(settings.owner, str(made["id"]))}


def secret(settings: Settings, hook_id: str) -> str:
    """The secret of a webhook that an agent made, once.

    Raises:
        Refused: `secret_shown`.
    """
    shown = _port(settings).reveal(settings.owner, hook_id)
    if shown is None:
        words = "it was shown already, or there is no such webhook; `officina hooks rotate` makes a new one"
        raise Refused(words, code="secret_shown")
    return shown


def rotate(settings: Settings, hook_id: str) -> str:
    """A new secret; the old one is of no use from now on.

    Raises:
        Refused: `unknown_hook`.
    """
    made = _port(settings).rotate(settings.owner, hook_id)
    if made is None:
        raise _unknown(hook_id)
    return made


def change(
    settings: Settings,
    hook_id: str,
    *,
    name: str | None = None,
    detail: str | None = None,
    status: Literal["active", "paused"] | None = None,
) -> dict[str, Json]:
    """Renames, pauses or resumes one, or has it say something else.

    Raises:
        Refused: `unknown_hook`, `invalid_input`.
    """
    hooked = Hooked(id=hook_id, name=name, detail=detail, status=status)
    try:
        return _port(settings).save(Hand(_person(settings)), hooked)
    except SkillError as error:
        raise _unknown(hook_id) if error.code == "not_found" else Refused(error.message, code=error.code) from None


def remove(settings: Settings, hook_id: str) -> None:
    """Deletes a webhook and what it has waiting; what it started stays.

    Raises:
        Refused: `unknown_hook`.
    """
    try:
        _port(settings).delete(_person(settings), hook_id)
    except SkillError:
        raise _unknown(hook_id) from None


def one(settings: Settings, hook_id: str) -> dict[str, Json]:
    """
    Raises:
        Refused: `unknown_hook`.
    """
    found = next((row for row in listed(settings) if row["id"] == hook_id), None)
    if found is None:
        raise _unknown(hook_id)
    return found


def _unknown(hook_id: str) -> Refused:
    return Refused(f"you have no webhook {hook_id[:60]!r}", code="unknown_hook")


def _person(settings: Settings) -> Caller:
    return Caller("person", settings.owner)


def _port(settings: Settings) -> StoredWebhooks:
    return wire(settings, catalogue.build()).webhooks
