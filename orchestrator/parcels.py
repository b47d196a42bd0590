"""A project as it is sent to a studio elsewhere: the document, with the content of every file that it names."""

import base64
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from registry.base import Json
from registry.errors import Fault, WrongUse


def document_of(source: str) -> dict[str, Json]:
    """What submit was given, as the API takes it: the document, and the content of every file it names.

    Raises:
        WrongUse: a file that is named is not there, or is none we send.
    """
    from registry.projects import reading
    from registry.projects.documents import parse, read_text

    path = Path(source)
    if not _is_project_file(path):
        # A brief, or a file that holds one: read as it is read here.
        from registry.graph.checks.known import Registries

        found = reading.read_submission(source, Registries(skills=frozenset(), documents=frozenset()))
        return found.file.to_json()
    document = parse(read_text(path), name=path.name)
    if not isinstance(document, dict):
        raise WrongUse(
            f"{path.name}: a project file is an object with a title",
            faults=[Fault("", "wrong_type", "a project file is an object with a title")],
        )
    files = _beside(path.resolve().parent, document)
    return {**document, "files": files} if files else dict(document)


def _is_project_file(path: Path) -> bool:
    try:
        return path.suffix.lower() in (".yaml", ".yml", ".json") and path.is_file()
    except (OSError, ValueError):
        return False


def _beside(folder: Path, document: Mapping[str, Json]) -> list[dict[str, str]]:
    """The files a document names. One that is missing is left out: the studio tells so with all other faults.

    Raises:
        WrongUse: one is there, and is none we send (a link, a pipe, unreadable).
    """
    from registry.projects.beside import Unusable, find, open_regular

    found: dict[str, dict[str, str]] = {}
    faults: list[Fault] = []
    for place, name in _named(document):
        try:
            for file in find(folder, name):
                with os.fdopen(open_regular(file), "rb") as reader:
                    found[file.name] = {"path": file.name, "base64": base64.b64encode(reader.read()).decode()}
        except Unusable as error:
            faults += [error.at(place)] if error.code != "missing" else []
    if faults:
        raise WrongUse(str(faults[0]), code="project_invalid", faults=faults)
    return list(found.values())


def _named(document: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Every file a document names, with the place it is named at; what is of the wrong kind is told by the studio."""
    inputs, agents = document.get("inputs"), document.get("agents")
    for place, one in enumerate(inputs if isinstance(inputs, list) else ()):
        name = one.get("path") if isinstance(one, dict) else one
        if isinstance(name, str) and name:
            yield f"inputs[{place}]", name
    for id_, one in (agents if isinstance(agents, dict) else {}).items():
        if isinstance(one, dict) and isinstance(one.get("file"), str):
            yield f"agents.{id_}", one["file"]
    if isinstance(document.get("script"), str) and document["script"]:
        yield "script", document["script"]
