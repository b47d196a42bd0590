"""agents: those you saved, and the citizens you may take on; made elsewhere, looked after here."""

from typing import Annotated

import typer

from orchestrator.commands.output import note, say, say_json
from registry.base import Json

app = typer.Typer(help="Your saved agents, and the twelve citizens you may take on.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, as `officina agents list` shows it.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON.")]


@app.command("list")
def list_agents(as_json: AsJson = False) -> None:
    """List your saved agents, the eldest first."""
    from orchestrator.commands.shelves import shelf

    rows = shelf().agents()
    if as_json:
        say_json(rows)
        return
    if not rows:
        say("no saved agents: `officina agents adopt ID` takes a citizen on, `officina agents citizens` lists them")
    for row in rows:
        being = f"  being {row['beingId']}" if row["beingId"] else ""
        say(f"{row['id']}  {_line(row['name'])} ({_line(row.get('role') or 'no role')}){being}")


@app.command()
def citizens(as_json: AsJson = False) -> None:
    """List the twelve citizens: beings that every studio has, and which of them are yours."""
    from orchestrator.commands.shelves import shelf

    rows = shelf(make=True).citizens()
    if as_json:
        say_json(rows)
        return
    for row in rows:
        yours = f"  yours: {row['agentId']}" if row["agentId"] else ""
        say(f"{row['name']:<14}  {row['id']:<14}  {row['role']:<10}  {row['description']}{yours}")


@app.command()
def adopt(
    citizen: Annotated[str, typer.Argument(metavar="ID", help="As in `ansel-brook`; `officina agents citizens`.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole agent.")] = False,
) -> None:
    """Take a citizen on: a copy is saved for you, and projects with its role are given to it; prints its id."""
    from orchestrator.commands.shelves import shelf

    kept, created = shelf(make=True).adopt(citizen)
    _show(kept, as_json)
    if not created:
        note("it was adopted before; this is your copy")


@app.command()
def promote(agent: Id, as_json: Annotated[bool, typer.Option("--json", help="Print the whole agent.")] = False) -> None:
    """Make a being of a saved agent: from now on it remembers across projects; there is no way back."""
    from orchestrator.commands.shelves import shelf

    _show(shelf().promote(agent), as_json)


@app.command()
def remove(agent: Id) -> None:
    """Delete a saved agent; projects at work keep theirs, and a being's memory stays until it is forgotten."""
    from orchestrator.commands.shelves import shelf

    shelf().remove_agent(agent)
    say(f"{agent} removed")


def _show(kept: dict[str, Json], as_json: bool) -> None:
    if as_json:
        say_json(kept)
    else:
        say(str(kept["id"]))


def _line(text: object) -> str:
    from orchestrator.terminal.wording import one_line
    from registry.masking import mask_text

    return mask_text(one_line(text, 120))
