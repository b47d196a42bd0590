"""What a person does on a page. Each sends JSON, changes rows as the API does, and answers with words."""

from typing import Annotated, Any, Literal

from fastapi import Body
from pydantic import Field
from starlette.responses import Response

from orchestrator import control, held, lookup, signals, timetable, views
from orchestrator.api.auth import Asking, Person
from orchestrator.api.desk import forms
from orchestrator.api.desk.rendering import said
from orchestrator.api.desk.routing import router as make_router
from orchestrator.api.gate import Refusal
from orchestrator.api.shared import skills
from registry.base import Json, Model
from registry.errors import Refused
from registry.jsontext import JsonFault, parse

router = make_router()

Filled = Annotated[dict[str, Json], Body()]


class Choice(Model):
    """A button of a signal."""

    option: str = Field(max_length=400)
    #: Of the action that the page showed.
    digest: str | None = Field(None, max_length=200)
    #: Why not, or whatever else a person adds.
    text: str | None = Field(None, max_length=4_000)


class Version(Model):
    version: str = Field(max_length=200)


class Cut(Model):
    at: int = Field(ge=1, le=2**62)


class Outcome(Model):
    how: Literal["result", "retry", "skip"]
    call_id: str = Field(max_length=200)
    result: str | None = Field(None, max_length=100_000)
    reason: str | None = Field(None, max_length=2_000)


@router.post("/inbox/{signal_id}/choose")
def choose(asking: Person, signal_id: str, body: Choice) -> Response:
    """Answers with one of the signal's options; the first who answers wins, and everybody else is told."""
    signal = _signal(asking, signal_id)
    if body.digest is not None and body.digest != (signal["digest"] or ""):
        raise Refusal(409, "digest", "this is not the action your page showed; look at it again")
    text = (body.text or "").strip()
    if not text:
        given: dict[str, Any] = {"option": body.option}
    elif signal["kind"] in ("decision", "budget"):
        yes = body.option in ("Do it", "continue")
        given = {"payload": {"approved": yes, "reason": text}}
    else:
        given = {"payload": {"optionIds": [body.option], "text": text}}
    signals.answer(asking.settings, signal["id"], **given, by=asking.who.name)
    label = next((one["label"] for one in signal["options"] if one["id"] == body.option), body.option)
    return said(f"Answered: {label}")


@router.post("/inbox/{signal_id}/fill")
def fill(asking: Person, signal_id: str, body: Filled) -> Response:
    """Answers with what was filled in."""
    signal = _signal(asking, signal_id)
    given = forms.payload(signal["schema"], body)
    signals.answer(asking.settings, signal["id"], payload=given, by=asking.who.name)
    return said("Answered")


@router.post("/inbox/{signal_id}/reject")
def reject(asking: Person, signal_id: str) -> Response:
    signals.answer(asking.settings, _signal(asking, signal_id)["id"], payload=None, by=asking.who.name)
    return said("Answered: no")


@router.post("/inbox/{signal_id}/dismiss")
def dismiss(asking: Person, signal_id: str) -> Response:
    signals.dismiss(asking.settings, _signal(asking, signal_id)["id"], by=asking.who.name)
    return said("Put away")


@router.post("/projects/{project_id}/cancel")
def cancel(asking: Person, project_id: str) -> Response:
    with asking.database.read() as connection:
        whole = lookup.project_id(connection, project_id, asking.owner)
    control.cancel(asking.settings, whole, by=asking.who.name)
    return said("Cancelled. What runs stops at its next check.")


@router.post("/projects/{project_id}/start")
def begin(asking: Person, project_id: str, body: Version) -> Response:
    """Starts the plan that the page showed, and no other."""
    with asking.database.read() as connection:
        whole = lookup.project_id(connection, project_id, asking.owner)
    held.start(asking.settings, skills(), whole, version=body.version)
    return said("Started")


@router.post("/tasks/{task_id}/retry")
def retry(asking: Person, task_id: str) -> Response:
    with asking.database.read() as connection:
        whole = lookup.task_id(connection, task_id, asking.owner)
    control.retry(asking.settings, whole, by=asking.who.name)
    return said("It runs again.")


@router.post("/runs/{run_id}/fork")
def fork(asking: Person, run_id: str, body: Cut) -> Response:
    control.fork(asking.settings, _run(asking, run_id), body.at, by=asking.who.name)
    return said("Forked: the task goes on from there in a new run.")


@router.post("/runs/{run_id}/wake")
def wake(asking: Person, run_id: str) -> Response:
    control.wake(asking.settings, _run(asking, run_id), by=asking.who.name)
    return said("It goes on now.")


@router.post("/runs/{run_id}/repair")
def repair(asking: Person, run_id: str, body: Outcome) -> Response:
    """Says what became of a call that may have happened."""
    result: Json = None
    if body.how == "result":
        try:
            result = parse((body.result or "null").encode("utf-8", "surrogatepass"))
        except JsonFault:
            result = body.result  # a person's words are a result, too
    whole = _run(asking, run_id)
    call, reason = body.call_id, body.reason or None
    control.repair(asking.settings, whole, body.how, by=asking.who.name, call_id=call, result=result, reason=reason)
    return said("Noted; the run goes on with it.")


@router.post("/schedules/{schedule_id}/{what}")
def schedule(asking: Person, schedule_id: str, what: Literal["pause", "resume", "delete"]) -> Response:
    if what == "delete":
        timetable.remove(asking.settings, schedule_id)
        return said("Deleted. Projects it started go on.")
    status = "paused" if what == "pause" else "active"
    timetable.change(asking.settings, schedule_id, title=None, status=status)
    return said("Paused" if what == "pause" else "It goes on")


def _signal(asking: Asking, signal_id: str) -> dict[str, Any]:
    with asking.database.read() as connection:
        whole = lookup.signal_id(connection, signal_id, asking.owner)
        found = views.signal(connection, whole)
    if found["status"] != "open":
        by = f" by {found['answeredBy']}" if found["answeredBy"] else ""
        raise Refused(f"it was {found['status']} already{by}; nothing of yours was sent", code="already_answered")
    return found


def _run(asking: Asking, run_id: str) -> str:
    with asking.database.read() as connection:
        return lookup.run_id(connection, run_id, asking.owner)
