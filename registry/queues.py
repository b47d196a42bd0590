"""Queues: which of them a run waits in, by what its agent is and may use. Pure: rules in, a name out."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from registry.base import Json
from registry.jsontext import digest

#: The queue of runs that no rule names.
DEFAULT: Final = "default"

QueueName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]


class QueueRule(BaseModel):
    """Runs that fit wait in this queue. All that is given has to fit; of a list, one is enough."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    queue: QueueName
    tiers: tuple[Literal["fast", "standard", "deep"], ...] = ()
    """Tiers of the agent."""
    needs: tuple[str, ...] = ()
    """What the agent may use: a skill (`code.execute`), a family of them (`web.*`) or a pack (`shell`)."""
    labels: tuple[str, ...] = ()
    """Labels of the task or the agent."""

    def fits(self, definition: Mapping[str, Json]) -> bool:
        """Whether a run of this definition is meant."""
        return (
            (not self.tiers or definition.get("tier", "standard") in self.tiers)
            and (not self.labels or not {*self.labels}.isdisjoint(definition.get("labels") or ()))
            and (not self.needs or _any_fits(self.needs, _uses(definition)))
        )


def choose(rules: Sequence[QueueRule], definition: Mapping[str, Json]) -> str:
    """The queue of the first rule that fits, or else the default."""
    return next((rule.queue for rule in rules if rule.fits(definition)), DEFAULT)


def names(rules: Iterable[QueueRule]) -> list[str]:
    """Every queue there is: the default, and those of the rules in their order."""
    return list(dict.fromkeys([DEFAULT, *(rule.queue for rule in rules)]))


def agreed(rules: Sequence[QueueRule], *, strict_priority: bool) -> str:
    """Digest of what has to be the same in every process of an installation, or their messages go different ways."""
    return digest({"rules": [rule.model_dump(mode="json") for rule in rules], "strictPriority": strict_priority})[:16]


def _uses(definition: Mapping[str, Json]) -> set[str]:
    """Names of skills and documents, and of packs that are on; a definition as it is stored."""
    packs = definition.get("packs") or {}
    gone = set(definition.get("disallowedTools") or ())
    return {*(definition.get("skills") or ()), *(name for name, value in packs.items() if value)} - gone


def _any_fits(patterns: Iterable[str], used: Iterable[str]) -> bool:
    found = list(used)
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in found)
