"""memories: what agents keep beyond their runs, seen and forgotten by the person it belongs to (spec: skills 18)."""

from typing import Annotated

import typer

from orchestrator.commands.output import note, say, say_json
from registry.base import Json
from registry.errors import WrongUse

app = typer.Typer(help="What your agents remember: see it, forget it.", no_args_is_help=True)

Kind = Annotated[str | None, typer.Option(help="Only of this kind: fact, preference, event, insight, note.")]
Project = Annotated[str | None, typer.Option(metavar="ID", help="Only of this project; its whole id.")]
Being = Annotated[str | None, typer.Option(metavar="ID", help="Only of this being, as in `ansel-brook`.")]


@app.command("list")
def list_memories(
    kind: Kind = None,
    project: Project = None,
    being: Being = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list.")] = False,
) -> None:
    """List what is remembered, the eldest first."""
    from orchestrator.commands.shelves import shelf
    from orchestrator.remembered import Only

    rows = shelf().memories(Only(kind, project, being), limit + 1)
    more = len(rows) > limit
    rows = rows[:limit]
    if as_json:
        say_json(rows)
    else:
        for row in rows:
            say(_line(row))
        if not rows:
            say("nothing is remembered")
    if more:
        note(f"there are more than these {limit}: --limit shows more of them")


@app.command()
def forget(
    memory: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="One memory: its id, as the list shows it.")
    ] = None,
    kind: Kind = None,
    project: Project = None,
    being: Being = None,
    everything: Annotated[bool, typer.Option("--all", help="Needed where nothing else is named.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print {forgotten}.")] = False,
) -> None:
    """Forget one memory, those that fit every filter, or all of them; for good."""
    from orchestrator.commands.shelves import shelf
    from orchestrator.remembered import Only

    only = Only(kind, project, being)
    if (memory is not None) + bool(only.columns) + everything > 1:
        raise WrongUse("name one of these: an ID, filters, --all")
    there = shelf()
    if memory is not None:
        there.forget_one(memory)
        forgotten = 1
    else:
        forgotten = there.forget(only, everything=everything)
    if as_json:
        say_json({"forgotten": forgotten})
    else:
        say(f"{forgotten} forgotten")


def _line(row: dict[str, Json]) -> str:
    from orchestrator.terminal.wording import one_line
    from registry.masking import mask_text

    being, project = row["beingId"], row["projectId"]
    whose = f"being {being}" if being else f"project {project}" if project else "others"
    doubt = "  (where text from outside had been read)" if row["untrusted"] else ""
    return mask_text(f"{row['id']}  {row['kind']:<10}  {one_line(whose, 60)}  {one_line(row['content'], 200)}{doubt}")
