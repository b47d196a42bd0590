"""Who asks: a program with a key (`Authorization: Bearer`), or a person with a session (a cookie).

A session can do what its owner can. A key does what its scopes say, and never approves anything: what acts on the
world waits for a person (spec: skills 20).
"""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer

from orchestrator import keys
from orchestrator.api.gate import Refusal
from orchestrator.api.parts import in_thread
from orchestrator.keys import Who
from orchestrator.ports.meter import CountingMeter
from orchestrator.settings import Settings
from orchestrator.store.database import Database, get_database
from registry.errors import Refused, SkillError

COOKIE: Final = "officina_session"

_bearer = HTTPBearer(auto_error=False, scheme_name="key", description="A key: `officina keys add NAME` makes one.")
_cookie = APIKeyCookie(
    name=COOKIE, auto_error=False, scheme_name="session", description="A person's session, made of a one-time code."
)


class Asking:
    """A request's owner, and the settings with which everything is done for them."""

    def __init__(self, who: Who, settings: Settings) -> None:
        self.who = who
        self.owner = who.owner_id
        self.settings = settings.model_copy(update={"owner": self.owner, "actor": who.name})

    @property
    def database(self) -> Database:
        return get_database(self.settings)

    def need(self, scope: str) -> None:
        """
        Raises:
            Refusal: the key may not do this.
        """
        if scope not in self.who.scopes:
            raise Refusal(403, "scope", f"this key may not {keys.SCOPES[scope]}: make one with --scope {scope}")


async def _asking(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
    session: Annotated[str | None, Security(_cookie)],
) -> Asking:
    return await in_thread(_known, request, bearer, session)


def _known(request: Request, bearer: HTTPAuthorizationCredentials | None, session: str | None) -> Asking:
    settings: Settings = request.app.state.settings
    # A key wins: a program that sends one means it, whatever cookies its client keeps.
    shown = bearer.credentials if bearer else session
    try:
        who = keys.identify(settings, shown) if shown else None
    except Refused as expired:
        raise _nobody(expired.code, expired.message) from None
    if who is None or who.person != (bearer is None):
        words = (
            "show a key (Authorization: Bearer ...) or a session" if not shown else "that key or session is of no use"
        )
        raise _nobody("unauthenticated", words)
    _admit(request, settings, str(shown))
    return Asking(who, settings)


def _nobody(code: str, words: str) -> Refusal:
    refusal = Refusal(401, code, words)
    refusal.headers = {"www-authenticate": "Bearer"}
    return refusal


def _admit(request: Request, settings: Settings, shown: str) -> None:
    """Counts the request of a key or session, under a digest of it.

    Raises:
        Refusal: 429, with the seconds to wait: it has asked too often.
    """
    if settings.rates.api is None:
        return
    meter: CountingMeter | None = getattr(request.app.state, "meter", None)
    if meter is None:
        meter = request.app.state.meter = CountingMeter(settings)
    try:
        meter.admit("api", hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()[:32])
    except SkillError as error:
        wait = next((detail.message for detail in error.details if detail.path == "retryAfter"), "1")
        words = f"more than {settings.rates.api} requests of this key or session; try again in {wait} s"
        refusal = Refusal(429, "rate_limited", words)
        refusal.headers = {"retry-after": wait}
        raise refusal from None


def allowed(scope: str) -> Any:
    """The dependency of a route that needs a scope."""
    return Depends(_with(scope))


def _with(scope: str) -> Callable[..., Awaitable[Asking]]:
    # Not by a dependency on `_asking`: each costs every request a little.
    async def asking(
        request: Request,
        bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
        session: Annotated[str | None, Security(_cookie)],
    ) -> Asking:
        asking = await _asking(request, bearer, session)
        asking.need(scope)
        return asking

    return asking


Reading = Annotated[Asking, allowed("read")]
Writing = Annotated[Asking, allowed("write")]
Answering = Annotated[Asking, allowed("answer")]
Invoking = Annotated[Asking, allowed("invoke")]
Overseeing = Annotated[Asking, allowed("admin")]
Connecting = Annotated[Asking, allowed("connections")]
Anyone = Annotated[Asking, Depends(_asking)]


async def _a_person(asking: Annotated[Asking, Depends(_asking)]) -> Asking:
    if not asking.who.person:
        raise Refusal(403, "not_a_person", "this is for a person's session; keys are for programs")
    return asking


Person = Annotated[Asking, Depends(_a_person)]
