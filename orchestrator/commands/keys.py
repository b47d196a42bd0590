"""keys: who may use the HTTP API."""

import re
import time
from datetime import datetime
from typing import Annotated, Final

import typer

from orchestrator.commands.output import looking, note, say, say_json
from registry.errors import Fault, WrongUse

app = typer.Typer(help="Keys of the HTTP API.", no_args_is_help=True)

_MINUTE_MS: Final = 60_000
_UNITS: Final = {"m": _MINUTE_MS, "h": 60 * _MINUTE_MS, "d": 24 * 60 * _MINUTE_MS, "w": 7 * 24 * 60 * _MINUTE_MS}


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="What you know it by.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="What it may do; may be given several times. Else: read, write, answer, invoke."),
    ] = None,
    owner: Annotated[str | None, typer.Option(help="Whose it is; else OFFICINA_OWNER's.")] = None,
    expires: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Until when it is of use: 90d, 12h, 30m, 2w, or a date or time in ISO 8601."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole key as a JSON object.")] = False,
) -> None:
    """Make a key and print its text, which is shown this once."""
    from orchestrator import keys
    from orchestrator.settings import get_settings
    from orchestrator.store.database import prepare

    expires_at = _moment(expires) if expires is not None else None
    settings = get_settings()
    prepare(settings)
    made, text = keys.add(settings, name, scope, owner=owner, expires_at=expires_at)
    if as_json:
        say_json(made | {"key": text})
        return
    say(text)
    until = f", until {datetime.fromtimestamp(expires_at / 1000).astimezone():%Y-%m-%d %H:%M %Z}" if expires_at else ""
    note(f"it may {'; '.join(keys.SCOPES[one] for one in made['scopes'])}{until}. It is not shown again")


@app.command("list")
def list_keys(
    owner: Annotated[str | None, typer.Option(help="Whose; else OFFICINA_OWNER's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list.")] = False,
) -> None:
    """Your keys, without their texts."""
    from orchestrator import keys
    from orchestrator.settings import get_settings

    settings = get_settings()
    with looking(settings):
        pass
    found = keys.listed(settings, owner or settings.owner)
    if as_json:
        say_json(found)
        return
    from orchestrator.terminal.pages import print_keys

    print_keys(found)


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="ID", help="The key's id; `keys list` shows it.")],
    owner: Annotated[str | None, typer.Option(help="Whose; else OFFICINA_OWNER's.")] = None,
) -> None:
    """Make a key useless, at once."""
    from orchestrator import keys
    from orchestrator.settings import get_settings

    settings = get_settings()
    with looking(settings):
        pass
    keys.revoke(settings, owner or settings.owner, key)
    say(f"{key} revoked")


@app.command()
def code(owner: Annotated[str | None, typer.Option(help="Whose; else OFFICINA_OWNER's.")] = None) -> None:
    """Print a one-time code: whoever shows it within ten minutes gets a person's session, which may approve."""
    from orchestrator import keys
    from orchestrator.settings import get_settings
    from orchestrator.store.database import prepare

    settings = get_settings()
    prepare(settings)
    say(keys.make_code(settings, owner))


def _moment(given: str) -> int:
    """Unix milliseconds of a time from now on (`90d`), or of a date or time in ISO 8601; without an offset it is ours.

    Raises:
        WrongUse: it is neither.
    """
    if span := re.fullmatch(r"([0-9]{1,6})([mhdw])", given):
        return round(time.time() * 1000) + int(span[1]) * _UNITS[span[2]]
    try:
        return round(datetime.fromisoformat(given).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        words = f"{given[:40]!r} is no time: give 90d, 12h, 30m, 2w, 2027-01-31 or 2027-01-31T18:00+01:00"
        raise WrongUse(words, faults=[Fault("--expires", "invalid_expiry", words)]) from None
