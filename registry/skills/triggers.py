"""Ports over what starts work by itself: schedules that speak in threads, and webhooks (spec: engine 15, 20).

An agent sees those it made and those that speak for it; a person, all of an owner's.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from registry.base import Json

if TYPE_CHECKING:
    from registry.agents import AgentDefinition
    from registry.permissions import Mode, Policy
    from registry.skills.context import Caller

History = Literal["none", "last", "all"]


@dataclass(frozen=True)
class Planned:
    """What a schedule should be; None: as it is, or as it is usual."""

    id: str | None = None
    name: str | None = None
    #: Five fields.
    cron: str | None = None
    #: IANA name.
    timezone: str | None = None
    #: What it says in its thread each time.
    detail: str | None = None
    #: Who it speaks to: an exact id.
    agent_id: str | None = None
    mode: "Mode | None" = None
    history: History | None = None
    history_last: int | None = None
    #: `self` or an id.
    thread_id: str | None = None


@dataclass(frozen=True)
class Hooked:
    """What a webhook should be; None: as it is, or as it is usual."""

    id: str | None = None
    name: str | None = None
    #: What is said where a delivery brings no text.
    detail: str | None = None
    agent_id: str | None = None
    status: Literal["active", "paused"] | None = None


@dataclass(frozen=True)
class Hand:
    """Who sets a trigger, and what they may do themselves."""

    caller: "Caller"
    #: The agent that calls; None: a person.
    agent: "AgentDefinition | None" = None
    policy: "Policy | None" = None


class Scheduler(Protocol):
    """Schedules, as the pack `scheduler` sees them."""

    def rows(self, caller: "Caller") -> list[dict[str, Json]]:
        """Those the caller may see, the eldest first."""
        ...

    def peek(self, caller: "Caller", schedule_id: str, last: int) -> list[dict[str, Json]]:
        """What became of its last due times, the latest first.

        Raises:
            SkillError: `not_found`.
        """
        ...

    def save(self, hand: Hand, planned: Planned) -> dict[str, Json]:
        """Makes a schedule (once for each call) or changes one; gives {schedule, thread}.

        Raises:
            SkillError: `not_found`, `invalid_input`, `conflict` when the thread has a schedule, `denied` for a mode
                beyond the caller's, `quota`.
        """
        ...

    def pause(self, caller: "Caller", schedule_id: str, *, paused: bool) -> dict[str, Json]:
        """Raises:
        SkillError: `not_found`; `conflict` when it has no time left to run at.
        """
        ...

    def delete(self, caller: "Caller", schedule_id: str) -> None:
        """Removes it and what it has in queues; threads and runs stay.

        Raises:
            SkillError: `not_found`.
        """
        ...


class Webhooks(Protocol):
    """Webhooks, as the pack `webhook` sees them; no answer holds a secret."""

    def rows(self, caller: "Caller") -> list[dict[str, Json]]:
        """Those the caller may see, the eldest first."""
        ...

    def save(self, hand: Hand, hooked: Hooked) -> dict[str, Json]:
        """Makes a webhook (once for each call) or changes one; the secret of a new one goes to the person's desk.

        Raises:
            SkillError: `not_found`, `invalid_input`, `quota`.
        """
        ...

    def delete(self, caller: "Caller", hook_id: str) -> None:
        """Removes it and what it has in queues; threads and runs stay.

        Raises:
            SkillError: `not_found`.
        """
        ...
