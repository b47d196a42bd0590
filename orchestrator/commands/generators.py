"""generators: saved plans with blanks; listed, shown, saved, removed, and run (spec: skills 16)."""

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.commands.output import note, say, say_json
from registry.base import Json
from registry.errors import Fault, WrongUse

if TYPE_CHECKING:
    from registry.generators import Generator

app = typer.Typer(help="Plans with blanks: filled in, each is a project.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, as `officina generators list` shows it.")]


@app.command("list")
def list_generators(as_json: Annotated[bool, typer.Option("--json", help="A JSON list.")] = False) -> None:
    """List the generators that ship, and yours."""
    from orchestrator.commands.shelves import shelf

    found = shelf(make=True).generators()
    if as_json:
        say_json(found)
        return
    from registry.masking import mask_text

    for one in found:
        keys = ", ".join(i["key"] + ("*" if i.get("required") else "") for i in one["inputs"])
        whose = "ships" if one["builtIn"] else "yours"
        say(mask_text(f"{one['id']:<36}  {whose}  {len(one['steps'])} steps  {one['name']}  ({keys})"))


@app.command()
def show(generator: Id, as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """One generator: its inputs, and its steps in order."""
    from orchestrator.commands.shelves import shelf

    one = shelf(make=True).generator(generator)
    if as_json:
        say_json(one)
        return
    from registry.masking import mask_text

    say(mask_text(" ".join(f"{one['name']}: {one['description']}".split())))
    for each in one["inputs"]:
        say(mask_text(f"  {_about(each)}"))
    for step in one["steps"]:
        after = f", after {', '.join(step['dependsOn'])}" if step.get("dependsOn") else ""
        skills = f" [{', '.join(step['skills'])}]" if step.get("skills") else ""
        say(mask_text(f"  {step['key']}: {step['title']} ({step['role']}{after}){skills}"))


@app.command()
def save(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A generator as YAML or JSON.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole generator.")] = False,
) -> None:
    """Check a generator and keep it; prints its id."""
    from orchestrator.commands.shelves import shelf

    kept = shelf(make=True).save_generator(_read(file))
    if as_json:
        say_json(kept)
    else:
        say(str(kept["id"]))
    for warning in kept.get("warnings") or ():
        note(str(warning))


@app.command()
def remove(generator: Id) -> None:
    """Delete one of yours; projects made of it keep their plan."""
    from orchestrator.commands.shelves import shelf

    shelf().remove_generator(generator)
    say(f"{generator} removed")


@app.command()
def run(
    generator: Id,
    given: Annotated[
        list[str] | None, typer.Option("--input", "-i", metavar="KEY=VALUE", help="Fills a blank; KEY=@FILE reads it.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Client key: the same key gives the same project.")] = None,
    rehearse: Annotated[
        bool, typer.Option("--rehearse", help="The stand-in plays the model, and no world call is made.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Go on with the live view.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print {id, status, tasks: {key: id}}.")] = False,
) -> None:
    """Start a project whose plan is the generator's steps, filled in; prints its id."""
    from orchestrator.commands.shelves import shelf

    there = shelf(make=True)
    inputs = _inputs(there.generator(generator), given or [])
    made = there.run_generator(generator, inputs, key=key, rehearse=rehearse)
    if as_json:
        say_json({name: made[name] for name in ("id", "status", "tasks")})
    else:
        say(made["id"])
    if not made["created"]:
        note("a project with this key was there already; this is it")
    if watch:
        from orchestrator.commands.studios import studio
        from orchestrator.watch import look

        raise typer.Exit(look(studio().source(made["id"])))


def _inputs(generator: dict[str, Json], given: list[str]) -> dict[str, Json]:
    """What was typed, as values of each input's type; a number that is none stays a text, and is refused as one."""
    types = {one["key"]: one["type"] for one in generator["inputs"]}
    values: dict[str, Json] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise _unusable(f"{text[:60]!r} is no KEY=VALUE")
        if key in values:
            raise _unusable(f"{key} is given twice")
        values[key] = _typed(types.get(key, "text"), _text(value))
    return values


def _typed(kind: str, text: str) -> Json:
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    if kind == "number":
        from contextlib import suppress

        for number in (int, float):
            with suppress(ValueError):
                return number(text)
    return text


def _text(value: str) -> str:
    if not value.startswith("@"):
        return value
    from pathlib import Path

    from registry.projects.documents import read_text

    return read_text(Path(value[1:]))


def _read(file: str) -> "Generator":
    from pathlib import Path

    from registry.generators import Generator
    from registry.projects.documents import parse, read_text
    from registry.projects.faults import check

    path = Path(file)
    made, faults = check(Generator, parse(read_text(path), name=path.name))
    if made is None:
        raise WrongUse(str(faults[0]), code="generator_invalid", faults=faults)
    return made


def _about(one: dict[str, Json]) -> str:
    more = [str(one["type"])]
    more += ["required"] if one.get("required") else []
    more += [f"one of {', '.join(one['options'])}"] if one.get("options") else []
    more += [f"{one['default']} unless you say" if one.get("default") is not None else ""]
    return f"--input {one['key']}=...  {one['label']} ({', '.join(m for m in more if m)})"


def _unusable(message: str) -> WrongUse:
    return WrongUse(message, code="invalid_input", faults=[Fault("--input", "invalid_input", message)])
