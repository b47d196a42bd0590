"""`http.request` and `http.json`: any request to any public host, each approved by a person (spec: skills 7.4, 7.5)."""

import base64
import json
import re
from dataclasses import replace
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

from pydantic import Field, StringConstraints, field_validator, model_validator

from registry import masking
from registry.base import Json, Model
from registry.connections import ConnectionName, HttpConnection
from registry.errors import Detail, SkillError
from registry.jsontext import JsonFault, compact, has_lone_surrogate, parse
from registry.skills.context import SkillContext
from registry.skills.network import Incoming, Outgoing
from registry.skills.skill import Skill, skill
from registry.skills.urls import MAX_URL, UrlText, parse_url

MAX_BODY: Final = 256 * 1024
MAX_JSON: Final = 1024 * 1024
NOT_WIRED: Final = "no network is wired here: nothing was sent"

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
HeaderName = Annotated[str, StringConstraints(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$")]
HeaderValue = Annotated[str, StringConstraints(max_length=4096)]
Scalar = str | int | float | bool

#: Headers that say how bytes travel: the guard's part alone.
_REFUSED: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect", "keep-alive"}
)
NO_BODY: Final = frozenset({"GET", "HEAD"})
#: Types whose bodies are given as text.
_TEXT: Final = re.compile(r"text/.*|application/(?:.*\+)?(?:json|xml|javascript|x-www-form-urlencoded|yaml|sql)")


def judged_headers(headers: dict[str, str]) -> dict[str, str]:
    """Headers a caller may set.

    Raises:
        ValueError: one says how bytes travel, stands twice, or holds what no header may.
    """
    names = [name.lower() for name in headers]
    for name in names:
        if name in _REFUSED or name.startswith("proxy-"):
            raise ValueError(f"{name} is not for callers to set")
    if len(set(names)) != len(names):
        raise ValueError("one header stands twice")
    for name, value in headers.items():
        if any((ord(character) < 32 and character != "\t") or ord(character) == 127 for character in value):
            raise ValueError(f"the value of {name} holds a line break, NUL or another control character")
    return headers


class _Request(Model):
    """What both skills send."""

    method: Method = "GET"
    url: UrlText
    headers: dict[HeaderName, HeaderValue] = Field(default={}, max_length=32)
    query: dict[Annotated[str, StringConstraints(max_length=200)], Scalar] = Field(
        default={}, max_length=50, description="added to the query of the URL"
    )
    json_body: Json = Field(default=None, alias="json", description="sent as JSON; at most 256 KiB; null is none")
    connection: ConnectionName | None = Field(
        default=None, description="a connection of the owner, whose secret is added for the hosts it is bound to"
    )
    timeout_ms: int = Field(default=15_000, ge=500, le=60_000)

    @field_validator("headers")
    @classmethod
    def _ours(cls, headers: dict[str, str]) -> dict[str, str]:
        return judged_headers(headers)

    @model_validator(mode="after")
    def _fits(self) -> Any:
        if self.method in NO_BODY and self.has_body:
            raise ValueError(f"{self.method} takes no body")
        if self.json_body is not None and len(compact(self.json_body).encode()) > MAX_BODY:
            raise ValueError(f"json has more than {MAX_BODY} bytes")
        if len(self.address) > MAX_URL:
            raise ValueError(f"with its query the URL has more than {MAX_URL} characters")
        return self

    @property
    def has_body(self) -> bool:
        return self.json_body is not None

    @property
    def address(self) -> str:
        """The URL with the query parameters added."""
        if not self.query:
            return self.url
        url = parse_url(self.url)
        added = urlencode([(name, _plain(value)) for name, value in self.query.items()])
        return str(replace(url, query=f"{url.query}&{added}" if url.query else added))

    def data(self) -> tuple[bytes | None, str | None]:
        """The body and its type."""
        if self.json_body is not None:
            return compact(self.json_body).encode(), "application/json"
        return None, None


class HttpRequest(_Request):
    body: Annotated[str, StringConstraints(max_length=MAX_BODY)] | None = None
    follow_redirects: bool = False
    max_bytes: int = Field(default=262_144, ge=1, le=2_097_152)

    @model_validator(mode="after")
    def _one_body(self) -> Any:
        if self.body is not None and self.json_body is not None:
            raise ValueError("give body or json, and not both")
        if self.body is not None and len(self.body.encode()) > MAX_BODY:
            raise ValueError(f"body has more than {MAX_BODY} bytes")
        return self

    @property
    def has_body(self) -> bool:
        return self.body is not None or self.json_body is not None

    def data(self) -> tuple[bytes | None, str | None]:
        if self.body is not None:
            return self.body.encode(), None
        return super().data()


class HttpJson(_Request):
    pass


class HttpResponse(Model):
    status: int
    #: Whether the status is one of success (2xx); any other is an answer as well.
    ok: bool
    final_url: str
    headers: dict[str, str]
    content_type: str
    #: Of a text; `bodyBase64` of anything else.
    body: str | None = None
    body_base64: str | None = None
    truncated: bool
    bytes: int
    elapsed_ms: int
    untrusted: bool = True
    wired: bool = True
    note: str | None = None


class HttpData(Model):
    status: int
    data: Json
    headers: dict[str, str]
    elapsed_ms: int
    untrusted: bool = True
    wired: bool = True
    note: str | None = None


@skill(
    "http.request",
    title="Make an HTTP request",
    operations=("network", "world"),
    effect="once",
    timeout_s=60,
    needs=("net", "connections"),
    open_world=True,
)
def http_request(given: HttpRequest, context: SkillContext) -> HttpResponse:
    """Makes one HTTP request to a public host, after a person said yes to exactly this one. Returns status, headers and
    body, at most `maxBytes` of it; a status of 400 or more is an answer and not an error. `connection` adds a secret of
    the owner to requests for hosts it is bound to; you never see it. Redirects are followed only with
    `followRedirects`, at most 5. Never repeats a request. Reaches no private address. To read a page use web.fetch,
    which asks nobody."""
    if context.net is None:
        return HttpResponse(
            status=0,
            ok=False,
            final_url=given.url,
            headers={},
            content_type="",
            truncated=False,
            bytes=0,
            elapsed_ms=0,
            wired=False,
            note=NOT_WIRED,
        )
    redirects = 5 if given.follow_redirects else 0
    answer = _send(given, context, redirects=redirects, max_bytes=given.max_bytes, whole=False)
    body = masking.hide_in_bytes(answer.body)
    text = _text(answer, body)
    return HttpResponse(
        status=answer.status,
        ok=answer.ok,
        final_url=masking.mask_text(str(answer.url)),
        headers=shown_headers(answer),
        content_type=answer.header("content-type") or "",
        body=text,
        body_base64=None if text is not None else base64.b64encode(body).decode(),
        truncated=answer.truncated,
        bytes=len(answer.body),
        elapsed_ms=answer.elapsed_ms,
    )


@skill(
    "http.json",
    title="Call a JSON API",
    operations=("network", "world"),
    effect="once",
    timeout_s=60,
    needs=("net", "connections"),
    catalogued=False,
    documented=False,
    open_world=True,
)
def http_json(given: HttpJson, context: SkillContext) -> HttpData:
    """Makes one request to a JSON API and returns its data, after a person said yes to exactly this one. A status
    outside 2xx, an empty answer and one that is not JSON are errors (remote_error); at most 1 MiB. Follows no
    redirects, never repeats a request, reaches no private address."""
    if context.net is None:
        return HttpData(status=0, data=None, headers={}, elapsed_ms=0, wired=False, note=NOT_WIRED)
    answer = _send(given, context, redirects=0, max_bytes=MAX_JSON, whole=True)
    if not answer.ok:
        said = masking.mask_text(answer.body.decode("utf-8", "replace"))[:500]  # a cut would part a secret
        again = f"; its answer begins: {said}" if said else ""
        words = f"{answer.url.host} answered {answer.status}{again}"
        raise SkillError("remote_error", words, details=[Detail("status", str(answer.status))])
    return HttpData(
        status=answer.status,
        data=None if answer.status == 204 else _data(answer),
        headers=shown_headers(answer),
        elapsed_ms=answer.elapsed_ms,
    )


def _send(given: _Request, context: SkillContext, *, redirects: int, max_bytes: int, whole: bool) -> Incoming:
    assert context.net is not None
    body, kind = given.data()
    headers = {name: value.strip() for name, value in given.headers.items()}
    named = {name.lower() for name in headers}
    if kind is not None and "content-type" not in named:
        headers["Content-Type"] = kind
    if isinstance(given, HttpJson) and "accept" not in named:
        headers["Accept"] = "application/json"
    if given.connection is not None:
        headers = _with_secret(given, headers, context)
    return context.net.send(
        Outgoing(
            url=given.address,
            method=given.method,
            headers=headers,
            body=body,
            timeout_s=min(given.timeout_ms / 1000, context.deadline.left),
            max_bytes=max_bytes,
            whole=whole,
            redirects=redirects,
            downgrade=False,
            once=True,
        ),
        cancelled=context.cancelled,
    )


def _with_secret(given: _Request, headers: dict[str, str], context: SkillContext) -> dict[str, str]:
    """The headers and the secret of the connection, which goes to the hosts it is bound to and to no other."""
    name = str(given.connection)
    found = None
    if context.connections is not None:
        found = context.connections.find(context.caller.owner_id, HttpConnection, name)
    if found is None:
        raise SkillError("not_found", f"connection: there is no http connection {name!r}; nothing was sent")
    url = parse_url(given.address)
    if not found.bound_to(url):
        raise SkillError("not_allowed", f"the connection {name!r} is not for {url.origin}; nothing was sent")
    value = found.header_value()
    masking.remember(value.rpartition(" ")[2])  # HTTP Basic writes the secret in another form
    return {key: text for key, text in headers.items() if key.lower() != found.header.lower()} | {found.header: value}


def shown_headers(answer: Incoming) -> dict[str, str]:
    """The headers by lower-case name, repeated ones joined; secrets masked."""
    found: dict[str, str] = {}
    for name, value in answer.headers:
        found[name] = f"{found[name]}, {value}" if name in found else value
    shown: dict[str, str] = masking.mask(found)
    return shown


def _text(answer: Incoming, body: bytes) -> str | None:
    """The body as text when it is one; a character that was cut through is left out."""
    if body and not _TEXT.fullmatch(answer.content_type) and answer.content_type:
        return None
    try:
        return body.decode(answer.charset, "ignore" if answer.truncated else "strict")
    except UnicodeDecodeError:
        return None


def _data(answer: Incoming) -> Json:
    if not answer.body.strip():
        raise SkillError("remote_error", f"not_json: {answer.url.host} answered {answer.status} and nothing else")
    try:
        data = masking.hide(parse(answer.body, twice=True))
    except JsonFault as fault:
        raise SkillError("remote_error", f"not_json: {answer.url.host} answered with something else: {fault}") from None
    if has_lone_surrogate(data):
        raise SkillError("remote_error", f"not_json: {answer.url.host} answered with half a character")
    return data


def _plain(value: Scalar) -> str:
    return value if isinstance(value, str) else json.dumps(value)


SKILLS: tuple[Skill, ...] = (http_request, http_json)

__all__ = ["SKILLS", "HttpJson", "HttpRequest", "http_json", "http_request"]
