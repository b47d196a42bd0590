"""connections: accounts outside that skills may use; their secrets go in and are never shown."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.commands.output import looking, say, say_json
from registry.base import Json
from registry.errors import Fault, WrongUse

app = typer.Typer(help="Accounts outside Officina that skills may use on your behalf.")


@app.callback(invoke_without_command=True)
def list_connections(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list, without secrets.")] = False,
) -> None:
    """List your connections."""
    if context.invoked_subcommand is not None:
        return
    from orchestrator import connections
    from orchestrator.settings import get_settings

    settings = get_settings()
    with looking(settings):
        pass
    found = connections.listed(settings, settings.owner)
    if as_json:
        say_json(found)
        return
    from orchestrator.terminal.pages import print_connections

    print_connections(found)


@app.command("set")
def save(
    name: Annotated[str, typer.Argument(help='What skills call it; "default" is used where none is named.')],
    given: Annotated[
        str,
        typer.Option(
            "--input",
            metavar="JSON",
            help="An object with its kind and fields; - reads it from standard input, @FILE from a file.",
        ),
    ],
) -> None:
    """Store a connection, in place of one of this name; a secret that is left out is asked for."""
    from orchestrator import connections
    from orchestrator.settings import get_settings
    from orchestrator.store import database

    settings = get_settings()
    document = _with_secrets(_parsed(given))
    database.prepare(settings)
    new = connections.save(settings, settings.owner, name, document)
    say(f"{name} {'saved' if new else 'replaced'}")


@app.command()
def remove(name: Annotated[str, typer.Argument(help="Its name.")]) -> None:
    """Forget a connection and its secrets."""
    from orchestrator import connections
    from orchestrator.settings import get_settings

    settings = get_settings()
    with looking(settings):
        pass
    connections.remove(settings, settings.owner, name)
    say(f"{name} removed")


@app.command("new-key")
def new_key() -> None:
    """Print a new key for OFFICINA_SECRET_KEY."""
    from orchestrator.vault import new_key as made

    say(made())


def _parsed(given: str) -> Json:
    from registry.jsontext import JsonFault, parse

    try:
        if given == "-":
            return parse(sys.stdin.buffer.read())
        return parse(Path(given[1:]).read_bytes() if given.startswith("@") else given)
    except JsonFault as fault:
        message = str(fault)
    except OSError as error:
        message = f"the file {given[1:]} cannot be read: {error.strerror}"
    raise WrongUse(message, faults=[Fault("--input", "invalid_json", message)])


def _with_secrets(document: Json) -> Json:
    """Asks for secrets that were left out, where someone sits at a terminal: they need not stand in a file."""
    from registry.connections import KINDS, secret_fields

    kind = KINDS.get(str(document.get("kind"))) if isinstance(document, dict) else None
    if kind is None or not sys.stdin.isatty():
        return document
    for field in secret_fields(kind):
        if field not in document:
            document = {**document, field: typer.prompt(field, hide_input=True)}
    return document
