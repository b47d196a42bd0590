"""Webhooks: what others post, signed with the hook's secret. No key and no session is asked for; the signature is."""

import time
from typing import Any

from fastapi import Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from orchestrator.api.models import Out
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply, problems
from orchestrator.receiving import receive

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
