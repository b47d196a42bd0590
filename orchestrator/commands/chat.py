"""chat: a conversation with an agent in the terminal."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.commands.output import looking, note, say, say_json
from orchestrator.commands.projects import ModeName
from registry.base import Json
from registry.errors import Fault, WrongUse

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.settings import Settings

app = typer.Typer()


@app.command()
def chat(
    agent: Annotated[
        str | None, typer.Argument(metavar="AGENT", help="A saved agent, a preset, or a definition file.")
    ] = None,
    thread: Annotated[str | None, typer.Option(metavar="ID", help="Go on with this thread.")] = None,
    mode: Annotated[ModeName | None, typer.Option(help="Run mode of the thread from here on.")] = None,
    title: Annotated[str | None, typer.Option(help="What a new thread is called, or this one from here on.")] = None,
    script: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What the stand-in plays where no model is configured.")
    ] = None,
    every: Annotated[bool, typer.Option("--list", help="Your threads, the latest first, instead.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="End what runs in the thread, instead.")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the thread, instead.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a message, or the list as JSON.")] = False,
) -> None:
    """Talk with an agent; every line is a message. Ctrl-C leaves, and the thread goes on."""
    from orchestrator.settings import get_settings

    settings = get_settings()
    if every:
        _list(settings, as_json=as_json)
        return
    if agent is None and thread is None:
        words = "say with whom to talk, or --thread ID to go on; `officina chat --list` shows your threads"
        raise WrongUse(words, faults=[Fault("AGENT", "required", words)])
    thread_id = _thread(settings, agent, thread, mode, title, script)
    if stop or delete:
        _end(settings, thread_id, delete=delete)
        return
    _talk(settings, thread_id, as_json=as_json, unnamed=thread is None and title is None)


def _thread(
    settings: "Settings",
    agent: str | None,
    thread: str | None,
    mode: ModeName | None,
    title: str | None,
    script: Path | None,
) -> str:
    """The thread that is meant, or a new one."""
    from orchestrator import lookup, threads
    from orchestrator.store.database import prepare

    chosen = mode.value if mode else None
    voice = threads.find_agent(settings, agent) if agent is not None else None
    if thread is None:
        assert voice is not None
        prepare(settings)
        made = threads.create(settings, voice, title=title, mode=chosen, script=_script(script))
        note(f"thread {made}")
        return made
    with looking(settings) as connection:
        found = lookup.thread_id(connection, thread, settings.owner)
    if voice is not None:
        threads.refresh_agent(settings, found, voice)
    if title is not None:
        threads.rename(settings, found, title)
    if chosen is not None:
        threads.set_mode(settings, found, chosen)
    return found


def _script(file: Path | None) -> dict[str, Json] | None:
    if file is None:
        return None
    from orchestrator.commands.files import read_data
    from registry.scripts import read_script

    return read_script(read_data(file)).model_dump(mode="json", by_alias=True, exclude_unset=True)


def _talk(settings: "Settings", thread_id: str, *, as_json: bool, unnamed: bool) -> None:
    from rich.console import Console

    from orchestrator.chat import HELP, Chat

    direct = sys.stdin.isatty() and not as_json
    console = Console(highlight=False, emoji=False, markup=False, stderr=as_json)
    if direct:
        note(HELP)
    tell = say_json if as_json else None
    try:
        reader = _reader(direct=direct)
        seat = Chat(settings, thread_id, console, reader, direct=direct, tell=tell, unnamed=unnamed)
        code = seat.run()
    except KeyboardInterrupt:
        note(f"\nthe thread goes on without you; come back with: officina chat --thread {thread_id}")
        raise typer.Exit(0) from None
    note(f"go on with: officina chat --thread {thread_id}")
    raise typer.Exit(code)


def _reader(*, direct: bool) -> "Callable[[str], str]":
    from orchestrator.terminal.prompting import read_line

    def read(question: str) -> str:
        if direct:
            return read_line(question)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\n")

    return read


def _end(settings: "Settings", thread_id: str, *, delete: bool) -> None:
    from orchestrator import threads

    if delete:
        threads.delete(settings, thread_id, by=settings.owner)
        say(f"deleted {thread_id}")
        return
    stopped = threads.stop(settings, thread_id, by=settings.owner)
    say(f"stopped run {stopped}" if stopped else "nothing runs in it")


def _list(settings: "Settings", *, as_json: bool) -> None:
    from orchestrator.store import threads
    from orchestrator.threads import view_of

    with looking(settings) as connection:
        found = [view_of(row) for row in threads.listed(connection, settings.owner)]
    if as_json:
        say_json(found)
        return
    from orchestrator.records import wall_ms
    from orchestrator.terminal.desk import age
    from orchestrator.terminal.wording import one_line

    for row in found:
        state = row["status"] or "free"
        say(
            f"{row['id']}  {one_line(row['title'], 40):<40}  {one_line(row['agentName'], 20):<20}  {state:<11}  "
            f"{row['runs']} runs, {age(wall_ms() - row['activeAt'])} ago"
        )
    if not found:
        say("there are no threads yet: officina chat AGENT begins one")
