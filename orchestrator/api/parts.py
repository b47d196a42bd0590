"""What routes share: the router with its strict JSON, and cursors."""

import asyncio
import base64
import binascii
import inspect
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import wraps
from typing import Annotated, Any, Final, ParamSpec, TypeVar

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from pydantic import Field
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from orchestrator.api.gate import Refusal
from orchestrator.api.replies import problems
from registry.base import Json, Model
from registry.jsontext import JsonFault, has_lone_surrogate, parse

P = ParamSpec("P")
T = TypeVar("T")

PREFIX: Final = "/api/studio"
USUAL: Final = (400, 401, 403, 404, 429, 500, 503)

Limit = Annotated[int, Query(ge=1, le=200, description="Rows of one page.")]
Cursor = Annotated[str | None, Query(max_length=200, description="`next` of the page before.")]
IfMatch = Annotated[
    str | None, Header(max_length=200, description="The `ETag` that was read: refused when it was changed since.")
]


ProjectId = Annotated[
    str,
    Path(
        min_length=1,
        max_length=36,
        description="A project's id, or six characters or more of its beginning or end that no other has.",
    ),
]

ThreadId = Annotated[str, Path(min_length=1, max_length=36, description="A thread's id, or a part of it.")]


class AttachedFile(Model):
    """A file that comes with a message, with `text` or `base64`."""

    name: str = Field(min_length=1, max_length=200, description="Without folders.", examples=["notes.md"])
    text: str | None = Field(None, description="What it holds, when that is text.")
    base64: str | None = Field(None, description="What it holds, in base64.")


class StrictRequest(Request):
    """A body that means one thing: no NaN, no key twice, no half characters, nested 100 deep at most."""

    async def json(self) -> Json:
        if not hasattr(self, "_json"):
            try:
                value = parse(await self.body())
            except JsonFault as fault:
                raise Refusal(400, "invalid_json", f"the body is {fault}") from None
            if has_lone_surrogate(value):
                raise Refusal(400, "invalid_json", "the body holds half a character (a lone surrogate)")
            self._json = value
        return self._json


class StrictRoute(APIRoute):
    """A route with strict JSON. One whose function is a plain one is answered by one thread from who asks to the last
    row: each change between the loop and a thread would cost as much as a few statements."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        self.plain = not inspect.iscoroutinefunction(endpoint)
        super().__init__(path, _at_once(endpoint) if self.plain else endpoint, **more)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            request = StrictRequest(request.scope, request.receive)
            if not self.plain:
                return await handler(request)
            if self.body_field is not None:  # all there is to wait for
                with suppress(ClientDisconnect):  # the handler finds that out again, and answers it
                    await request.body()
            return await run_in_threadpool(_unwaiting, handler, request)

        return handle


async def in_thread(function: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
    """Calls what would make a loop wait: in a thread of the pool, or at once where no loop runs in this one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return function(*args, **more)
    return await run_in_threadpool(function, *args, **more)


def _at_once(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """A plain function as one to be awaited, which it never makes anybody do."""

    @wraps(endpoint)
    async def answer(**values: Any) -> Any:
        return endpoint(**values)

    return answer


def _unwaiting(handler: Callable[[Request], Coroutine[Any, Any, Response]], request: Request) -> Response:
    """What a handler answers that has nothing to wait for, without a loop."""
    answering = handler(request)
    try:
        answering.send(None)
    except StopIteration as over:
        answer: Response = over.value
        return answer
    finally:
        answering.close()
    raise RuntimeError(f"{request.url.path}: a plain function may not depend on what waits for the loop")


def router(tag: str, prefix: str = PREFIX) -> APIRouter:
    """A router of one resource; `routes/__init__.py` names its module."""
    return APIRouter(prefix=prefix, tags=[tag], route_class=StrictRoute, responses=problems(*USUAL))


def cursor_of(*place: int | str) -> str:
    """The place of a list's last row, as text for the next page."""
    return base64.urlsafe_b64encode(json.dumps(place, separators=(",", ":")).encode()).decode().rstrip("=")


def page_of(found: list[dict[str, Json]], limit: int) -> dict[str, Json]:
    """A page of rows that are listed by `createdAt` and id."""
    last = found[-1] if len(found) == limit else None
    return {"items": found, "next": last and cursor_of(last["createdAt"], last["id"])}


def place_of(cursor: str | None, *kinds: type) -> Any:
    """The place as a tuple; None: from the start.

    Raises:
        Refusal: the text is no cursor of this list.
    """
    if cursor is None:
        return None
    try:
        place = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if [type(part) for part in place] == list(kinds) and all(_storable(part) for part in place):
            return tuple(place)
    except (ValueError, TypeError, binascii.Error, RecursionError):
        pass
    raise Refusal(400, "invalid_cursor", "that is no cursor of this list; take `next` of the page before")


def version_of(if_match: str | None) -> str | None:
    """The version a header names; None: whichever it is."""
    return None if if_match in (None, "*") else str(if_match).removeprefix("W/").strip('"')


def _storable(part: Any) -> bool:
    return abs(part) < 2**63 if isinstance(part, int) else "\0" not in part and part.isprintable()
