"""signals, answer, repair: the desk on the command line."""

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.commands.output import looking, say, say_json
from registry.base import Json
from registry.errors import Fault, WrongUse

if TYPE_CHECKING:
    from orchestrator.store.repairs import How

app = typer.Typer()
desk = typer.Typer(help="What waits for you: a line each, or one whole with `show`.", invoke_without_command=True)
app.add_typer(desk, name="signals")

SignalId = Annotated[
    str, typer.Argument(metavar="ID", help="A signal's id, or a beginning or an end of it that no other has.")
]


@desk.callback()
def list_signals(
    context: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Answered and expired ones as well.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many, the longest waiting first.")] = 50,
    full: Annotated[bool, typer.Option("--full", help="Each one whole, with exactly what would run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list, each with exactly what would run.")] = False,
) -> None:
    """What waits for you, a line each; `--full` prints all whole, `signals show ID` one."""
    if context.invoked_subcommand is not None:
        return
    from orchestrator.commands.studios import studio

    found, about = studio().signals(None if every else "open", limit)
    if as_json:
        say_json(found)
        return
    from orchestrator.terminal.desk import print_signals

    print_signals(found, about, full=full)


@desk.command()
def show(
    signal: SignalId,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """One signal whole: who asks, why, and exactly what would run."""
    from orchestrator.commands.studios import studio

    found, about = studio().signal(signal)
    if as_json:
        say_json(found)
        return
    from orchestrator.terminal.desk import print_signal

    print_signal(found, about)


@desk.command()
def dismiss(signal: SignalId) -> None:
    """Take a notice, an alert or a result off the desk."""
    from orchestrator.commands.studios import studio

    say(f"{studio().dismiss(signal)} dismissed")


@app.command()
def repair(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run of the call; `officina show` names it.")],
    result: Annotated[str | None, typer.Option(help="It happened: its result as JSON.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run it again, now with your yes.")] = False,
    skip: Annotated[bool, typer.Option("--skip", help="Leave it as it is.")] = False,
    call: Annotated[str | None, typer.Option(metavar="ID", help="Which call, when the run has several.")] = None,
    why: Annotated[str | None, typer.Option(help="For the record.")] = None,
) -> None:
    """Say what became of a call that may have happened: a worker died in the middle of it."""
    if (result is not None) + retry + skip != 1:
        raise WrongUse("give one of --result JSON, --retry and --skip", code="repair_shape")
    from orchestrator import control, lookup
    from orchestrator.settings import get_settings

    settings = get_settings()
    with looking(settings) as connection:
        run_id = lookup.run_id(connection, run, settings.owner)
    given = None if result is None else _parsed(result, "--result")
    how: How = "result" if result is not None else "retry" if retry else "skip"
    done = control.repair(settings, run_id, how, by=settings.owner, call_id=call, result=given, reason=why)
    words = {"result": "is done, with that result", "retry": "runs again", "skip": "is left as it is"}
    say(f"{done.call.name} ({done.call.call_id}) {words[how]}")


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
    from orchestrator.commands.studios import studio

    say(f"{studio().answer(signal, given)} answered")


def _wake(given: str) -> None:
    """An id without an answer means a run that sleeps; a signal needs an answer."""
    from orchestrator.commands.studios import studio
    from registry.errors import Refused

    try:
        say(f"{studio().wake(given)} woken")
    except Refused as refused:
        if refused.code == "unknown_run":
            words = f'{refused.message}; to answer a signal give an option such as "Do it" or --payload JSON'
            raise WrongUse(words, code="answer_shape") from None
        raise


def _parsed(text: str, option: str = "--payload") -> Json:
    from registry.jsontext import JsonFault, parse

    try:
        return parse(text)
    except JsonFault as fault:
        raise WrongUse(f"{option} is no JSON", faults=[Fault(option, "invalid_json", str(fault))]) from None
