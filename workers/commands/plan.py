"""plan: what a project would do, before it is submitted."""

from typing import Annotated

import typer

from orchestrator.commands.output import say_json
from orchestrator.commands.projects import ModeName

app = typer.Typer()


@app.command()
def plan(
    source: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A project file, a .md or .txt file with a brief, or a brief."),
    ],
    mode: Annotated[ModeName | None, typer.Option(help="Run mode of every agent in it.")] = None,
    rehearse: Annotated[bool, typer.Option("--rehearse", help="As if submitted with --rehearse.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The whole forecast as one JSON object.")] = False,
) -> None:
    """What a project would do: tasks, team, approvals, limits and costs. Checks it as submit does; writes nothing."""
    from orchestrator.settings import get_settings
    from workers.forecast.view import Forecast

    found = Forecast(source, get_settings(), mode=mode.value if mode else None, rehearse=rehearse).view()
    if as_json:
        say_json(found)
        return
    from orchestrator.terminal.forecasts import print_forecast

    print_forecast(found)
