"""The command `officina`: the orchestrator's commands, and those that need an engine, a sandbox or a model."""

from functools import cache
from typing import NoReturn

import typer

from orchestrator import cli
from orchestrator.commands import graph
from orchestrator.commands import knowledge as sources
from workers.commands import doctor, graph_run, knowledge, mcp, plan, skills, up, worker


@cache
def application() -> typer.Typer:
    """All commands in one application."""
    graph.app.add_typer(graph_run.app)
    sources.app.add_typer(knowledge.app)
    app = cli.application()
    for part in (plan.app, up.app, worker.app, doctor.app):
        app.add_typer(part)
    app.add_typer(skills.app, name="skills")
    app.add_typer(mcp.app, name="mcp")
    return app


def main() -> NoReturn:
    """Runs the command line of this process."""
    cli.run(application())
