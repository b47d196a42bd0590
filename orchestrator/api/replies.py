"""What leaves the API: JSON in the order it was made, errors of one shape, and how each becomes a status."""

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from sqlalchemy.exc import DataError, SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from orchestrator.api.models import Out
from registry.base import Json
from registry.errors import OfficinaError, Refused, SkillError, Unavailable, WrongUse
from registry.ids import new_id
from registry.jsontext import compact
from registry.masking import mask_text

log = logging.getLogger(__name__)

#: Places of faults that one answer names.
MOST_DETAILS: Final = 100

#: Codes with a status of their own (spec: engine 13); other refusals are 409, and `unknown_*` is 404.
_STATUS: Final[Mapping[str, int]] = {
    "resume_validation_failed": 400,
    "agent_invalid": 400,
    "invalid_input": 400,
    "path_escape": 400,
    "wrong_use": 400,
    "key_conflict": 409,
    "not_found": 404,
    "denied": 403,
    "not_a_person": 403,
    "scope": 403,
    "rate_limited": 429,
    "queue_full": 429,
    "version_conflict": 412,
    "too_large": 413,
    "no_broker": 503,
    "no_database": 503,
    "unavailable": 503,
}
_HTTP_CODES: Final = {400: "malformed", 401: "unauthenticated", 403: "forbidden", 404: "not_found", 405: "method"} | {
    408: "timeout",
    413: "too_large",
    415: "unsupported_type",
    429: "rate_limited",
}


class Detail(Out):
    """One thing that is wrong, and where."""

    path: str = Field(examples=["tasks[2].dependsOn[0]"])
    code: str | None = Field(None, examples=["unknown_dependency"])
    message: str


class Problem(Out):
    """Why a request was not carried out; nothing was changed."""

    error: str = Field(description="For people: what was wrong, and what to do.", examples=["there is no project 0194"])
    code: str = Field(description="For programs; it never changes.", examples=["unknown_project"])
    details: list[Detail] | None = Field(None, description="Every fault found, by its place.")
    id: str | None = Field(None, description="Of an error on our side: where to look in the logs.")


class Reply(Response):
    """JSON as it was made: keys in their order, characters unescaped where UTF-8 can hold them."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        try:
            return compact(content).encode()
        except UnicodeEncodeError:  # half a character in what a model or page said
            return json.dumps(content, separators=(",", ":"), allow_nan=False).encode()


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route, for the OpenAPI document."""
    words = {
        400: "Malformed: each fault is named by its place.",
        401: "No key or session, or one that is of no use (any more).",
        403: "From a foreign page or host name; or the key may not do this.",
        404: "There is no such thing, or it is another owner's.",
        408: "The body took too long to arrive.",
        409: "It does not fit what there is: answered, ended or taken already.",
        412: "It was changed since it was read: `If-Match` names an older version.",
        413: "The body is too large.",
        415: "The body is not `application/json`.",
        416: "The range lies outside of the file.",
        429: "Too much at once; try again later.",
        500: "A fault on our side, with the id of its line in the logs.",
        503: "The database does not answer.",
    }
    return {status: {"model": Problem, "description": words[status]} for status in sorted(statuses)}


def problem(
    status: int, code: str, words: str, details: Json = None, headers: Mapping[str, str] | None = None
) -> Reply:
    body = {"error": words, "code": code} | ({"details": details[:MOST_DETAILS]} if details else {})
    return Reply(body, status, headers)


def of_error(error: OfficinaError) -> Reply:
    """The answer an error of ours makes."""
    details: list[Json] = []
    if isinstance(error, WrongUse):
        details = [{"path": f.path, "code": f.code, "message": f.message} for f in error.faults]
    elif isinstance(error, SkillError):
        details = [detail.to_json() for detail in error.details]
    return problem(_status(error), error.code, mask_text(error.message), details)


def _status(error: OfficinaError) -> int:
    if error.code in _STATUS:
        return _STATUS[error.code]
    if error.code.startswith("unknown_") and not isinstance(error, WrongUse):
        return 404
    if isinstance(error, WrongUse):
        return 400
    if isinstance(error, Unavailable):
        return 503
    return 409 if isinstance(error, Refused | SkillError) else 500


def install(app: FastAPI) -> None:
    """Makes every error leave in the one shape."""
    app.add_exception_handler(OfficinaError, _ours)
    app.add_exception_handler(RequestValidationError, _unfit)
    app.add_exception_handler(HTTPException, _plain)
    app.add_exception_handler(SQLAlchemyError, _database)
    app.add_exception_handler(Exception, _unexpected)


async def _ours(_request: Request, error: Exception) -> Reply:
    assert isinstance(error, OfficinaError)
    return of_error(error) if _status(error) != 500 else _logged(error)


async def _unfit(_request: Request, error: Exception) -> Reply:
    assert isinstance(error, RequestValidationError)
    found = [
        {"path": _place(one["loc"]), "code": one["type"], "message": one["msg"].removeprefix("Value error, ")}
        for one in error.errors()
    ]
    first = f"{found[0]['path']}: {found[0]['message']}" if found else "the request does not fit"
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return problem(400, "invalid_request", first + more, found)


def _place(loc: tuple[int | str, ...]) -> str:
    """As faults of files are placed: `tasks[2].title`; what is no part of the body says of what it is one."""
    parts = loc[1:] if loc and loc[0] in ("body", "path", "query") and len(loc) > 1 else loc
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")


async def _plain(_request: Request, error: Exception) -> Reply:
    assert isinstance(error, HTTPException)
    code = getattr(error, "code", None) or _HTTP_CODES.get(error.status_code, "refused")
    return problem(error.status_code, code, str(error.detail), headers=error.headers)


async def _database(_request: Request, error: Exception) -> Reply:
    return of_database(error)


def of_database(error: Exception) -> Reply:
    """The answer where the database failed us."""
    words = str(getattr(error, "orig", None) or error)
    if isinstance(error, DataError) and "NUL" in words:
        return problem(400, "invalid_input", "a text holds a NUL character (U+0000), which the database does not keep")
    if any(word in words for word in ("no such table", "no such column", "UndefinedTable", "UndefinedColumn")):
        return problem(503, "schema_outdated", "the database is not at this release: run `officina db upgrade`")
    return _logged(error)


async def _unexpected(_request: Request, error: Exception) -> Reply:
    return of_unexpected(error)


def of_unexpected(error: Exception) -> Reply:
    """The answer to a fault of ours: the logs say more."""
    return _logged(error)


def _logged(error: Exception) -> Reply:
    id_ = new_id()
    log.error("request failed, id %s", id_, exc_info=error)
    return Reply({"error": f"a fault on our side; it is in the logs as {id_}", "code": "internal", "id": id_}, 500)
