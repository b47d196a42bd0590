"""Conversations: begun, said something in, read, stopped, given another speaker, deleted (spec: engine 20).

A thread has a trace, as a project has: `GET projects/ID/events` with its id follows what happens in it. What it asks is
answered as every signal is.
"""

from typing import Annotated, Any

from fastapi import Header, Query
from fastapi import Response as Empty
from pydantic import Field, StringConstraints

from orchestrator import attachments, lookup, threads, views
from orchestrator.api.auth import Asking, Reading, Writing
from orchestrator.api.models import Out, SignalView
from orchestrator.api.parts import AttachedFile, Cursor, Limit, ThreadId, cursor_of, place_of
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply, problems
from orchestrator.store import histories
from orchestrator.store import threads as moves
from registry.base import Json, Model
from registry.masking import mask
from registry.permissions import Mode
from registry.scripts import read_script

router = make_router("threads")

Title = Annotated[str, StringConstraints(min_length=1, max_length=threads.TITLE_CHARS)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=120)]
Key = Annotated[
    str | None, Header(min_length=1, max_length=200, description="The same key gives what it gave the first time.")
]
#: Characters one message may have.
MESSAGE_CHARS = 100_000


class NewThread(Model):
    agent: Name = Field(description="A saved agent or a preset, by id or name.")
    title: Title | None = None
    mode: Mode | None = None
    script: dict[str, Json] | None = Field(None, description="What the stand-in plays where no model is configured.")


class Change(Model):
    title: Title | None = None
    speaker: Name | None = Field(None, description="Who speaks from here on; the thread has to be free.")
    mode: Mode | None = Field(None, description="Of runs to come; null: as the agent has it.")


class Words(Model):
    text: str = Field(min_length=1, max_length=MESSAGE_CHARS)
    attachments: list[AttachedFile] = Field(
        [], max_length=attachments.MOST, description="They are written to the thread's workspace; the agent reads them."
    )
    mode: Mode | None = Field(None, description="Of this run alone.")


class ThreadLine(Out):
    id: str
    title: str
    kind: str = Field(description="chat, schedule, webhook")
    agent_id: str
    agent_name: str = Field(description="Who speaks now.")
    origin_agent_id: str
    mode: str | None
    run_id: str | None = Field(description="The run under way; null: the thread is free.")
    status: str | None = Field(description="How that run stands.")
    on: str | None = Field(description="What it waits for, where it is parked.")
    runs: int
    cost_usd: float
    created_at: int
    active_at: int


class ThreadPage(Out):
    items: list[ThreadLine]
    next: str | None


class ThreadView(ThreadLine):
    signals: list[SignalView] = Field(description="What it asks, and nobody has answered.")


class Said(Out):
    """One message of the history."""

    number: int = Field(description="Of its run among the thread's.")
    run_id: str
    role: str
    text: str | None = None


class MessagePage(Out):
    items: list[Said]
    next: str | None


class Begun(Out):
    run_id: str
    created: bool = Field(description="False: this key was used before, and this is the run it began.")


class Stopped(Out):
    run_id: str | None = Field(description="The run that was ended; null: the thread was free.")


@router.get("/threads", response_model=ThreadPage, summary="Your threads, what was active last first")
def list_threads(asking: Reading, limit: Limit = 50, cursor: Cursor = None) -> Reply:
    with asking.database.read() as connection:
        rows = moves.listed(connection, asking.owner, limit, place_of(cursor, int, str))
    following = cursor_of(rows[-1].active_at, rows[-1].id) if len(rows) == limit else None
    return Reply({"items": [threads.view_of(row) for row in rows], "next": following})


@router.post("/threads", response_model=ThreadView, status_code=201, summary="Begin a thread", responses=problems(409))
def create_thread(asking: Writing, body: NewThread, idempotency_key: Key = None) -> Reply:
    read = read_script(body.script) if body.script else None
    script = read.model_dump(mode="json", by_alias=True, exclude_unset=True) if read else None
    voice = threads.known_agent(asking.settings, body.agent)
    made = threads.create(
        asking.settings, voice, title=body.title, mode=body.mode, client_key=idempotency_key, script=script
    )
    return _shown(asking, made, 201)


