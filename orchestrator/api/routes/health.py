"""Whether the API lives, and whether what it stands on does."""

from functools import cache
from typing import Literal

from fastapi import Request
from pydantic import Field
from sqlalchemy import func, select

from orchestrator.api.auth import Asking, Reading
from orchestrator.api.models import Out
from orchestrator.api.parts import PREFIX
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply
from orchestrator.events import redis_client
from orchestrator.store.database import get_database, now_ms
from orchestrator.store.tables import projects, workers
from registry.base import Json

router = make_router("health", prefix="")

#: Milliseconds after which a worker that said nothing counts as gone.
_SILENT_MS = 60_000


class Health(Out):
    status: str = Field(examples=["ok"])
    version: str


class Finding(Out):
    part: str
    verdict: Literal["ok", "broken", "absent"]
    words: str


class Findings(Out):
    findings: list[Finding]


@router.get("/health", response_model=Health, summary="Whether the process answers")
async def health() -> Reply:
    """For probes: it needs no key, and looks at nothing else."""
    return Reply({"status": "ok", "version": _version()})


@router.get("/health/ready", response_model=Health, summary="Whether requests can be answered")
def ready(request: Request) -> Reply:
    """For probes: 503 while the database does not answer, or is not at this release."""
    with get_database(request.app.state.settings).read() as connection:
        connection.execute(select(projects.c.id).limit(1)).first()
    return Reply({"status": "ok", "version": _version()})


@router.get(f"{PREFIX}/doctor", response_model=Findings, summary="What the API stands on, part by part")
def doctor(asking: Reading) -> Reply:
    """What this process can see; `officina doctor` where a worker runs tests the rest."""
    return Reply({"findings": [_database(), _redis(asking), _broker(asking), _workers(asking), _model(asking)]})


def _database() -> dict[str, Json]:
    return _finding("database", "ok", "answers")  # the request would not have come here otherwise


def _redis(asking: Asking) -> dict[str, Json]:
    url = asking.settings.redis
    if url is None:
        return _finding("redis", "absent", "none: streams look at the rows four times a second")
    try:
        redis_client(url).ping()
    except Exception as error:
        return _finding(
            "redis", "broken", f"does not answer ({type(error).__name__}): streams look at the rows instead"
        )
    return _finding("redis", "ok", "answers")


def _broker(asking: Asking) -> dict[str, Json]:
    if asking.settings.broker is None:
        return _finding("broker", "broken", "none is set and no stack runs: the clock of a worker finds work, later")
    return _finding("broker", "ok", "is set")


def _workers(asking: Asking) -> dict[str, Json]:
    seen = (workers.c.stopped_at.is_(None)) & (workers.c.seen_at > now_ms() - _SILENT_MS)
    with asking.database.read() as connection:
        count, slots = connection.execute(select(func.count(), func.sum(workers.c.slots)).where(seen)).one()
    if not count:
        return _finding("workers", "broken", "none was seen within a minute: nothing moves until one is started")
    return _finding("workers", "ok", f"{count} with {slots} slots")


def _model(asking: Asking) -> dict[str, Json]:
    if asking.settings.has_model:
        return _finding("model", "ok", "is configured")
    return _finding("model", "absent", "none: projects need a script, rehearse, or OFFICINA_STAND_IN")


def _finding(part: str, verdict: str, words: str) -> dict[str, Json]:
    return {"part": part, "verdict": verdict, "words": words}


@cache
def _version() -> str:
    from importlib.metadata import version

    return version("officina")
