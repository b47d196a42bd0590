"""`officina up`: the embedded stack, alone or with a project to run in it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.commands.output import note, say

if TYPE_CHECKING:
    from orchestrator.local import EmbeddedStack
    from orchestrator.settings import Settings

app = typer.Typer()


@app.command()
def up(
    run: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Submit this project and show it to its end.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help='Answer "Do it" to every approval of that project.')] = False,
    rehearse: Annotated[bool, typer.Option("--rehearse", help="Let the stand-in play the model for it.")] = False,
    workers: Annotated[int, typer.Option(min=0, help="Worker processes to keep.")] = 1,
    flower: Annotated[bool, typer.Option("--flower/--no-flower", help="Show the monitor.")] = True,
    api: Annotated[bool, typer.Option("--api/--no-api", help="Serve the HTTP API.")] = True,
) -> None:
    """Start Redis, workers, Flower and the API on this machine, and keep them until Ctrl-C.

    With --run the exit code is the project's: 0 when it completed. The stack stays up after it on a terminal, and
    ends with it where there is none or with --yes.
    """
    from orchestrator.local import EmbeddedStack
    from orchestrator.settings import get_settings
    from orchestrator.stack.stopping import Stopped, StopSignals
    from workers.commands.worker import worker_command

    settings = get_settings()
    if run is None and (yes or rehearse):
        raise typer.BadParameter("--yes and --rehearse speak of the project that --run names")
    if run is not None:
        from orchestrator.producer import check

        check(str(run), settings=settings, rehearse=rehearse)
        _require_sandbox(run)
    stack = EmbeddedStack(
        settings,
        workers=workers,
        worker_command=lambda name: worker_command(settings, name=name),
        flower=flower,
        say=note,
        api=api,
    )
    status = 0 if run is None else None
    with StopSignals(stack.hurry) as signals:
        try:
            with stack:
                _greet(stack, settings, workers)
                if run is not None:
                    status = _run_project(run, settings, yes=yes, rehearse=rehearse)
                    if stack.flower_url:
                        say(f"Flower: {stack.flower_url}")
                if run is None or _stays(yes):
                    signals.wait()
                signals.ending()
        except Stopped:
            note("stopped" if status is not None else "stopped; the project goes on when a stack is up here again")
    raise typer.Exit(1 if status is None else status)


def _greet(stack: "EmbeddedStack", settings: "Settings", workers: int) -> None:
    count = f"{workers} worker{'' if workers == 1 else 's'} of {settings.worker_slots} slots"
    monitor = f", Flower at {stack.flower_url}" if stack.flower_url else ""
    served = f", API at {stack.api_url}" if stack.api_url else ""
    note(f"Officina is up in {settings.home}: {count}{monitor}{served}. Ctrl-C ends it.")
    if stack.api_url:
        from orchestrator.keys import make_code

        # Behind the # a code is in no log and in no request but the one that spends it.
        link = f"{stack.api_url}/login#{make_code(settings)}"
        note(f"Desk: {link} (signs you in once, for ten minutes; `officina keys code` prints another code)")


def _run_project(file: Path, settings: "Settings", *, yes: bool, rehearse: bool) -> int:
    from orchestrator.producer import submit
    from orchestrator.watch import watch

    made = submit(str(file), settings=settings, rehearse=rehearse)
    return watch(made.project_id, settings, ask=not yes and sys.stdin.isatty(), yes=yes)


def _stays(yes: bool) -> bool:
    """Whether the stack outlives the project: someone is there to look at it."""
    if yes or not sys.stdout.isatty():
        return False
    note("The stack stays up for you to look around. Ctrl-C ends it.")
    return True


def _require_sandbox(file: Path) -> None:
    """Stops before anything is submitted where the project wants to run code and nothing here may: it would only fail.

    Raises:
        Refused: `sandbox_unavailable`, with the remedy.
    """
    from registry.errors import Refused
    from workers.sandbox.process import NoSandbox, find_sandbox

    if not file.is_file() or b"code.execute" not in file.read_bytes():
        return
    sandbox = find_sandbox()
    if isinstance(sandbox, NoSandbox):
        raise Refused(sandbox.message, code="sandbox_unavailable")
