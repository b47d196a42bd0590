"""The command line of the orchestrator: its commands in one application, and how errors leave it.

The command `officina` is `workers.cli`, which adds what needs an engine to this.
"""

import gc
import logging
import sys
from typing import NoReturn

import typer

from orchestrator.commands import (
    agents,
    api,
    chat,
    connections,
    database,
    faults,
    generators,
    graph,
    hooks,
    keys,
    knowledge,
    memories,
    plans,
    plugins,
    presets,
    projects,
    schedules,
    signals,
    upkeep,
)
from orchestrator.logs import Masked

#: Objects made between two looks for garbage. Loading a command makes many and leaves none.
GARBAGE = 100_000


def application() -> typer.Typer:
    """The orchestrator's commands. Rich stays out of help and errors: it costs more than everything else."""
    app = typer.Typer(
        name="officina",
        help="A workshop of AI agents on a task queue.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_officina)
    for part in (projects.app, plans.app, signals.app, chat.app, presets.app, api.app, upkeep.app):
        app.add_typer(part)
    app.add_typer(graph.app, name="graph")
    app.add_typer(agents.app, name="agents")
    app.add_typer(memories.app, name="memories")
    app.add_typer(connections.app, name="connections")
    app.add_typer(generators.app, name="generators")
    app.add_typer(hooks.app, name="hooks")
    app.add_typer(schedules.app, name="schedules")
    app.add_typer(keys.app, name="keys")
    app.add_typer(knowledge.app, name="knowledge")
    app.add_typer(plugins.app, name="plugins")
    app.add_typer(database.app, name="db")
    return app


def run(app: typer.Typer) -> NoReturn:
    """Runs the application on the process's arguments; every error leaves as lines and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot write a character gets its escape, never a crash.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    gc.set_threshold(GARBAGE)
    if logging.lastResort is not None:  # commands set up no logging: what is logged all the same leaves through this
        logging.lastResort.setFormatter(Masked())
    try:
        app()
    except Exception as error:
        sys.exit(faults.report(error))
    finally:
        gc.freeze()  # an ending process need not find out which of its modules are garbage
    sys.exit(0)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("officina"))
        raise typer.Exit


def _officina(
    _: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """A workshop of AI agents on a task queue."""
