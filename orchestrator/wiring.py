"""Which skills have everything here that they need: the field `wired` of a definition (spec: skills 1).

A skill that has not still answers: that nothing happened, and what is missing.
"""

from pathlib import Path
from typing import Final

from orchestrator.settings import Settings
from registry.skills.skill import Skill

#: The connection a skill cannot do without.
_CONNECTION: Final = {
    "email.read": "email",
    "email.send": "email",
    "telegram.send": "telegram",
    "whatsapp.send": "whatsapp",
}


def unwired(settings: Settings, skills: list[Skill]) -> set[str]:
    """Names of the skills that would answer "not wired"."""
    asked = {skill.name for skill in skills}
    connected = _connected(settings) if asked & _CONNECTION.keys() else set()
    missing = {name for name, kind in _CONNECTION.items() if kind not in connected}
    if not settings.search:
        missing |= {"web.search", "web.research"}
    if not (settings.has_model or settings.stand_in):
        missing |= {skill.name for skill in skills if skill.needs == {"llm"}}
    return missing & asked


def _connected(settings: Settings) -> set[str]:
    """The kinds of connections the owner has; a database that is not there yet holds none."""
    path = settings.database.removeprefix("sqlite:///")
    if path != settings.database and not Path(path).exists():
        return set()
    from orchestrator.store.connections import of_owner
    from orchestrator.store.database import get_database

    with get_database(settings).read() as connection:
        return {str(row.kind) for row in of_owner(connection, settings.owner)}
