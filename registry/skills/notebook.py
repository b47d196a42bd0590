"""The notebook: what an agent keeps beside its history, for the packs `plan`, `semantic-memory`, `pin-memory`,
`episodic-memory` and `knowledge-memory` (spec: engine 15).

Its real sides live in `orchestrator/ports`. Whose rows a call may see follows from its caller, never from its input.
Times are epoch milliseconds. `untrusted` says of a text that it was made where text from outside had been read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from registry.skills.context import Caller

#: `long`: the being's, or its project's; `session`: this agent's in this thread.
RecordScope = Literal["session", "long"]
ItemStatus = Literal["pending", "in_progress", "completed", "failed", "cancelled"]
AgendaStatus = Literal["pending", "in_progress", "completed"]


@dataclass(frozen=True)
class NewItem:
    """A step somebody plans."""

    title: str
    description: str
    role: str | None = None


@dataclass(frozen=True)
class AgendaItem:
    """A step of an agenda."""

    id: str
    order: int
    title: str
    description: str
    role: str | None
    status: ItemStatus
    result_note: str | None


@dataclass(frozen=True)
class Agenda:
    """The steps an agent set itself for a task or a thread. (The plan of a project is something else: its tasks.)"""

    id: str
    overview: str
    items: tuple[AgendaItem, ...]
    untrusted: bool

    @property
    def status(self) -> AgendaStatus:
        """Follows from its items."""
        found = {item.status for item in self.items}
        if found <= {"completed", "cancelled"}:
            return "completed"
        return "in_progress" if found & {"in_progress", "failed"} else "pending"


class Agendas(Protocol):
    """One agenda for a thread, else for a task, else for a run that has neither."""

    def save(self, caller: "Caller", overview: str, items: Sequence[NewItem]) -> Agenda:
        """Makes it, or gives it new items; it keeps its id. Done once for each call."""
        ...

    def mark(
        self, caller: "Caller", item: str | int, status: ItemStatus, result_note: str | None
    ) -> tuple[Agenda, AgendaItem]:
        """Sets the state of the item with this id, start of an id (8 characters or more) or order; the agenda and the
        item after it.

        Raises:
            SkillError: `not_found` when there is no agenda or no such item, `conflict` when several are meant.
        """
        ...

    def find(self, caller: "Caller") -> Agenda | None: ...


@dataclass(frozen=True)
class Record:
    """One memory as the pack `semantic-memory` shows it."""

    id: str
    scope: RecordScope
    text: str
    key: str | None
    created_at: int
    updated_at: int
    untrusted: bool


class Records(Protocol):
    """Memories by scope and key, in the table that `memory.store` writes to as well."""

    def write(self, caller: "Caller", scope: RecordScope, text: str, key: str | None) -> Record:
        """Keeps a text, in place of the one under this key. Done once for each call.

        Raises:
            SkillError: `invalid_input` when the caller has no thread, or nothing that could remember; `quota`.
        """
        ...

    def listed(self, caller: "Caller", scopes: Sequence[RecordScope], limit: int) -> list[Record]:
        """Those of these scopes, as far as the caller has them, the newest first."""
        ...

    def update(self, caller: "Caller", id_: str, text: str) -> Record | None:
        """The record with its new text; None: the caller has no such record."""
        ...

    def delete(self, caller: "Caller", id_: str) -> None:
        """Forgets a record; one that is not there is forgotten already."""
        ...


@dataclass(frozen=True)
class Pin:
    """A fact that is read at each model call."""

    key: str
    text: str
    created_at: int
    updated_at: int
    untrusted: bool


class Pins(Protocol):
    """Facts of an agent by their keys."""

    def set(self, caller: "Caller", key: str, text: str, *, most: int) -> Pin:
        """Pins a text, in place of the one under this key.

        Raises:
            SkillError: `quota` when the agent would have more than `most`.
        """
        ...

    def listed(self, caller: "Caller", limit: int) -> list[Pin]:
        """The newest first."""
        ...

    def remove(self, caller: "Caller", key: str) -> None:
        """Takes a pin away; one that is not there is away already."""
        ...


@dataclass(frozen=True)
class Moment:
    """Something that was said in a run of the agent."""

    thread_id: str | None
    #: The place of the message in its run's history, or in its thread's.
    seq: int
    text: str
    #: How well it fits the question, 0 to 1.
    score: float


class Recollections(Protocol):
    """What was said in the agent's own runs that have ended."""

    def search(
        self, caller: "Caller", query: str, *, thread_id: str | None, limit: int, compacted: bool
    ) -> list[Moment]:
        """The best fits, best first. The query is words, never a query language.

        Args:
            thread_id: only what was said in this thread.
            compacted: whether messages of the present run count that a summary has replaced.
        """
        ...


@dataclass(frozen=True)
class Passage:
    """A piece of a document."""

    id: str
    title: str | None
    text: str
    uri: str | None
    score: float


@dataclass(frozen=True)
class Text:
    """A piece of a document, or all of one."""

    id: str
    text: str
    uri: str | None


class Knowledge(Protocol):
    """Documents that people gave to an agent, or to all agents of an owner."""

    def search(self, caller: "Caller", query: str, *, limit: int) -> list[Passage]:
        """The best fits, best first. The query is words, never a query language."""
        ...

    def read(self, caller: "Caller", id_: str) -> Text | None:
        """The passage or the document of this id; None: the caller may see none."""
        ...


class Embeddings(Protocol):
    """Texts as points in space, near each other where they mean the like; only where a model is set up for it."""

    @property
    def model(self) -> str:
        """Which model it is; points of different models are never compared."""
        ...

    def embed(self, texts: Sequence[str], *, timeout_s: float) -> list[list[float]]:
        """A point for each text.

        Raises:
            SkillError: `remote_error`, `timeout`, what the network says.
        """
        ...


@dataclass(frozen=True)
class Notebook:
    """All of it together."""

    agendas: Agendas
    records: Records
    pins: Pins
    recollections: Recollections
    knowledge: Knowledge


__all__ = [
    "Agenda",
    "AgendaItem",
    "AgendaStatus",
    "Agendas",
    "Embeddings",
    "ItemStatus",
    "Knowledge",
    "Moment",
    "NewItem",
    "Notebook",
    "Passage",
    "Pin",
    "Pins",
    "Recollections",
    "Record",
    "RecordScope",
    "Records",
    "Text",
]
