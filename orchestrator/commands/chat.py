"""chat: a conversation with an agent in the terminal."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.commands.output import looking, note, say, say_json
from orchestrator.commands.projects import ModeName
from registry.base import Json
from registry.errors import Fault, Refused, WrongUse

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.attachments import Attachment
    from orchestrator.rooms import Room
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
    attach: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A file that comes with the first message; may be repeated."),
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
    attached = _attached(attach)
    if settings.api_url is None:
        from orchestrator.rooms import Here

        room: Room = Here(settings, _thread(settings, agent, thread, mode, title, script))
    else:
        room = _elsewhere(settings, agent, thread, mode, title, script)
    if stop or delete:
        _end(settings, room, delete=delete)
        return
    _talk(room, attached, as_json=as_json, unnamed=thread is None and title is None)


def _elsewhere(
    settings: "Settings",
    agent: str | None,
    thread: str | None,
    mode: ModeName | None,
    title: str | None,
    script: Path | None,
) -> "Room":
    """The same at the studio of OFFICINA_API_URL."""
    from orchestrator import rooms
    from orchestrator.commands.shelves import elsewhere, part

    client = elsewhere(settings)
    change: dict[str, Json] = {"title": title, "mode": mode.value if mode else None}
    change = {name: value for name, value in change.items() if value is not None}
    if thread is None:
        more = {"script": _script(script)} if script is not None else {}
        made = client.ask("POST", "studio/threads", {"agent": agent} | change | more)
        note(f"thread {made['id']}")
        return rooms.Elsewhere(client, made["id"])
    path = f"studio/threads/{part(thread)}"
    found = client.ask("GET", path)
    if agent is not None and agent not in (found["agentId"], found["originAgentId"], found["agentName"]):
        words = f"{found['agentId']!r} speaks in this thread, not {agent[:80]!r}; leave the agent out to go on"
        raise Refused(words, code="other_agent")
    if change:
        client.ask("PATCH", path, change)
    return rooms.Elsewhere(client, found["id"])


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
    wanted: threads.Change = {}
    if title is not None:
        wanted["title"] = title
    if chosen is not None:
        wanted["mode"] = chosen
    if wanted:
        threads.change(settings, found, wanted)
    return found


def _script(file: Path | None) -> dict[str, Json] | None:
    if file is None:
        return None
    from orchestrator.commands.files import read_data
    from registry.scripts import read_script

    return read_script(read_data(file)).model_dump(mode="json", by_alias=True, exclude_unset=True)


def _attached(paths: list[Path] | None) -> "list[Attachment]":
    if not paths:
        return []
    from orchestrator.attachments import read_files

    return read_files(paths)


def _talk(room: "Room", attached: "list[Attachment]", *, as_json: bool, unnamed: bool) -> None:
    from rich.console import Console

    from orchestrator.chat import HELP, Chat

    direct = sys.stdin.isatty() and not as_json
    console = Console(highlight=False, emoji=False, markup=False, stderr=as_json)
    if direct:
        note(HELP)
    tell = say_json if as_json else None
    try:
        reader = _reader(direct=direct)
        seat = Chat(room, console, reader, direct=direct, tell=tell, unnamed=unnamed, attached=attached)
        code = seat.run()
    except KeyboardInterrupt:
        note(f"\nthe thread goes on without you; come back with: officina chat --thread {room.id}")
        raise typer.Exit(0) from None
    note(f"go on with: officina chat --thread {room.id}")
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


def _end(settings: "Settings", room: "Room", *, delete: bool) -> None:
    if settings.api_url is not None:
        from orchestrator.commands.shelves import elsewhere

        client, path = elsewhere(settings), f"studio/threads/{room.id}"
        stopped = client.ask("DELETE", path) if delete else client.ask("POST", f"{path}/stop")["runId"]
    else:
        from orchestrator import threads

        if delete:
            threads.delete(settings, room.id, by=settings.owner)
        stopped = None if delete else threads.stop(settings, room.id, by=settings.owner)
    if delete:
        say(f"deleted {room.id}")
        return
    say(f"stopped run {stopped}" if stopped else "nothing runs in it")


def _threads(settings: "Settings") -> list[dict[str, Json]]:
    if settings.api_url is not None:
        from orchestrator.commands.agent_shelf import PAGE
        from orchestrator.commands.shelves import elsewhere

        return list(elsewhere(settings).ask("GET", "studio/threads", params={"limit": str(PAGE)})["items"])
    from orchestrator.store import threads
    from orchestrator.threads import view_of

    with looking(settings) as connection:
        return [view_of(row) for row in threads.listed(connection, settings.owner)]


def _list(settings: "Settings", *, as_json: bool) -> None:
    found = _threads(settings)
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
