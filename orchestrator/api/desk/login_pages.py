"""Signing in with a one-time code, and out again."""

import re
from typing import Final

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from orchestrator import keys
from orchestrator.api.auth import COOKIE
from orchestrator.api.desk.rendering import page
from orchestrator.api.desk.routing import router as make_router
from orchestrator.settings import Settings
from registry.errors import Refused

router = make_router()

#: An address of this desk. Browsers drop tabs and line ends from an address: `/<tab>/host` would be another host.
_OURS: Final = re.compile(r"/(?![/\\])[^\x00-\x1f\x7f]*")


@router.get("/login")
def login(request: Request, next: str = "/") -> Response:  # noqa: A002 - it is what the address says
    """Asks for a code. A link carries one behind `#`, where no log and no other host sees it."""
    shown = request.cookies.get(COOKIE)
    onward = next if _OURS.fullmatch(next) else "/"
    if shown and _is_a_person(request.app.state.settings, shown):
        return RedirectResponse(onward, 303)
    return page("login.html", {"onward": onward})


def _is_a_person(settings: Settings, shown: str) -> bool:
    """Whether what a browser keeps is a session in force; a key in its place would lead in circles."""
    try:
        who = keys.identify(settings, shown)
    except Refused:
        return False
    return who is not None and who.person
