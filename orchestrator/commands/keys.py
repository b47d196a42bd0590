"""keys: who may use the HTTP API."""

from typing import Annotated

import typer

from orchestrator.commands.output import looking, note, say, say_json

app = typer.Typer(help="Keys of the HTTP API.", no_args_is_help=True)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="What you know it by.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="What it may do; may be given several times. Else: read, write, answer, invoke."),
    ] = None,
    owner: Annotated[str | None, typer.Option(help="Whose it is; else OFFICINA_OWNER's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole key as a JSON object.")] = False,
) -> None:
    """Make a key and print its text, which is shown this once."""
    from orchestrator import keys
    from orchestrator.settings import get_settings
    from orchestrator.store.database import prepare

    settings = get_settings()
    prepare(settings)
    made, text = keys.add(settings, name, scope, owner=owner)
    if as_json:
        say_json(made | {"key": text})
        return
    say(text)
    note(f"it may {'; '.join(keys.SCOPES[one] for one in made['scopes'])}. It is not shown again")


@app.command("list")
def list_keys(
    owner: Annotated[str | None, typer.Option(help="Whose; else OFFICINA_OWNER's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list.")] = False,
) -> None:
    """Your keys, without their texts."""
    from orchestrator import keys
    from orchestrator.settings import get_settings

    settings = get_settings()
    with looking(settings):
        pass
    found = keys.listed(settings, owner or settings.owner)
    if as_json:
        say_json(found)
        return
    from orchestrator.terminal.pages import print_keys

    print_keys(found)


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="ID", help="The key's id; `keys list` shows it.")],
    owner: Annotated[str | None, typer.Option(help="Whose; else OFFICINA_OWNER's.")] = None,
) -> None:
    """Make a key useless, at once."""
    from orchestrator import keys
    from orchestrator.settings import get_settings

    settings = get_settings()
    with looking(settings):
        pass
    keys.revoke(settings, owner or settings.owner, key)
    say(f"{key} revoked")


@app.command()
def code(owner: Annotated[str | None, typer.Option(help="Whose; else OFFICINA_OWNER's.")] = None) -> None:
    """Print a one-time code: whoever shows it within ten minutes gets a person's session, which may approve."""
    from orchestrator import keys
    from orchestrator.settings import get_settings
    from orchestrator.store.database import prepare

    settings = get_settings()
    prepare(settings)
    say(keys.make_code(settings, owner))
