"""What agents keep, and what they were given: memories, pins, documents, connections; looked at and taken away by the
person they belong to."""

from typing import Annotated, Final

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from orchestrator import connections, forgetting, knowledge, lookup
from orchestrator.api.auth import Person
from orchestrator.api.desk.rendering import page, said
from orchestrator.api.desk.routing import router as make_router
from orchestrator.api.desk.routing import shell
from orchestrator.api.parts import cursor_of, place_of
from orchestrator.known import saved_agents
from orchestrator.ports.knowledge import StoredKnowledge
from orchestrator.store import memories, pins
from registry.base import Model
from registry.errors import Refused

router = make_router()

#: Memories of one page, pins, and passages that a search gives.
PAGE: Final = 50
PINS: Final = 100
PASSAGES: Final = 20
#: Words that a search looks for at most.
_WORDS: Final = 16

Sought = Annotated[str, Query(max_length=400, alias="q")]
Cursor = Annotated[str | None, Query(max_length=200)]


class Note(Model):
    """A text that is given to agents."""

    name: str = Field(max_length=300)
    text: str = Field(max_length=400_000)


@router.get("/memories")
def memory_list(asking: Person, sought: Sought = "", cursor: Cursor = None) -> Response:
    words = sought.split()[:_WORDS]
    with asking.database.read() as connection:
        found = memories.newest(connection, asking.owner, words, PAGE, place_of(cursor, int, str))
        pinned = pins.of_owner(connection, asking.owner, PINS) if not words and cursor is None else []
    following = cursor_of(found[-1].created_at, found[-1].id) if len(found) == PAGE else None
    facts = {
        "memories": [(row, *_whose(row.namespace)) for row in found],
        "pins": [(row, *_whose(row.namespace)) for row in pinned],
        "sought": sought,
        "next": following,
        "first": cursor is None,
    }
    return page("memories.html", shell(asking, "memories", tab="memories", **facts))


@router.post("/memories/{memory_id}/forget")
def forget(asking: Person, memory_id: str) -> Response:
    if not forgetting.forget(asking.settings, {"id": memory_id}):
        raise Refused("it is forgotten already", code="unknown_memory")
    return said("Forgotten")


@router.post("/pins/{pin_id}/remove")
def unpin(asking: Person, pin_id: str) -> Response:
    if not forgetting.unpin(asking.settings, pin_id):
        raise Refused("it is not pinned any more", code="unknown_pin")
    return said("Unpinned")


@router.get("/knowledge")
def source_list(asking: Person, sought: Sought = "") -> Response:
    """Documents that agents look things up in, and what of them fits some words."""
    port = StoredKnowledge(asking.database)
    facts = {
        "sources": knowledge.listed(asking.settings, asking.owner),
        "passages": port.search_all(asking.owner, sought, limit=PASSAGES) if sought.strip() else [],
        "sought": sought,
        "names": {one.id: one.name for one in saved_agents(asking.settings).values()},
    }
    return page("knowledge.html", shell(asking, "memories", tab="knowledge", **facts))


@router.post("/knowledge")
def give(asking: Person, body: Note) -> Response:
    """Gives all agents of the owner a text; one of the same name is replaced."""
    name = body.name.strip()
    if not name:
        raise Refused("give it a name", code="invalid_input")
    added = knowledge.add(asking.settings, asking.owner, knowledge.Source(name, body.text))
    how = {"unchanged": "It is there already, as it is", "known": "The same text is there under another name"}
    return said(how.get(added.how, f"{added.how.capitalize()}: agents can look it up now"))


@router.post("/knowledge/{source_id}/remove")
def remove_source(asking: Person, source_id: str) -> Response:
    knowledge.remove(asking.settings, asking.owner, source_id)
    return said("Removed: no agent finds it any more")


@router.get("/connections")
def connection_list(asking: Person) -> Response:
    """Names, kinds and the open fields; a secret is never shown."""
    found = connections.listed(asking.settings, asking.owner)
    return page("connections.html", shell(asking, "connections", connections=found))


@router.post("/connections/{name}/remove")
def remove_connection(asking: Person, name: str) -> Response:
    connections.remove(asking.settings, asking.owner, name)
    return said("Removed, and its secrets with it")


def _whose(namespace: str) -> tuple[str, str | None]:
    """Whose a memory is, in words; and the id of a project to lead to."""
    if namespace == "owner":
        return "yours", None
    kind, _, rest = namespace.partition(":")
    if kind == "session":
        return "of a conversation", None
    id_, _, agent = rest.partition("/")
    agent = agent.partition(":")[2]
    if kind == "project":
        by = f", agent {agent}" if agent else ""
        return f"of a project{by}", id_ if len(id_) == lookup.WHOLE else None
    return f"of the {kind} {rest}", None
