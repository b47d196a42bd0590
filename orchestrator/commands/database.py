"""db upgrade."""

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
