"""Keys and sessions: who may come in."""

from typing import Annotated

from fastapi import Path, Request
from fastapi import Response as Empty
from pydantic import Field

from orchestrator import keys
from orchestrator.api.auth import COOKIE, Anyone, Person
from orchestrator.api.models import KeyList, NewKey, Out
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply, problems
from orchestrator.keys import USUAL
from registry.base import Model

router = make_router("keys")


class KeyWish(Model):
    """A key to be made."""

    name: str = Field(min_length=1, max_length=80, examples=["ci"])
    scopes: list[str] = Field(default=list(USUAL), max_length=20, description="What it may do.")
    expires_at: int | None = Field(
        None, ge=0, le=keys.LAST_MS, description="Unix milliseconds from when on it is refused; null: until revoked."
    )


class Code(Model):
    """A one-time code; `officina keys code` prints one."""

    code: str = Field(min_length=1, max_length=100)


class Me(Out):
    owner: str
    person: bool = Field(description="A session, which may approve; else a key.")
    scopes: list[str]
    token: str | None = Field(None, description="The session's token, for a client without cookies; shown this once.")


@router.get("/keys", response_model=KeyList, summary="Your keys, without their texts")
def list_keys(asking: Person) -> Reply:
    return Reply({"items": keys.listed(asking.settings, asking.owner)})


@router.post("/keys", response_model=NewKey, status_code=201, summary="Make a key", responses=problems(409))
def add_key(asking: Person, body: KeyWish) -> Reply:
    """The answer holds the key's text, this once."""
    made, text = keys.add(asking.settings, body.name, list(body.scopes), expires_at=body.expires_at)
    return Reply(made | {"key": text}, 201)


@router.delete("/keys/{key_id}", status_code=204, summary="Make a key useless, at once")
def revoke_key(asking: Person, key_id: Annotated[str, Path(max_length=100)]) -> Empty:
    keys.revoke(asking.settings, asking.owner, key_id)
    return Empty(status_code=204)


@router.get("/session", response_model=Me, summary="Who you are here")
def who(asking: Anyone) -> Reply:
    return Reply({"owner": asking.owner, "person": asking.who.person, "scopes": sorted(asking.who.scopes)})


@router.post("/session", response_model=Me, status_code=201, summary="Begin a person's session with a one-time code")
def log_in(request: Request, body: Code) -> Reply:
    """The session comes as a cookie and as a token; either is it."""
    settings = request.app.state.settings
    token, found = keys.redeem(settings, body.code)
    reply = Reply({"owner": found.owner_id, "person": True, "scopes": sorted(found.scopes), "token": token}, 201)
    life = round(settings.api.session_hours * 3600)
    secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
    reply.set_cookie(COOKIE, token, max_age=life, httponly=True, samesite="strict", secure=secure, path="/")
    return reply


@router.delete("/session", status_code=204, summary="End your session")
def log_out(request: Request, asking: Person) -> Empty:
    keys.end(asking.settings, request.cookies[COOKIE])
    reply = Empty(status_code=204)
    reply.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return reply
