"""From the text that names an agent to the agent meant (spec: engine 6, control:spawn)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from registry.graph.limits import AGENT_ID_PREFIX

Level = Literal["top", "delegate", "plugin"]


@dataclass(frozen=True, slots=True)
class AgentCard:
    """As much of an agent as it takes to name it."""

    id: str
    name: str
    level: Level = "top"


def candidates(text: str, agents: Iterable[AgentCard]) -> list[AgentCard]:
    """The agents a text may mean: one when it names one, several when it is unclear, none when it names nobody.

    An exact id wins; then ids that start with the text; then exact names; then names in any case.
    """
    known = list(agents)
    long_enough = len(text) >= AGENT_ID_PREFIX
    folded = text.casefold()
    tries: Final = (
        [agent for agent in known if agent.id == text],
        [agent for agent in known if long_enough and agent.id.startswith(text)],
        [agent for agent in known if agent.name == text],
        [agent for agent in known if agent.name.casefold() == folded],
    )
    return next((found for found in tries if found), [])
