"""signals, answer: the desk on the command line."""

from typing import Annotated

import typer

from orchestrator.commands.output import looking, say, say_json
from registry.base import Json
from registry.errors import Fault, WrongUse

app = typer.Typer()


@app.command("signals")
def list_signals(
    every: Annotated[bool, typer.Option("--all", help="Answered and expired ones as well.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many, the longest waiting first.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list, each with exactly what would run.")] = False,
) -> None:
    """What waits for you."""
    from orchestrator import views
    from orchestrator.settings import get_settings

    settings = get_settings()
    with looking(settings) as connection:
        found = views.signal_list(connection, settings.owner, status=None if every else "open", limit=limit)
    if as_json:
        say_json(found)
        return
    from orchestrator.terminal.pages import print_signals

    print_signals(found)


@app.command()
def answer(
    signal: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="A signal's id, or a beginning of it that no other has; or a sleeping run's."
        ),
    ],
    option: Annotated[str | None, typer.Argument(help='One of its options, as in "Do it" or "No".')] = None,
    payload: Annotated[str | None, typer.Option(help="The answer as JSON instead; null rejects.")] = None,
) -> None:
    """Answer a signal, once; or, with a run's id alone, end the run's sleep."""
    if option is not None and payload is not None:
        raise WrongUse('give an option such as "Do it" or --payload JSON, and not both', code="answer_shape")
    if option is None and payload is None:
        _wake(signal)
        return
    given = {"option": option} if payload is None else {"payload": _parsed(payload)}
    from orchestrator import lookup
    from orchestrator.settings import get_settings
    from orchestrator.signals import answer as settle

    settings = get_settings()
    with looking(settings) as connection:
        signal_id = lookup.signal_id(connection, signal, settings.owner)
    settle(settings, signal_id, **given, by=settings.owner)
    say(f"{signal_id} answered")


def _wake(given: str) -> None:
    """An id without an answer means a run that sleeps; a signal needs an answer."""
    from orchestrator import control, lookup
    from orchestrator.settings import get_settings
    from registry.errors import Refused

    settings = get_settings()
    with looking(settings) as connection:
        try:
            run_id = lookup.run_id(connection, given, settings.owner)
        except Refused as refused:
            if refused.code == "unknown_run":
                words = f'{refused.message}; to answer a signal give an option such as "Do it" or --payload JSON'
                raise WrongUse(words, code="answer_shape") from None
            raise
    control.wake(settings, run_id, by=settings.owner)
    say(f"{run_id} woken")


def _parsed(text: str) -> Json:
    from registry.jsontext import JsonFault, parse

    try:
        return parse(text)
    except JsonFault as fault:
        raise WrongUse("--payload is no JSON", faults=[Fault("--payload", "invalid_json", str(fault))]) from None
