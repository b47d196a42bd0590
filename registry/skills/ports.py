"""Ports over rows and models: what memory, schedules, saved definitions and language models look like to a skill.

Their real sides live in `orchestrator/ports` and `workers/models`. Whose rows a call may see follows from its caller,
never from its input.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from registry.base import Json

if TYPE_CHECKING:
    from registry.agents import AgentDefinition
    from registry.generators import Generator
    from registry.permissions import Policy
    from registry.schedules import Schedule
    from registry.skills.context import Caller

MemoryScope = Literal["being", "project"]


@dataclass(frozen=True)
class Memory:
    """One thing somebody kept; times are epoch milliseconds."""

    id: str
    content: str
    kind: str
    tags: tuple[str, ...]
    importance: float
    created_at: int
    source_task_id: str | None
    #: It was made where text from outside had been read.
    untrusted: bool
    #: How well it fits the question, 0 to 1.
    score: float


@dataclass(frozen=True)
class Note:
    """Something to remember."""

    content: str
    kind: str = "note"
    tags: tuple[str, ...] = ()
    #: 0 to 1.
    importance: float = 0.5
    #: Days it is kept; None: until it is deleted.
    ttl_days: int | None = None
    scope: MemoryScope = "being"


@dataclass(frozen=True)
class Lookup:
    """What is looked for in memory: words, never a query language."""

    query: str
    limit: int = 5
    #: Any of these; empty: every kind.
    kinds: frozenset[str] = frozenset()
    #: All of these.
    tags: frozenset[str] = frozenset()
    #: Epoch milliseconds; only what was made from then on.
    since_ms: int | None = None
    min_score: float = 0.0
    scope: MemoryScope = "being"


@dataclass(frozen=True)
class Kept:
    """What became of a note: a new memory, or the earlier one that says the same."""

    id: str
    is_new: bool


class Memories(Protocol):
    """What an agent remembers. A caller sees the rows of its own being or project; a person, the owner's notes."""

    def recall(self, caller: "Caller", lookup: Lookup) -> list[Memory] | None:
        """The best fits, best first; None: this caller has nowhere to keep memories."""
        ...

    def store(self, caller: "Caller", note: Note) -> Kept | None:
        """Keeps a note once for each call; None: this caller has nowhere to keep it.

        Raises:
            SkillError: `quota`.
        """
        ...


class Schedules(Protocol):
    """The owner's schedules, as far as a skill may add to them."""

    @property
    def timezone(self) -> str:
        """The owner's time zone (IANA)."""
        ...

    def made(self, caller: "Caller") -> "tuple[str, Schedule] | None":
        """The schedule this very call stored before: it runs again after a crash, and its times may be past by now."""
        ...

    def create(
        self,
        caller: "Caller",
        schedule: "Schedule",
        *,
        allowed: frozenset[str] | None,
        policy: "Policy | None" = None,
    ) -> str:
        """Stores a schedule once for each call; returns its id.

        Args:
            allowed: skills the caller may use itself; None: all.
            policy: what the caller may do; nothing the schedule starts may do more. None: a person's.

        Raises:
            SkillError: `invalid_input` when its action names what is not there, or gives a skill an input that does
                not fit; `quota`.
        """
        ...


class Studio(Protocol):
    """What an owner saves: agents and generators."""

    def unknown(self, names: list[str]) -> list[str]:
        """Those of the names that are neither skills nor documents here."""
        ...

    def save_agent(self, caller: "Caller", agent: "AgentDefinition") -> tuple[str, bool]:
        """Saves an agent once for each call: its id, and whether this call made it.

        Raises:
            SkillError: `conflict` when the owner has one of this name, `quota`.
        """
        ...

    def save_generator(self, caller: "Caller", generator: "Generator") -> str:
        """Saves a generator once for each call; returns its id.

        Raises:
            SkillError: `invalid_input` when a step names a skill that generators may not, `conflict`, `quota`.
        """
        ...


