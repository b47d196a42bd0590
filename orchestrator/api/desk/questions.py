"""A signal as a card: who asks, why, exactly what would run, and how it can be answered."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection, select

from orchestrator import views
from orchestrator.api.desk import forms
from orchestrator.states import SIGNAL_OF_PARK
from orchestrator.store.thread_tables import threads
from registry.base import Json

_HEADS: Final = {
    "decision": "Needs your yes",
    "question": "Asks you",
    "interrupt": "Waits for your word",
    "gate": "Waits at a gate",
    "budget": "Needs your word on the budget",
    "notice": "For you to know",
    "alert": "Look at this",
    "result": "A result for you",
}
#: Longer texts, and those of several lines, get a block of their own.
_SHORT: Final = 80


@dataclass(frozen=True)
class Part:
    """One field of the input of a call."""

    name: str
    text: str
    #: Shown as a block with its number of lines and characters.
    long: bool
    lines: int


@dataclass(frozen=True)
class Card:
    """A signal, ready to be shown."""

    signal: dict[str, Any]
    head: str
    project: str | None
    #: The page of its project or conversation.
    at: str
    task: str | None
    parts: list[Part]
    #: Buttons that answer by themselves.
    options: list[dict[str, str]]
    #: Fields of an answer; None where buttons say all there is to say.
    fields: list[forms.Field] | None
    said: str | None
    dismissible: bool


def cards(connection: Connection, found: Sequence[Mapping[str, Json]]) -> list[Card]:
    """Signals as cards, in the order given."""
    places = views.places(connection, found)
    talks = _talks(connection, found)
    return [_card(dict(one), places, talks) for one in found]


def _talks(connection: Connection, found: Sequence[Mapping[str, Json]]) -> set[str]:
    """Which of the places that signals come from are conversations."""
    ids = {one["projectId"] for one in found if one.get("projectId")}
    return set(connection.execute(select(threads.c.id).where(threads.c.id.in_(ids))).scalars()) if ids else set()


def _card(signal: dict[str, Any], places: Mapping[str, str], talks: set[str]) -> Card:
    kind, action = signal["kind"], signal.get("action")
    options = signal.get("options") or []
    asks = kind in SIGNAL_OF_PARK
    plain = kind in ("decision", "budget") and bool(options)
    several = _takes_several(signal)
    return Card(
        signal=signal,
        head=_HEADS.get(kind, kind),
        project=places.get(signal.get("projectId") or ""),
        at=f"/{'threads' if signal.get('projectId') in talks else 'projects'}/{signal.get('projectId')}",
        task=places.get(signal.get("taskId") or ""),
        parts=_parts(action["input"]) if action else [],
        options=options if asks and not several else [],
        fields=None if plain or not asks else _fields(signal, bool(options)),
        said=_said(signal),
        dismissible=not asks and signal["status"] == "open",
    )


def _takes_several(signal: dict[str, Any]) -> bool:
    """Whether more than one of its options may be chosen: then boxes are ticked instead of a button pressed."""
    ids = signal["schema"].get("properties", {}).get("optionIds")
    return isinstance(ids, dict) and ids.get("maxItems") != 1 and bool(signal.get("options"))


def _fields(signal: dict[str, Any], has_options: bool) -> list[forms.Field]:
    """A question with options is answered by its buttons; what else may be said gets a field."""
    found = forms.fields(signal["schema"])
    if not _takes_several(signal):
        return [field for field in found if not (has_options and field.name == "optionIds")]
    labels = {str(one["id"]): str(one["label"]) for one in signal["options"]}
    return [
        replace(one, label="Choose", options=[(labels.get(str(v), str(v)), v) for _, v in one.options])
        if one.name == "optionIds"
        else one
        for one in found
    ]


def _parts(value: Json) -> list[Part]:
    given = value if isinstance(value, dict) else {"input": value}
    return [_part(str(name), one) for name, one in given.items()]


def _part(name: str, value: Json) -> Part:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return Part(name, text, len(text) > _SHORT or "\n" in text, text.count("\n") + 1)


def _said(signal: Mapping[str, Any]) -> str | None:
    """How it was answered, in words."""
    if signal["status"] != "answered":
        return None
    if signal["rejected"]:
        return "No"
    answer = signal["answer"]
    if signal["kind"] == "decision" and isinstance(answer, dict) and answer.get("approved") is True:
        return "Do it"
    if signal["kind"] == "budget":
        return "Continue"
    labels = {one["id"]: one["label"] for one in signal.get("options") or []}
    if isinstance(answer, dict) and answer.get("optionIds"):
        chosen = ", ".join(str(labels.get(one, one)) for one in answer["optionIds"])
        return f"{chosen}: {answer['text']}" if answer.get("text") else chosen
    return json.dumps(answer, ensure_ascii=False)
