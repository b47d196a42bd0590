"""Webhooks: their owner makes and closes them; others post to them, and show a signature and no key."""

import time
from typing import Annotated, Any, Literal

from fastapi import Path, Request
from fastapi import Response as Empty
from pydantic import AfterValidator, Field, StringConstraints, model_validator
from starlette.concurrency import run_in_threadpool

from orchestrator import webhooks
from orchestrator.api.auth import Connecting, Reading
from orchestrator.api.models import Out
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply, problems
from orchestrator.receiving import receive
from registry.base import Model
from registry.text import one_line, storable

router = make_router("hooks")


class Received(Out):
    accepted: bool = Field(description="Whether this delivery starts anything.")
    run_id: str | None = None
    project_id: str | None = None
    queued: bool | None = Field(None, description="Its thread is busy; it comes when that is free.")
    reason: str | None = Field(None, description="Why it starts nothing: paused, failed, duplicate.")


_BODY: dict[str, Any] = {
    "requestBody": {
        "required": False,
        "content": {"application/json": {"schema": {"description": "Anything; `text` is said, where there is one."}}},
    }
}


@router.post(
    "/hooks/{hook_id}",
    status_code=202,
    response_model=Received,
    responses=problems(413, 429),
    openapi_extra=_BODY,
    summary="Deliver to a webhook",
)
async def deliver(hook_id: str, request: Request) -> Reply:
    """`X-Officina-Timestamp` is the time in seconds, within 300 of ours. `X-Officina-Signature` is `sha256=` and the
    hex HMAC-SHA256 of timestamp, `.` and the raw body under the hook's secret. A signature is taken once;
    `X-Officina-Delivery` names a delivery, which is taken once within 24 hours."""
    body = await request.body()
    headers = {name.lower(): value for name, value in request.headers.items()}
    now = time.time_ns() // 1_000_000
    status, answer = await run_in_threadpool(receive, request.app.state.settings, hook_id, headers, body, now)
    return Reply(answer, status)


Id = Annotated[str, Path(min_length=1, max_length=100)]
Words = Annotated[str, StringConstraints(max_length=4000), AfterValidator(storable)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=120), AfterValidator(one_line)]


class NewHook(Model):
    name: Name
    agent_id: Annotated[str, StringConstraints(min_length=1, max_length=120), AfterValidator(storable)]
    detail: Words = ""
    mode: Literal["ask", "auto", "dont_ask", "bypass"] = "ask"
    generator_id: Annotated[str, AfterValidator(storable)] | None = Field(
        None, min_length=1, max_length=100, description="Each delivery runs this generator with its `inputs`."
    )
    projects: bool = Field(False, description="Each delivery starts a project, planned from `detail` and what arrived.")

    @model_validator(mode="after")
    def _one(self) -> "NewHook":
        if self.projects and self.generator_id is not None:
            raise ValueError("projects and generatorId say two things: a delivery is planned, or has its plan already")
        return self


class HookChange(Model):
    name: Name | None = None
    detail: Words | None = None
    status: Literal["active", "paused"] | None = None


class HookView(Out):
    id: str
    name: str
    status: str = Field(description="active, paused, failed")
    detail: str
    agent_id: str | None
    endpoint: str
    last_fired_at: int | None
    secret: str | None = Field(None, description="Where it was just made: it is not shown again.")


class HookList(Out):
    items: list[HookView]


@router.get("/hooks", response_model=HookList, summary="Your webhooks, without secrets")
def list_hooks(asking: Reading) -> Reply:
    return Reply({"items": webhooks.listed(asking.settings)})


@router.post(
    "/hooks",
    status_code=201,
    response_model=HookView,
    summary="Make a webhook; its secret is shown once",
    responses=problems(409),
)
def make_hook(asking: Connecting, body: NewHook) -> Reply:
    made = webhooks.add(
        asking.settings,
        body.name,
        body.agent_id,
        detail=body.detail,
        mode=body.mode,
        projects=body.projects,
        generator_id=body.generator_id,
    )
    return Reply(made, 201)


@router.patch(
    "/hooks/{hook_id}", response_model=HookView, summary="Rename, pause or resume a webhook", responses=problems(409)
)
def change_hook(asking: Connecting, hook_id: Id, body: HookChange) -> Reply:
    changed = webhooks.change(asking.settings, hook_id, name=body.name, detail=body.detail, status=body.status)
    return Reply(changed)


@router.post(
    "/hooks/{hook_id}/secret",
    response_model=HookView,
    summary="The secret of a webhook that an agent made, once",
    responses=problems(409),
)
def show_secret(asking: Connecting, hook_id: Id) -> Reply:
    found = webhooks.one(asking.settings, hook_id)
    return Reply(found | {"secret": webhooks.secret(asking.settings, hook_id)})


@router.post("/hooks/{hook_id}/rotate", response_model=HookView, summary="A new secret; the old one is of no use")
def rotate_hook(asking: Connecting, hook_id: Id) -> Reply:
    secret = webhooks.rotate(asking.settings, hook_id)
    return Reply(webhooks.one(asking.settings, hook_id) | {"secret": secret})


@router.delete("/hooks/{hook_id}", status_code=204, summary="Delete a webhook; what it started stays")
def remove_hook(asking: Connecting, hook_id: Id) -> Empty:
    webhooks.remove(asking.settings, hook_id)
    return Empty(status_code=204)
