"""The command `officina`: the orchestrator's commands, and those that need an engine, a sandbox or a model."""

from typing import NoReturn

from orchestrator.cli import application, run
from orchestrator.commands import graph
from orchestrator.commands import knowledge as sources
from workers.commands import doctor, graph_run, knowledge, mcp, plan, skills, up, worker


def main() -> NoReturn:
    """Runs the command line of this process."""
    graph.app.add_typer(graph_run.app)
    sources.app.add_typer(knowledge.app)
    app = application()
    for part in (plan.app, up.app, worker.app, doctor.app):
        app.add_typer(part)
    app.add_typer(skills.app, name="skills")
    app.add_typer(mcp.app, name="mcp")
    run(app)
