"""Skills: listed, and called once (spec: skills 3.1)."""

import re
from typing import Annotated, Any, Final, Literal

from fastapi import Header, Path, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import Field

from orchestrator import calls, plugins
from orchestrator.api.auth import Asking, Invoking, Reading
from orchestrator.api.models import Out
from orchestrator.api.parts import PREFIX
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Detail, Reply, problems
from orchestrator.api.shared import skills
from orchestrator.api.waiting import Waiting
from orchestrator.wiring import unwired
from registry.base import Json, Model

router = make_router("skills")

#: Seconds of `Prefer: wait=N` at most.
_MOST_S: Final = 600
_WAIT: Final = re.compile(r"(?:^|[,;\s])wait=([0-9]{1,6})(?:$|[,;\s])")


class SkillView(Out):
    """What an agent can use."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    operations: list[str]
    wired: bool = Field(description="Whether everything it needs is there; else it answers that nothing happened.")


class Call(Model):
    """A call of a skill."""

    name: str = Field(min_length=1, max_length=80, examples=["math.evaluate"])
    input: dict[str, Json] = Field(default_factory=dict, examples=[{"expression": "2^10"}])
    project_id: str | None = Field(None, max_length=36, description="The project it is made for.")


class CallResult(Out):
    """How a call came out. A fault of the call is its result, with 200."""

    ok: bool
    output: Json = None
    error: str | None = None
    code: str | None = None
    retryable: bool | None = None
    signal_id: str | None = Field(None, description="The decision that waits for a person.")
    details: list[Detail] | None = None
    duration_ms: int


class CallView(Out):
    """A call that a worker makes."""

    id: str
    name: str
    project_id: str | None
    status: Literal["queued", "running", "done"]
    result: CallResult | None = Field(description="Once it is done.")
    created_at: int
    ended_at: int | None


@router.get(
    "/skills",
    response_model=list[SkillView],
    summary="Every registered skill, and those of your plugins, with their schemas",
)
def list_skills(asking: Reading) -> Reply:
    found = list(skills())
    missing = unwired(asking.settings, found)
    shown = [skill.definition(wired=skill.name not in missing) for skill in found]
    return Reply([*shown, *plugins.definitions(asking.settings)])


@router.post(
    "/skills/invoke",
    response_model=CallResult,
    summary="Call a skill once",
    responses={
        202: {"model": CallView, "description": "A worker is at it; `Location` says where to look again."},
        **problems(408, 409, 413, 415, 429),
    },
)
async def invoke(
    request: Request,
    asking: Invoking,
    body: Call,
    prefer: Annotated[
        str | None,
        Header(max_length=200, description="`respond-async`: 202 at once; `wait=N`: after N seconds (RFC 7240)."),
    ] = None,
) -> Reply:
    """In a session it is a person's own act; with a key it is an agent's call, and what acts on the world waits for a
    person: with a project the decision is put on the desk.

    What needs the network, a sandbox, a model, files or a plugin is made by a worker. The answer waits for it as long
    as the skill may take and five seconds more, or as `Prefer` says, and is 202 after that: the call goes on."""
    asked = await run_in_threadpool(_ask, asking, body)
    if not isinstance(asked, calls.Asked):
        return Reply(asked.to_json())
    waiting: Waiting = request.app.state.waiting
    over = await waiting.over(asked.id, _patience(prefer, asked.within_s))
    view = await run_in_threadpool(calls.view_of, asking.settings, asked.id)
    if over or view["result"] is not None:
        return Reply(view["result"])
    return Reply(view, 202, {"location": f"{PREFIX}/skills/calls/{asked.id}"})


@router.get(
    "/skills/calls/{call_id}", response_model=CallView, summary="A call that a worker makes, for a day after its end"
)
def show_call(asking: Invoking, call_id: Annotated[str, Path(min_length=1, max_length=36)]) -> Reply:
    return Reply(calls.view_of(asking.settings, call_id))


def _ask(asking: Asking, body: Call) -> Any:
    return calls.ask(
        asking.settings,
        skills(),
        body.name,
        body.input,
        as_agent=not asking.who.person,
        project=body.project_id,
    )


def _patience(prefer: str | None, usual_s: float) -> float:
    """Seconds the answer may wait."""
    if prefer is None:
        return usual_s
    if (found := _WAIT.search(prefer)) is not None:
        return min(float(found[1]), _MOST_S)
    return 0.0 if "respond-async" in prefer.lower() else usual_s
