"""Who may look at the pages (a person with a session), and what goes wrong, as pages."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from orchestrator.api.auth import Asking
from orchestrator.api.desk.rendering import page, said
from orchestrator.api.parts import StrictRoute
from orchestrator.api.replies import of_database, of_error, of_unexpected
from orchestrator.records import wall_ms
from orchestrator.store.tables import signals
from registry.errors import OfficinaError
from registry.jsontext import parse

_HEADS: Final = {
    400: "That cannot be read",
    401: "Please sign in",
    403: "Not from here",
    404: "Nothing of that name",
    409: "That does not fit any more",
    503: "Not at the moment",
}


class PageRoute(StrictRoute):
    """A route whose refusals are pages, or words in the corner of one; whoever has no session is asked to sign in."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except HTTPException as error:
                return _refused(request, error.status_code, str(error.detail))
            except RequestValidationError:
                return _refused(request, 400, "the address or what was sent does not fit")
            except OfficinaError as error:
                reply = of_error(error)
            except SQLAlchemyError as error:
                reply = of_database(error)
            except Exception as error:
                reply = of_unexpected(error)
            return _refused(request, reply.status_code, parse(bytes(reply.body))["error"])

        return handle


def router() -> APIRouter:
    return APIRouter(route_class=PageRoute, include_in_schema=False)


def shell(asking: Asking, here: str, **facts: Any) -> dict[str, Any]:
    """What every page shows around its own: who is here, where, and how much waits for them."""
    waits = select(func.count()).where(signals.c.owner_id == asking.owner, signals.c.status == "open")
    with asking.database.read() as connection:
        waiting = connection.execute(waits).scalar_one()
    # How the page is kept up to date: by default it listens for whatever moves.
    usual = {"stream": f"/pulse?of={here}", "wide": False}
    return {**usual, "owner": asking.owner, "waiting": waiting, "here": here, "now": wall_ms(), **facts}


def error_page(status: int, words: str, facts: Mapping[str, Any] | None = None) -> Response:
    known = {"status": status, "head": _HEADS.get(status, "Something went wrong"), "words": words}
    return page("error.html", {**known, **(facts or {})}, status=status)


def _login(page_url: str) -> str:
    """Where to sign in, and from there back to this page of the desk."""
    try:
        at = urlsplit(page_url)
    except ValueError:
        return "/login"
    asked = at.path + (f"?{at.query}" if at.query else "")
    return f"/login?next={quote(asked, safe='')}" if asked not in ("", "/") else "/login"


def _refused(request: Request, status: int, words: str) -> Response:
    renews = request.headers.get("hx-request") == "true"
    if status == 401:
        if renews:
            return Response(status_code=401, headers={"hx-redirect": _login(request.headers.get("hx-current-url", ""))})
        return RedirectResponse(_login(str(request.url) if request.method == "GET" else ""), 303)
    return said(words, status=status) if renews else error_page(status, words)
