"""knowledge: what agents may look things up in; listed and removed. Adding and searching need a worker's reader."""

from typing import Annotated

import typer

from orchestrator.commands.output import say, say_json

app = typer.Typer(help="Documents that agents with the pack knowledge-memory can look things up in.")


@app.callback(invoke_without_command=True)
def list_sources(
    context: typer.Context,
    agent: Annotated[str | None, typer.Option("--agent", metavar="ID", help="Only those of this agent.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list.")] = False,
) -> None:
    """List the documents."""
    if context.invoked_subcommand is not None:
        return
    _list(agent, as_json=as_json)


@app.command("list")
def list_again(
    agent: Annotated[str | None, typer.Option("--agent", metavar="ID", help="Only those of this agent.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list.")] = False,
) -> None:
    """List the documents."""
    _list(agent, as_json=as_json)


@app.command()
def remove(source_id: Annotated[str, typer.Argument(metavar="ID", help="Its id, as the list shows it.")]) -> None:
    """Forget a document."""
    from orchestrator.commands.shelves import shelf

    shelf().remove_source(source_id)
    say(f"{source_id} removed")


def _list(agent: str | None, *, as_json: bool) -> None:
    from orchestrator.commands.shelves import shelf
    from registry.masking import mask_text

    found = shelf().sources(agent)
    if as_json:
        say_json(found)
        return
    for one in found:
        whose = one["agentId"] or "all agents"
        say(mask_text(" ".join(f"{one['id']}  {whose}  {one['bytes']} bytes  {one['uri']}".split("\n"))))