class Agents(Protocol):
    """Agents that agents write: top-level ones for their owner, delegates for themselves.

    A row is {id, name, role, level, packs, skills}, as `agents_list` shows it.
    """

    def create(self, caller: "Caller", body: dict[str, Json], *, delegate: bool) -> dict[str, Json]:
        """Validates a definition at both levels and keeps it, once for each call; returns its row.

        Args:
            body: the definition; its id is replaced.
            delegate: whether only the caller's agent may spawn it.

        Raises:
            SkillError: `invalid_input` with every finding, `conflict` when the name is taken, `denied` when a delegate
                wants one of its own, `quota`.
        """
        ...

    def update(self, caller: "Caller", agent_id: str, changes: dict[str, Json]) -> dict[str, Json]:
        """Changes a delegate of the caller's agent; runs under way keep what they began with.

        Args:
            changes: of `name`, `role`, `instructions`, `budget`.

        Raises:
            SkillError: `not_found`, `conflict`, `invalid_input`.
        """
        ...

    def delete(self, caller: "Caller", agent_id: str) -> tuple[str, str]:
        """Removes a delegate of the caller's agent: its id and its name.

        Raises:
            SkillError: `not_found`, `conflict` while it is the speaker of a thread.
        """
        ...


class Threads(Protocol):
    """The owner's conversations."""

    def rows(self, caller: "Caller") -> list[dict[str, Json]]:
        """What was active last first: {id, title, kind, agentId, agentName, current, hasSchedule}."""
        ...


@dataclass(frozen=True)
class Ask:
    """One question to a language model, without tools."""

    #: The skill that asks, for the trace and for a stand-in's script.
    skill: str
    prompt: str
    system: str = ""
    #: Never above the caller's; None: the caller's.
    tier: str | None = None
    temperature: float | None = None
    max_tokens: int = 1024
    stop: tuple[str, ...] = ()
    #: JSON Schema the answer should have; checked by whoever asks.
    schema: dict[str, Json] | None = None
    #: Earlier answers to this question, each with what was wrong with it.
    repairs: tuple[tuple[str, str], ...] = ()
    timeout_s: float = 120
    cancelled: Callable[[], bool] = field(default=lambda: False)


@dataclass(frozen=True)
class Said:
    """What a model answered."""

    text: str
    model: str
    finish_reason: Literal["stop", "length", "content_filter"]
    prompt_tokens: int
    completion_tokens: int
    #: Tokens were guessed by characters.
    estimated: bool
    #: Micro-USD; None: nobody knows the price.
    cost_micro: int | None
    #: The stand-in said it, no model did.
    stand_in: bool = False


class Llm(Protocol):
    """A language model, with the caller's money behind it."""

    def ask(self, caller: "Caller", question: Ask) -> Said | None:
        """The answer, its cost booked; None: there is no model here.

        Raises:
            SkillError: `budget_exceeded`, `rate_limited`, `remote_error`, `timeout`, `cancelled`.
        """
        ...


@dataclass(frozen=True)
class Wanted:
    """Pictures somebody wants."""

    prompt: str
    #: `1024x1024` ...
    size: str
    count: int
    #: A number for another picture of the same prompt, where the provider takes one.
    variant: int | None = None
    timeout_s: float = 120
    cancelled: Callable[[], bool] = field(default=lambda: False)


@dataclass(frozen=True)
class Painted:
    """Pictures as a provider made them: bytes of whatever kind, not looked at yet."""

    pictures: tuple[bytes, ...]
    provider: str
    model: str
    revised_prompt: str | None
    #: Micro-USD; None: nobody knows the price.
    cost_micro: int | None


class Images(Protocol):
    """Someone who makes pictures, with the caller's money behind it."""

    @property
    def placeholder(self) -> bool:
        """Whether a card with the prompt may stand for a picture where nobody makes any."""
        ...

    def paint(self, caller: "Caller", wanted: Wanted) -> Painted | None:
        """The pictures, their cost booked; None: nobody makes pictures here.

        Raises:
            SkillError: `budget_exceeded`, `rate_limited`, `remote_error`, `invalid_output`, what the network says.
        """
        ...
