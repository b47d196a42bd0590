"""api: the studio over HTTP."""

from typing import Annotated

import typer

from orchestrator.commands.output import note, say

app = typer.Typer()


@app.command()
def api(
    host: Annotated[str | None, typer.Option(help="Address to listen on; 127.0.0.1 when nothing is set.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port to listen on; 0: a free one; 4000 when nothing is set.")
    ] = None,
) -> None:
    """Serve the HTTP API until Ctrl-C; keys for it are made with `officina keys add`."""
    from orchestrator import volume
    from orchestrator.agreement import REMEDY, disagreement
    from orchestrator.api.server import bind, log_to_stderr, serve
    from orchestrator.settings import get_settings
    from orchestrator.store.database import prepare
    from registry.errors import Refused

    settings = get_settings()
    changes = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    settings = settings.model_copy(update={"api": settings.api.model_copy(update=changes)})
    prepare(settings)
    volume.take(settings)
    if (words := disagreement(settings)) is not None:
        note(f"{words}; {REMEDY}")
    where = f"{settings.api.host}:{settings.api.port}"
    try:
        listening = bind(settings.api.host, settings.api.port)
    except OSError as error:
        raise Refused(f"cannot listen on {where}: {error.strerror or error}", code="address") from None
    log_to_stderr()
    name, number = listening.getsockname()[:2]
    note(f"API at http://{f'[{name}]' if ':' in name else name}:{number}, its document at /openapi.json")
    serve(settings, listening)


@app.command()
def login(
    code: Annotated[
        str | None, typer.Argument(help="A one-time code of that studio; asked for where it is left out.")
    ] = None,
) -> None:
    """Begin a person's session at the studio of OFFICINA_API_URL: it may approve, which a key may not."""
    from orchestrator.client import Client, keep_session
    from orchestrator.settings import get_settings
    from registry.errors import Fault, WrongUse

    settings = get_settings()
    if settings.api_url is None:
        words = "set OFFICINA_API_URL to the studio's address first"
        raise WrongUse(words, faults=[Fault("OFFICINA_API_URL", "required", words)])
    given = code or typer.prompt("One-time code (officina keys code makes one, where the studio is)", hide_input=True)
    with Client(settings.api_url) as client:
        session = client.redeem(given.strip())
    keep_session(settings, session["token"])
    say(f"in as {session['owner']} at {settings.api_url}")
