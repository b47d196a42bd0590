"""hooks: doors through which others start work here, each with a secret of its own."""

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.commands.output import looking, say, say_json
from registry.base import Json
from registry.errors import Refused, SkillError, WrongUse

if TYPE_CHECKING:
    from orchestrator.ports.webhooks import StoredWebhooks
    from registry.skills.context import Caller

app = typer.Typer(help="Webhooks: others start work here by a signed POST.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(help="Its id, as `officina hooks list` shows it.")]


@app.command("list")
def list_hooks(as_json: Annotated[bool, typer.Option("--json", help="A JSON list, without secrets.")] = False) -> None:
    """List your webhooks."""
    rows = _port().rows(_person())
    if as_json:
        say_json(rows)
        return
    for row in rows:
        say(f"{row['id']}  {row['status']:<7} {row['name']}  {row['agentId'] or 'projects'}  {row['endpoint']}")


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="What you call it.")],
    agent: Annotated[str, typer.Option(metavar="ID", help="Who hears what arrives: a saved agent or a preset.")],
    detail: Annotated[str, typer.Option(metavar="TEXT", help="What is said where a delivery brings no text.")] = "",
    mode: Annotated[str, typer.Option(help="Of its runs: ask, auto, dont_ask or bypass.")] = "ask",
    projects: Annotated[
        bool, typer.Option("--projects", help="Each delivery starts a project, planned from TEXT and what arrived.")
    ] = False,
    generator: Annotated[
        str | None, typer.Option(metavar="ID", help="Each delivery runs this generator, filled from its `inputs`.")
    ] = None,
) -> None:
    """Make a webhook; its secret is printed now and never again."""
    if projects and generator is not None:
        raise WrongUse("--projects and --generator say two things: a delivery is planned, or has its plan already")
    if mode not in ("ask", "auto", "dont_ask", "bypass"):
        raise WrongUse(f"{mode!r} is no mode of a webhook: use ask, auto, dont_ask or bypass")
    from orchestrator.settings import get_settings
    from orchestrator.store import database
    from registry.skills.triggers import Hand, Hooked

    settings = get_settings()
    database.prepare(settings)
    port = _port()
    if generator is not None:
        from orchestrator import saved

        generator = str(saved.generator(settings, generator)["id"])
    try:
        made = port.save(Hand(_person()), Hooked(name=name, detail=detail, agent_id=agent))
    except SkillError as error:
        raise Refused(error.message, code=error.code) from None
    action: dict[str, Json] | None = {"kind": "brief"} if projects else None
    if generator is not None:
        action = {"kind": "generator", "generatorId": generator}
    port.set_mode(settings.owner, str(made["id"]), mode, action)
    say_json(made | {"mode": mode, "secret": port.reveal(settings.owner, str(made["id"]))})


@app.command()
def secret(hook: Id) -> None:
    """Show the secret of a webhook that an agent made, once."""
    from orchestrator.settings import get_settings

    shown = _port().reveal(get_settings().owner, hook)
    if shown is None:
        raise Refused("it was shown already, or there is no such webhook; `officina hooks rotate` makes a new one")
    say(shown)


@app.command()
def rotate(hook: Id) -> None:
    """Make a new secret and print it; the old one is of no use from now on."""
    from orchestrator.settings import get_settings

    made = _port().rotate(get_settings().owner, hook)
    if made is None:
        raise Refused(f"you have no webhook {hook[:60]!r}", code="unknown_hook")
    say(made)


@app.command()
def pause(hook: Id) -> None:
    """Take nothing for now: deliveries are answered and left out."""
    _set(hook, "paused")


@app.command()
def resume(hook: Id) -> None:
    """Take deliveries again."""
    _set(hook, "active")


@app.command()
def remove(hook: Id) -> None:
    """Delete a webhook and what it has waiting; what it started stays."""
    try:
        _port().delete(_person(), hook)
    except SkillError:
        raise Refused(f"you have no webhook {hook[:60]!r}", code="unknown_hook") from None
    say(f"{hook} removed")


def _set(hook: str, status: str) -> None:
    from registry.skills.triggers import Hand, Hooked

    try:
        _port().save(Hand(_person()), Hooked(id=hook, status=status))  # type: ignore[arg-type]
    except SkillError:
        raise Refused(f"you have no webhook {hook[:60]!r}", code="unknown_hook") from None
    say(f"{hook} {status}")


def _person() -> "Caller":
    from orchestrator.settings import get_settings
    from registry.skills.context import Caller

    return Caller("person", get_settings().owner)


def _port() -> "StoredWebhooks":
    from orchestrator.ports.wiring import wire
    from orchestrator.settings import get_settings
    from registry.skills import catalogue

    settings = get_settings()
    with looking(settings):
        pass
    return wire(settings, catalogue.build()).webhooks