@router.get("/threads/{thread_id}", response_model=ThreadView, summary="One thread", responses=problems(409))
def show_thread(asking: Reading, thread_id: ThreadId) -> Reply:
    return _shown(asking, _whole(asking, thread_id))


@router.get(
    "/threads/{thread_id}/messages",
    response_model=MessagePage,
    summary="What was said, the first first",
    responses=problems(409),
)
def list_messages(
    asking: Reading,
    thread_id: ThreadId,
    limit: Limit = 50,
    cursor: Cursor = None,
    latest: Annotated[bool, Query(description="The last page instead of the first; it has no `next`.")] = False,
) -> Reply:
    """Of people, schedules and agents, with the calls these made and what came of them, as the model reads them."""
    whole = _whole(asking, thread_id)
    with asking.database.read() as connection:
        rows = histories.page(connection, whole, limit, place_of(cursor, int, int), latest=latest)
    last = rows[-1] if len(rows) == limit and not latest else None
    following = cursor_of(last.run_number, last.number) if last is not None else None
    return Reply({"items": [_said(row) for row in rows], "next": following})


@router.post(
    "/threads/{thread_id}/send",
    response_model=Begun,
    status_code=202,
    summary="Say something",
    responses=problems(409, 413),
)
def send(asking: Writing, thread_id: ThreadId, body: Words, idempotency_key: Key = None) -> Reply:
    """Begins a run. While one is under way it is refused: `thread_busy`, or `pending_signal` when that asks you."""
    whole, given = _whole(asking, thread_id), attachments.read([one.to_json() for one in body.attachments])
    sent = attachments.send(asking.settings, whole, body.text, given, client_key=idempotency_key, mode=body.mode)
    return Reply({"runId": sent.run_id, "created": sent.is_new}, 202)


@router.post(
    "/threads/{thread_id}/compact",
    response_model=Begun,
    status_code=202,
    summary="Have it summed up",
    responses=problems(409),
)
def compact(asking: Writing, thread_id: ThreadId) -> Reply:
    """By a run of its own: from then on the summary is sent to the model in place of what it covers."""
    run_id = threads.compact(asking.settings, _whole(asking, thread_id))
    return Reply({"runId": run_id, "created": True}, 202)


@router.post(
    "/threads/{thread_id}/stop", response_model=Stopped, summary="End the run under way", responses=problems(409)
)
def stop(asking: Writing, thread_id: ThreadId) -> Reply:
    """The thread goes on."""
    return Reply({"runId": threads.stop(asking.settings, _whole(asking, thread_id), by=asking.who.name)})


@router.patch(
    "/threads/{thread_id}",
    response_model=ThreadView,
    summary="Rename it, change its speaker or its mode",
    responses=problems(409),
)
def change_thread(asking: Writing, thread_id: ThreadId, body: Change) -> Reply:
    whole, told = _whole(asking, thread_id), body.model_fields_set
    wanted: threads.Change = {"mode": body.mode} if "mode" in told else {}
    if body.title is not None:
        wanted["title"] = body.title
    if body.speaker is not None:
        wanted["speaker"] = body.speaker
    threads.change(asking.settings, whole, wanted)
    return _shown(asking, whole)


@router.delete("/threads/{thread_id}", status_code=204, summary="Delete a thread", responses=problems(409))
def remove_thread(asking: Writing, thread_id: ThreadId) -> Empty:
    """What runs in it ends, and nobody can say anything in it any more."""
    threads.delete(asking.settings, _whole(asking, thread_id), by=asking.who.name)
    return Empty(status_code=204)


def _whole(asking: Asking, given: str) -> str:
    with asking.database.read() as connection:
        return lookup.thread_id(connection, given, asking.owner)


def _shown(asking: Asking, thread_id: str, status: int = 200) -> Reply:
    with asking.database.read() as connection:
        view = threads.view_of(moves.get(connection, thread_id))
        return Reply(view | {"signals": views.signals_of(connection, thread_id, status="open")}, status)


def _said(row: Any) -> dict[str, Json]:
    body = {name: value for name, value in row.body.items() if name not in ("content", "coveredFrom", "coveredUntil")}
    about = {"number": row.run_number, "runId": row.run_id, "role": row.body.get("role")}
    said: dict[str, Json] = mask(body | about | {"text": row.body.get("content")})
    return said
