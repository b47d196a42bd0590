"""Conversations: the list, each with its answers as they come, and what a person does in them."""

from typing import Final

from pydantic import Field
from starlette.responses import Response

from orchestrator import attachments, lookup, threads, views
from orchestrator.api.auth import Asking, Person
from orchestrator.api.desk import opened_files, questions, talks
from orchestrator.api.desk.rendering import page, said
from orchestrator.api.desk.routing import router as make_router
from orchestrator.api.desk.routing import shell
from orchestrator.api.parts import AttachedFile
from orchestrator.api.shared import skills
from orchestrator.attachments import Attachment
from orchestrator.known import load_presets, registries, saved_agents
from orchestrator.store import events
from orchestrator.store import threads as moves
from orchestrator.terminal.wording import one_line
from registry.base import Model
from registry.errors import Refused

router = make_router()

#: Characters of a first message that become a title.
TITLE_CHARS: Final = 60
TEXT_CHARS: Final = 20_000


class Words(Model):
    text: str = Field(max_length=TEXT_CHARS)
    #: Made by the page: the same message sent twice is one.
    key: str = Field(min_length=8, max_length=100)
    attachments: list[AttachedFile] = Field([], max_length=attachments.MOST)


class Beginning(Words):
    agent: str = Field(max_length=100)


@router.get("/threads")
def thread_list(asking: Person) -> Response:
    with asking.database.read() as connection:
        found = [threads.view_of(row) for row in moves.listed(connection, asking.owner)]
    return page("threads.html", shell(asking, "threads", threads=found, voices=_voices(asking), **_bounds(asking)))


@router.get("/threads/{thread_id}")
def thread(asking: Person, thread_id: str) -> Response:
    with asking.database.read() as connection:
        whole = lookup.thread_id(connection, thread_id, asking.owner)
        seq = events.last(connection, whole)
        row = moves.get(connection, whole)
        turns, before = talks.read(connection, whole)
        facts = {
            "thread": threads.view_of(row),
            "turns": turns,
            "before": before,
            "queue": talks.waiting(connection, whole),
            "cards": questions.cards(connection, views.signals_of(connection, whole, status="open")),
            "stream": f"/api/studio/projects/{whole}/events?live=true&after={seq}",
            "files": views.file_list(connection, whole),
            **_bounds(asking),
        }
    return page("thread.html", shell(asking, "threads", **facts))


@router.post("/threads")
def begin(asking: Person, body: Beginning) -> Response:
    """Begins a conversation with a saved agent or a preset, and says the first thing in it."""
    text = _said(body)
    voice = threads.known_agent(asking.settings, body.agent)
    title = one_line(text, TITLE_CHARS)
    brought = _brought(body)
    attachments.judge(asking.settings, brought)  # before there is a conversation that nothing was said in
    made = threads.create(asking.settings, voice, title=title, client_key=f"desk:{body.key}")
    attachments.send(asking.settings, made, text, brought, client_key=body.key)
    return said("Begun", go=f"/threads/{made}")


@router.get("/threads/{thread_id}/files/{path:path}")
def file(asking: Person, thread_id: str, path: str) -> Response:
    """A file of the conversation with a preview of what it holds."""
    with asking.database.read() as connection:
        whole = lookup.thread_id(connection, thread_id, asking.owner)
        shown = threads.view_of(moves.get(connection, whole))
    facts = opened_files.shown(asking.settings.workspaces / whole, path, f"/threads/{whole}")
    return page("thread_file.html", shell(asking, "threads", thread=shown, **facts))


@router.get("/threads/{thread_id}/pictures/{path:path}")
def picture(asking: Person, thread_id: str, path: str) -> Response:
    """A picture of the conversation, for a page to show."""
    return opened_files.picture(asking.settings.workspaces / _mine(asking, thread_id), path)


@router.post("/threads/{thread_id}/send")
def send(asking: Person, thread_id: str, body: Words) -> Response:
    text, brought = _said(body), _brought(body)
    attachments.send(asking.settings, _mine(asking, thread_id), text, brought, client_key=body.key)
    return said("Sent")


@router.post("/threads/{thread_id}/stop")
def stop(asking: Person, thread_id: str) -> Response:
    stopped = threads.stop(asking.settings, _mine(asking, thread_id), by=asking.who.name)
    if stopped is None:
        raise Refused("nothing runs in it any more", code="run_ended")
    return said("Stopped. The conversation goes on with what you say next.")


@router.post("/threads/{thread_id}/compact")
def compact(asking: Person, thread_id: str) -> Response:
    threads.compact(asking.settings, _mine(asking, thread_id))
    return said("It is being summed up.")


@router.post("/threads/{thread_id}/delete")
def delete(asking: Person, thread_id: str) -> Response:
    threads.delete(asking.settings, _mine(asking, thread_id), by=asking.who.name)
    return said("Deleted", go="/threads")


def _said(body: Words) -> str:
    text = body.text.strip()
    if not text:
        raise Refused("say something first", code="invalid_input")
    return text


def _brought(body: Words) -> list[Attachment]:
    return attachments.read([one.to_json() for one in body.attachments])


def _bounds(asking: Asking) -> dict[str, int]:
    """What a message may be: characters, files, and bytes of all these."""
    bytes_ = asking.settings.limits.attachment_bytes
    return {"most": TEXT_CHARS, "most_files": attachments.MOST, "most_bytes": bytes_}


def _mine(asking: Asking, thread_id: str) -> str:
    with asking.database.read() as connection:
        return lookup.thread_id(connection, thread_id, asking.owner)


def _voices(asking: Asking) -> list[dict[str, str]]:
    """Whom one can talk with: id and name, one's own first."""
    settings = asking.settings
    mine = saved_agents(settings)
    known = registries(settings, skills(), stand_in=settings.stand_in or not settings.has_model)
    presets = load_presets(settings, known)
    found = [{"id": one.id, "name": one.name} for one in mine.values()]
    shipped = [presets[id_] for id_ in presets if id_ not in mine and not presets[id_].lacks]
    return found + [{"id": one.agent.id, "name": one.agent.name} for one in shipped]
