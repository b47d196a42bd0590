"""skills, skills show, skills documents, skills invoke (spec: skills 3.1, engine 17)."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.commands.output import say_json
from registry.base import Json
from registry.errors import Fault, Refused, WrongUse

if TYPE_CHECKING:
    from orchestrator.outside import Place
    from orchestrator.settings import Settings
    from registry.playbooks import Playbook

app = typer.Typer(help="What agents can use.")


class CallerName(StrEnum):
    """Who a call of the command line is made as."""

    PERSON = "person"
    AGENT = "agent"


@app.callback(invoke_without_command=True)
def list_skills(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list of full definitions.")] = False,
) -> None:
    """List the skills of this release."""
    if context.invoked_subcommand is not None:
        return
    definitions = _definitions()
    if as_json:
        say_json(definitions)
        return
    from orchestrator.terminal.pages import print_skills

    print_skills(definitions)


@app.command()
def documents(
    as_json: Annotated[bool, typer.Option("--json", help="{documents, faults} as one JSON object.")] = False,
) -> None:
    """List the documents agents can read; files that cannot be used are reported."""
    from orchestrator.commands.output import note
    from orchestrator.known import playbooks
    from orchestrator.settings import get_settings

    found = playbooks(get_settings())
    rows = [_row(book) for book in found.values()]
    if as_json:
        faults = [{"path": f.path, "code": f.code, "message": f.message} for f in found.faults]
        say_json({"documents": rows, "faults": faults})
        return
    from orchestrator.terminal.pages import print_documents

    print_documents(rows)
    for fault in found.faults:
        note(f"left out: {fault}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Its dotted or its wire name, or the name of a document.")],
    as_json: Annotated[bool, typer.Option("--json", help="The definition as JSON.")] = False,
) -> None:
    """One skill: what it does, takes and gives; or one document."""
    from orchestrator.known import playbooks
    from orchestrator.settings import get_settings

    book = playbooks(get_settings()).get(name)
    if book is not None:
        if as_json:
            say_json(_row(book) | {"instructions": book.instructions})
        else:
            from orchestrator.terminal.pages import print_document

            print_document(_row(book), book.instructions)
        return
    definition = next((one for one in _definitions() if name in (one["name"], one["wireName"])), None)
    if definition is None:
        words = f"there is no skill {name[:80]!r}; `officina skills` lists them, and `skills documents`"
        raise Refused(words, code="unknown_skill")
    if as_json:
        say_json(definition)
        return
    from orchestrator.terminal.pages import print_skill

    print_skill(definition)


@app.command()
def invoke(
    name: Annotated[str, typer.Argument(help="Its dotted or its wire name.")],
    given: Annotated[
        str,
        typer.Option(
            "--input", metavar="JSON", help="A JSON object; - reads it from standard input, @FILE from a file."
        ),
    ],
    workspace: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder the call works in; else your scratch workspace.")
    ] = None,
    project: Annotated[
        str | None, typer.Option(metavar="ID", help="The project the call is for: its folder, its trace, its desk.")
    ] = None,
    caller: Annotated[
        CallerName, typer.Option("--as", help="agent: with a team agent's permissions and nobody's yes.")
    ] = CallerName.PERSON,
) -> None:
    """Call a skill once; prints its result as one line of JSON."""
    arguments = _read(given)
    if not isinstance(arguments, dict):
        raise _unusable(f"the input is a {type(arguments).__name__}, and has to be an object")
    from orchestrator.settings import get_settings

    settings = get_settings()
    if settings.api_url is not None:
        made = _invoke_there(settings, name, arguments, workspace, project, caller)
        say_json(made)
        raise typer.Exit(0 if made["ok"] else 1)
    from registry.skills import catalogue
    from workers.calling import Call, call

    wanted = Call(
        name,
        arguments,
        as_agent=caller is CallerName.AGENT,
        workspace=workspace,
        project=_place(settings, project) if project else None,
    )
    result = call(settings, catalogue.build(), wanted)
    say_json(result.to_json())
    raise typer.Exit(0 if result.ok else 1)


def _row(book: "Playbook") -> dict[str, Json]:
    """A document without its text."""
    return {
        "name": book.name,
        "description": book.description,
        "whenToUse": book.when_to_use,
        "files": sorted(book.files),
        "shipped": book.shipped,
        "path": str(book.path),
    }


def _place(settings: "Settings", project: str) -> "Place":
    from orchestrator import outside
    from orchestrator.commands.output import looking

    with looking(settings):
        return outside.place(settings, project, settings.owner)


def _definitions() -> list[dict[str, Json]]:
    """The skills of this release and of the owner's plugins, or those of the studio elsewhere."""
    from orchestrator.settings import get_settings

    settings = get_settings()
    if settings.api_url is not None:
        from orchestrator.commands.shelves import elsewhere

        return elsewhere(settings).skills()
    from orchestrator import plugins
    from orchestrator.wiring import unwired
    from registry.skills import catalogue

    found = list(catalogue.build())
    missing = unwired(settings, found)
    own = [skill.definition(wired=skill.name not in missing) for skill in found]
    return [*own, *plugins.definitions(settings)]


def _invoke_there(
    settings: "Settings",
    name: str,
    arguments: dict[str, Json],
    workspace: Path | None,
    project: str | None,
    caller: CallerName,
) -> dict[str, Json]:
    """The same at a studio elsewhere: with a session as a person, with a key as an agent."""
    from orchestrator.commands.shelves import elsewhere

    if workspace is not None:
        raise _not_there("--workspace", "a folder of this machine is nothing to a studio elsewhere: leave it out")
    if caller is CallerName.AGENT and settings.api_key is None:
        words = "your session at that studio makes every call a person's: show a key (OFFICINA_API_KEY) instead"
        raise _not_there("--as", words)
    return elsewhere(settings).invoke(name, arguments, project=project)


def _read(given: str) -> Json:
    from registry.jsontext import JsonFault, parse

    try:
        return parse(_text(given))
    except JsonFault as fault:
        raise _unusable(str(fault)) from None


def _text(given: str) -> str | bytes:
    if given == "-":
        return sys.stdin.buffer.read()
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_bytes()
    except OSError as error:
        raise _unusable(f"the file {given[1:]} cannot be read: {error.strerror}") from None


def _unusable(message: str) -> WrongUse:
    return WrongUse(message, code="invalid_json", faults=[Fault("--input", "invalid_json", message)])


def _not_there(option: str, message: str) -> WrongUse:
    """An option that means nothing at a studio elsewhere."""
    return WrongUse(message, faults=[Fault(option, "wrong_use", message)])
