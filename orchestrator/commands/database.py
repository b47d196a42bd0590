"""db upgrade, db check."""

import time
from typing import Annotated

import typer

from orchestrator.commands.output import say

app = typer.Typer(help="The database.", no_args_is_help=True)


@app.callback()
def _database() -> None:
    """The database."""


@app.command()
def upgrade() -> None:
    """Bring the schema to this release; safe to run from several places at once."""
    from orchestrator.settings import get_settings
    from orchestrator.store.database import get_database
    from orchestrator.store.database import upgrade as migrate

    settings = get_settings()
    migrate(settings)
    say(f"{get_database(settings).url.render_as_string(hide_password=True)} is at this release")


#: Seconds between looks of `db check --wait`.
LOOK_S = 1.0


@app.command()
def check(
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for a database that answers, upgraded.")
    ] = 0,
) -> None:
    """Say whether the database has the tables and columns this release needs: for whatever has to wait until it has."""
    from orchestrator.settings import get_settings
    from orchestrator.store import schema
    from orchestrator.store.database import get_database
    from registry.errors import OfficinaError

    database, until = get_database(get_settings()), time.monotonic() + wait
    while True:
        try:
            schema.require(database)
        except OfficinaError:
            if time.monotonic() >= until:
                raise
            time.sleep(LOOK_S)
        else:
            say(f"{schema.shown(database)} is at this release")
            return
