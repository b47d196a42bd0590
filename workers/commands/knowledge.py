"""knowledge add, knowledge search: what needs the reader, or a model that compares texts by their meaning."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.commands.output import note, say, say_json
from registry.base import Json
from registry.errors import Fault, OfficinaError, WrongUse

if TYPE_CHECKING:
    from orchestrator.settings import Settings

app = typer.Typer()

Agent = Annotated[
    str | None, typer.Option("--agent", metavar="ID", help="A saved agent or a preset; without it: all your agents.")
]


@app.command()
def add(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Text, Markdown, HTML, PDF or Word.")],
    agent: Agent = None,
    owner: Annotated[bool, typer.Option("--owner", help="For all your agents, as without --agent.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON line for each file.")] = False,
) -> None:
    """Give agents documents to look things up in; one that was given before is replaced."""
    if agent is not None and owner:
        raise _unusable("--owner", "a document is for one agent or for all of them")
    from orchestrator import knowledge
    from orchestrator.settings import get_settings
    from orchestrator.store import database
    from workers.adding import embeddings_of
    from workers.reading import read

    settings = get_settings()
    if settings.api_url is not None:
        _send(settings, files, agent, as_json=as_json)
        return
    database.prepare(settings)
    _known(settings, agent)
    embeddings = embeddings_of(settings)
    failed = False
    for file in files:
        try:
            content = _content(file, settings.keeping.source_bytes)
            text, title = read(file.name, content)
            source = knowledge.Source(str(file.absolute()), text, title, content)
            added = knowledge.add(settings, settings.owner, source, agent_id=agent, embeddings=embeddings)
        except OfficinaError as error:
            failed = True
            note(f"{file}: {error.code}: {error.message}")
            continue
        _added(file, {"id": added.id, "how": added.how, "passages": added.passages}, as_json=as_json)
    if failed:
        raise typer.Exit(1)


@app.command()
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS...")],
    agent: Agent = None,
    limit: Annotated[int, typer.Option(min=1, max=50)] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list.")] = False,
) -> None:
    """Look something up as an agent would."""
    from orchestrator.commands.output import looking
    from orchestrator.ports.knowledge import StoredKnowledge
    from orchestrator.settings import get_settings
    from orchestrator.store.database import get_database
    from registry.skills.context import Caller
    from workers.adding import embeddings_of

    settings = get_settings()
    if settings.api_url is not None:
        from orchestrator.commands.shelves import Elsewhere, elsewhere

        _tell(Elsewhere(elsewhere(settings)).search(" ".join(words), agent, limit), as_json=as_json)
        return
    with looking(settings):
        pass
    nearness = settings.embeddings.nearness if settings.embeddings else 1.0
    port = StoredKnowledge(get_database(settings), embeddings_of(settings), nearness)
    caller = Caller("person", owner_id=settings.owner, agent_id=agent)
    found = port.search(caller, " ".join(words), limit=limit)
    _tell(
        [{"id": p.id, "title": p.title, "text": p.text, "uri": p.uri, "score": p.score} for p in found], as_json=as_json
    )


def _tell(found: list[dict[str, Json]], *, as_json: bool) -> None:
    from registry.masking import mask_text

    if as_json:
        say_json(found)
        return
    for one in found:
        say(mask_text(f"{one['score']:.2f}  {one['id']}  {one['title'] or one['uri']}"))
        say(mask_text(f"      {' '.join(one['text'].split())[:300]}"))


def _send(settings: "Settings", files: list[Path], agent: str | None, *, as_json: bool) -> None:
    """Gives files to a studio elsewhere, which reads them there; each is known by its name."""
    from orchestrator.commands.shelves import Elsewhere, elsewhere

    there, failed = Elsewhere(elsewhere(settings)), False
    for file in files:
        try:
            added = there.add_file(file.name, _content(file, settings.keeping.source_bytes), agent)
        except OfficinaError as error:
            failed = True
            note(f"{file}: {error.code}: {error.message}")
            continue
        _added(file, added, as_json=as_json)
    if failed:
        raise typer.Exit(1)


def _added(file: Path, added: dict[str, Json], *, as_json: bool) -> None:
    if as_json:
        say_json({"file": str(file)} | {name: added[name] for name in ("id", "how", "passages")})
    else:
        say(f"{added['id']}  {added['how']}  {added['passages']} passages  {file}")


def _known(settings: "Settings", agent: str | None) -> None:
    """Documents of an agent nobody knows would never be found."""
    if agent is None:
        return
    from orchestrator.known import load_presets, registries, saved_agents

    there = {*saved_agents(settings), *load_presets(settings, registries(settings))}
    if agent not in there:
        raise _unusable("--agent", f"there is no saved agent or preset {agent[:80]!r}")


def _content(file: Path, most: int) -> bytes:
    if not file.is_file():  # a pipe would be waited for
        raise _unusable(str(file), "is no file that can be read")
    try:
        with file.open("rb") as reader:
            content = reader.read(most + 1)
    except OSError as error:
        raise _unusable(str(file), f"cannot be read: {error.strerror}") from None
    if len(content) > most:
        raise _unusable(str(file), f"has more than {most} bytes")
    return content


def _unusable(where: str, words: str) -> WrongUse:
    return WrongUse(words, faults=[Fault(where, "wrong_use", words)])
