"""The agents a run may spawn or hand over to, and which of them a text means."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from registry.base import Json
from registry.graph.targets import AgentCard, Level, candidates


@dataclass(frozen=True, slots=True)
class Target(AgentCard):
    """An agent that can be named, with the definition its run would keep."""

    digest: str = ""
    definition: dict[str, Json] = field(default_factory=dict)
    #: The agent whose delegate it is; only that one may spawn it.
    delegate_of: str | None = None


def of_row(row: Any) -> Target:
    """The target of a row of `agents` with its definition."""
    level: Level = "top" if row.creator_key is None else "delegate"
    return Target(row.key, row.name, level, row.definition_digest, row.body, row.creator_key)


def find(text: str, targets: Sequence[Target]) -> Target | None:
    """The one agent a text means; None when it means none or several."""
    found = candidates(text, targets)
    if len(found) != 1:
        return None
    return next(target for target in targets if target.id == found[0].id)
