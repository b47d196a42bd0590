"""The desk: what waits for a person, and the person's word."""

from typing import Annotated, Literal

from fastapi import Path, Query
from pydantic import Field, model_validator

from orchestrator import lookup, signals, views
from orchestrator.api.auth import Answering, Asking, Reading
from orchestrator.api.gate import Refusal
from orchestrator.api.models import SignalPage, SignalView
from orchestrator.api.parts import Cursor, Limit, page_of, place_of
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply, problems
from registry.base import Json, Model

router = make_router("signals")

SignalId = Annotated[str, Path(min_length=1, max_length=36, description="A signal's id, or a part of one.")]


class Answer(Model):
    """One of the signal's options, or a payload that fits its schema; a payload of null rejects."""

    option: str | None = Field(None, max_length=400, examples=["Do it"])
    payload: Json = Field(None, examples=[{"approved": True}])

    @model_validator(mode="after")
    def _one(self) -> "Answer":
        if ("option" in self.model_fields_set) == ("payload" in self.model_fields_set):
            raise ValueError("give an option or a payload, and not both")
        return self


@router.get("/signals", response_model=SignalPage, summary="What waits for you, the longest waiting first")
def list_signals(
    asking: Reading,
    status: Annotated[
        Literal["open", "answered", "expired", "dismissed", "all"], Query(description="Only signals in this state.")
    ] = "open",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Reply:
    wanted = None if status == "all" else status
    with asking.database.read() as connection:
        found = views.signal_list(
            connection, asking.owner, status=wanted, limit=limit, after=place_of(cursor, int, str)
        )
    return Reply(page_of(found, limit))


@router.get("/signals/{signal_id}", response_model=SignalView, summary="One signal", responses=problems(409))
def show_signal(asking: Reading, signal_id: SignalId) -> Reply:
    with asking.database.read() as connection:
        return Reply(views.signal(connection, lookup.signal_id(connection, signal_id, asking.owner)))


@router.post(
    "/signals/{signal_id}/answer", response_model=SignalView, summary="Answer it, once", responses=problems(409)
)
def answer(asking: Answering, signal_id: SignalId, body: Answer) -> Reply:
    """Whoever is first wins; everybody else gets 409. A decision takes a person's session: a key never approves."""
    whole = _found(asking, signal_id, person=True)
    given = {"option": body.option} if "option" in body.model_fields_set else {"payload": body.payload}
    signals.answer(asking.settings, whole, **given, by=asking.who.name)
    return _shown(asking, whole)


@router.post(
    "/signals/{signal_id}/dismiss",
    response_model=SignalView,
    summary="Take a notice, alert or result off the desk",
    responses=problems(409),
)
def dismiss(asking: Answering, signal_id: SignalId) -> Reply:
    whole = _found(asking, signal_id)
    signals.dismiss(asking.settings, whole, by=asking.who.name)
    return _shown(asking, whole)


def _found(asking: Asking, signal_id: str, *, person: bool = False) -> str:
    """The whole id of a signal this asker may speak about."""
    with asking.database.read() as connection:
        whole = lookup.signal_id(connection, signal_id, asking.owner)
        kind = views.signal(connection, whole)["kind"]
    if person and kind == "decision" and not asking.who.person:
        words = "a decision is a person's: answer it with a session (`officina login`), on the desk or in a terminal"
        raise Refusal(403, "not_a_person", words)
    return whole


def _shown(asking: Asking, signal_id: str) -> Reply:
    with asking.database.read() as connection:
        return Reply(views.signal(connection, signal_id))
