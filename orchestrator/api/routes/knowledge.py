"""What agents look things up in: files and texts that their owner gave them."""

import base64
import binascii
from typing import Annotated, Any, Final, Literal

from fastapi import Path, Query, Request
from fastapi import Response as Empty
from fastapi.concurrency import run_in_threadpool
from pydantic import Field, model_validator

from orchestrator import calls, knowledge
from orchestrator.api.auth import Asking, Reading, Writing
from orchestrator.api.models import Out
from orchestrator.api.parts import PREFIX
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply, problems
from orchestrator.api.routes.skills import CallView
from orchestrator.api.shared import skills
from orchestrator.api.waiting import Waiting
from orchestrator.known import load_presets, registries, saved_agents
from orchestrator.ports.knowledge import StoredKnowledge
from registry.base import Json, Model
from registry.errors import Fault, Refused, WrongUse
from registry.jsontext import digest
from registry.skills.context import Caller

router = make_router("knowledge")

#: Seconds an answer waits for a worker that reads a file.
_PATIENCE_S: Final = 60.0
#: What is wrong with what was sent, and not with what there is.
_UNFIT: Final = frozenset({"unsupported_type", "empty_source", "timeout"})

Agent = Annotated[
    str | None, Query(alias="agentId", min_length=1, max_length=120, description="A saved agent or a preset.")
]
SourceId = Annotated[str, Path(min_length=1, max_length=36)]


class SourceView(Out):
    id: str
    uri: str
    title: str | None
    agent_id: str | None = Field(description="Whom it is for; null: all your agents.")
    bytes: int
    updated_at: str


class SourceText(SourceView):
    text: str


class SourceList(Out):
    items: list[SourceView]


class Passage(Out):
    id: str
    title: str | None
    text: str
    uri: str | None
    score: float


class PassageList(Out):
    items: list[Passage]


class NewSource(Model):
    """A file or a text; one of the same name is replaced."""

    name: str = Field(min_length=1, max_length=400, description="A file's name: its ending says how it is read.")
    text: str | None = Field(None, description="What it holds, when that is text.")
    base64: str | None = Field(None, description="What it holds: text, Markdown, HTML, PDF or Word.")
    agent_id: str | None = Field(None, min_length=1, max_length=120, description="Whom it is for; else all.")

    @model_validator(mode="after")
    def _one(self) -> "NewSource":
        if (self.text is None) == (self.base64 is None):
            raise ValueError("give text or base64, and not both")
        return self


class AddedView(Out):
    id: str
    how: Literal["added", "replaced", "unchanged", "known"] = Field(
        description="known: the same content is there under another name."
    )
    passages: int


@router.get("/knowledge", response_model=SourceList, summary="What your agents look things up in, the eldest first")
def list_sources(asking: Reading, agent: Agent = None) -> Reply:
    return Reply({"items": knowledge.listed(asking.settings, asking.owner, agent_id=agent)})


@router.get("/knowledge/search", response_model=PassageList, summary="Look something up, by its words")
def search(
    asking: Reading,
    query: Annotated[str, Query(alias="q", min_length=1, max_length=500)],
    agent: Agent = None,
    limit: Annotated[int, Query(ge=1, le=50)] = 5,
) -> Reply:
    """As an agent would; where a model compares texts by their meaning, agents find more than this."""
    caller = Caller("person", owner_id=asking.owner, agent_id=agent)
    found = StoredKnowledge(asking.database).search(caller, query, limit=limit)
    shown = [{"id": p.id, "title": p.title, "text": p.text, "uri": p.uri, "score": p.score} for p in found]
    return Reply({"items": shown})


@router.post(
    "/knowledge",
    response_model=AddedView,
    status_code=201,
    summary="Add a file or a text",
    responses={
        202: {"model": CallView, "description": "A worker is at it; `Location` says where to look again."},
        **problems(408, 409, 413, 415, 429),
    },
)
async def add_source(request: Request, asking: Writing, body: NewSource) -> Reply:
    """A text is added at once. A file is opened by a worker, in a process of its own, and the answer waits for it a
    minute. What looks like a secret is masked."""
    asked = await run_in_threadpool(_add, asking, body)
    if not isinstance(asked, calls.Asked):
        return Reply(asked, 201)
    waiting: Waiting = request.app.state.waiting
    await waiting.over(asked.id, asked.within_s)
    view = await run_in_threadpool(calls.view_of, asking.settings, asked.id)
    if (result := view["result"]) is None:
        return Reply(view, 202, {"location": f"{PREFIX}/skills/calls/{asked.id}"})
    if not result["ok"]:
        raise _refusal(str(result["error"]), str(result["code"]))
    return Reply(result["output"], 201)


@router.get("/knowledge/{source_id}", response_model=SourceText, summary="One of them, with its text")
def show_source(asking: Reading, source_id: SourceId) -> Reply:
    return Reply(knowledge.text_of(asking.settings, asking.owner, source_id))


@router.delete("/knowledge/{source_id}", status_code=204, summary="Forget one of them")
def remove_source(asking: Writing, source_id: SourceId) -> Empty:
    knowledge.remove(asking.settings, asking.owner, source_id)
    return Empty(status_code=204)


def _add(asking: Asking, body: NewSource) -> dict[str, Json] | calls.Asked:
    _known(asking, body.agent_id)
    content = _content(body)
    if len(content) > asking.settings.keeping.source_bytes:
        words = f"{body.name[:80]!r} has more than {asking.settings.keeping.source_bytes} bytes"
        raise Refused(words, code="too_large")
    if body.text is not None and asking.settings.embeddings is None:
        source = knowledge.Source(body.name, body.text, body.name)
        added = knowledge.add(asking.settings, asking.owner, source, agent_id=body.agent_id)
        return {"id": added.id, "how": added.how, "passages": added.passages}
    given: dict[str, Json] = {"name": body.name, "agentId": body.agent_id, "plain": body.text is not None}
    approved = digest({"skill": knowledge.ADD, "input": given})
    return calls.hand_on(
        asking.settings, knowledge.ADD, given, within_s=_PATIENCE_S, approved=approved, content=content
    )


def _content(body: NewSource) -> bytes:
    if body.text is not None:
        return body.text.encode()
    try:
        return base64.b64decode(str(body.base64), validate=True)
    except (ValueError, binascii.Error):
        raise _refusal("base64: it is no base64", "invalid_file") from None


def _known(asking: Asking, agent_id: str | None) -> None:
    """Files of an agent nobody knows would never be found."""
    if agent_id is None:
        return
    there: Any = {*saved_agents(asking.settings), *load_presets(asking.settings, registries(asking.settings, skills()))}
    if agent_id not in there:
        raise Refused(f"there is no saved agent or preset {agent_id[:80]!r}", code="unknown_agent")


def _refusal(words: str, code: str) -> Refused | WrongUse:
    if code in _UNFIT or code == "invalid_file":
        return WrongUse(words, code=code, faults=[Fault("base64", code, words)])
    return Refused(words, code=code)
