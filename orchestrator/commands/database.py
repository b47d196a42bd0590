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
    """Say whether the database is at this release: for whatever has to wait until it is."""
    from orchestrator.settings import get_settings
    from orchestrator.store.database import get_database, is_new, revisions
    from registry.errors import OfficinaError, Refused

    database, until = get_database(get_settings()), time.monotonic() + wait
    shown = database.url.render_as_string(hide_password=True)
    while True:
        try:
            there, wanted = (None, "that of this release") if is_new(database) else revisions(database)
            fault: Exception | None = None
        except OfficinaError as error:
            there, wanted, fault = None, "", error
        if fault is None and there == wanted:
            say(f"{shown} is at this release")
            return
        if time.monotonic() >= until:
            words = (
                f"{shown} has {f'schema {there}' if there else 'no schema'}, not {wanted}: run `officina db upgrade`"
            )
            raise fault or Refused(words, code="schema")
        time.sleep(LOOK_S)
