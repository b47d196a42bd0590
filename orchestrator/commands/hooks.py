"""hooks: doors through which others start work here, each with a secret of its own."""

from typing import Annotated

import typer

from orchestrator.commands.output import say, say_json
from registry.errors import WrongUse

app = typer.Typer(help="Webhooks: others start work here by a signed POST.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(help="Its id, as `officina hooks list` shows it.")]


@app.command("list")
def list_hooks(as_json: Annotated[bool, typer.Option("--json", help="A JSON list, without secrets.")] = False) -> None:
    """List your webhooks."""
    from orchestrator.commands.shelves import shelf

    rows = shelf().hooks()
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
    from orchestrator.commands.shelves import shelf

    wanted = {"name": name, "agentId": agent, "detail": detail, "mode": mode}
    say_json(shelf(make=True).add_hook(wanted | {"projects": projects, "generatorId": generator}))


@app.command()
def secret(hook: Id) -> None:
    """Show the secret of a webhook that an agent made, once."""
    from orchestrator.commands.shelves import shelf

    say(shelf().hook_secret(hook))


@app.command()
def rotate(hook: Id) -> None:
    """Make a new secret and print it; the old one is of no use from now on."""
    from orchestrator.commands.shelves import shelf

    say(shelf().rotate_hook(hook))


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
    from orchestrator.commands.shelves import shelf

    shelf().remove_hook(hook)
    say(f"{hook} removed")


def _set(hook: str, status: str) -> None:
    from orchestrator.commands.shelves import shelf

    shelf().set_hook(hook, status)
    say(f"{hook} {status}")
