"""The twelve citizens: beings that every studio has, whom an owner takes on as a copy (spec: skills 9, 11).

Each is a persona by its role, with a soul of its own in the mode `citizen`, made here and never by a model: the same in
every database. Definitions rather than rows, as with the generators that ship: a row for each owner begins with the
copy, and the copy keeps `beingId`, so what somebody remembers is found again by who it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from registry.agents import AgentDefinition
from registry.base import Json
from registry.personas import BASELINE, TEAM_PERMISSIONS, Persona, persona_of, system_prompt
from registry.souls import Soul, soul

#: In the start value of their souls, where an owner's id stands for everybody else.
HOUSE: Final = "officina"

#: Beyond the persona's. The pack writes, and tells what was kept at each model call; the skill finds what is older.
#: A task that lists skills narrows those, never the packs, so that a being has its memory in every task.
_SKILLS: Final = ("memory.recall",)
_PACKS: Final[Mapping[str, bool]] = MappingProxyType({"semantic-memory": True})
_OUTLIVES: Final = (
    "You outlive this project: keep with memory_write what will matter in the next one, and go by what you kept before."
)


@dataclass(frozen=True)
class Citizen:
    """One of the twelve."""

    id: str
    name: str
    role: str

    @property
    def persona(self) -> Persona:
        return persona_of(self.role)

    @property
    def soul(self) -> Soul:
        return soul(HOUSE, self.role, self.name)

    @property
    def description(self) -> str:
        return f"Something of {self.soul.archetype}. {self.soul.backstory}"

    def body(self) -> dict[str, Json]:
        """The definition a copy begins with, without the columns of its row."""
        persona, being = self.persona, f"{self.soul.prose('citizen')} {_OUTLIVES}"
        return {
            "name": self.name,
            "role": self.role,
            "description": self.description,
            "avatar": persona.avatar,
            "instructions": system_prompt(persona, name=self.name, soul=being),
            "skills": list(dict.fromkeys((*BASELINE, *persona.skills, *_SKILLS))),
            "packs": dict(_PACKS),
            "permissions": dict(TEAM_PERMISSIONS),
        }

    def agent(self) -> AgentDefinition:
        """The same as a definition, under the citizen's own id."""
        return AgentDefinition.model_validate(self.body() | {"id": self.id, "beingId": self.id, "isPublic": True})


def _id(name: str) -> str:
    return name.lower().replace(" ", "-")


#: By id, in the order of their names. Roles are dealt so that all nine have somebody, those that projects need most
#: have two, and no two citizens share an archetype or a past. Ids, names and roles never change: memories hang on them.
CITIZENS: Final[Mapping[str, Citizen]] = MappingProxyType(
    {
        _id(name): Citizen(_id(name), name, role)
        for name, role in (
            ("Ansel Brook", "researcher"),
            ("Bettina Rook", "engineer"),
            ("Corin Ashe", "analyst"),
            ("Dara Fenn", "editor"),
            ("Elio Strand", "designer"),
            ("Freya Holt", "engineer"),
            ("Gideon Pell", "writer"),
            ("Hana Quist", "marketer"),
            ("Ivo Larch", "writer"),
            ("Junia Wick", "researcher"),
            ("Kasimir Dove", "lead"),
            ("Leontine Graye", "generalist"),
        )
    }
)


__all__ = ["CITIZENS", "HOUSE", "Citizen"]
